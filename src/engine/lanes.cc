#include "engine/lanes.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

namespace ebb {
namespace {

// The share of what a lane without an id holds that a history must begin with to be its next turn. Less: another
// conversation with the same system prompt takes the lane, and cuts what was said in it.
constexpr double kSameConversation = 0.5;

// Tokens that a lane and a history begin with alike before their bytes are compared. More: a short conversation whose
// first reply was cut into other tokens finds no lane. Less: work for each lane that has nothing in common.
constexpr std::int32_t kLeastEvidence = 4;

// Tokens of a run that two histories must share to count as the same text. Fewer: phrases that everyone uses count.
constexpr std::int32_t kLeastRun = 32;

// Lanes of a client that a history is compared with, token by token, to find where it goes on: those that are most like
// it. More: the comparison takes longer, which all others wait for. Fewer: of many conversations that begin alike, the
// right one may not be among them.
constexpr std::size_t kMostCompared = 3;

struct Held {
  std::span<const Token> computed;
  std::span<const Token> waiting;
  std::span<const Part> parts;
};

Held held_by(const Lane& lane) {
  if (lane.session != nullptr) {
    return {.computed = lane.session->tokens(), .waiting = lane.session->unfinished(), .parts = lane.session->parts()};
  }
  if (lane.image)
    return {.computed = lane.image->tokens, .waiting = lane.image->unfinished, .parts = lane.image->parts};
  return {};
}

// Where assistants speak, from the last one on that begins before `place` or there.
std::vector<Span> replies_from(std::span<const Part> parts, Position place) {
  std::vector<Span> replies;
  for (const Part& part : parts) {
    if (part.source != Source::kAssistant) continue;
    if (part.span.begin <= place) replies.clear();
    replies.push_back(part.span);
  }
  return replies;
}

// The client of an id "client~root"; empty for any other.
std::string_view client_of(std::string_view id) {
  const std::size_t mark = id.rfind('~');
  return mark == std::string_view::npos ? std::string_view() : id.substr(0, mark);
}

// Leaves the kMostCompared lanes whose sketches are most like a history's, the most alike first.
void keep_most_alike(std::vector<Lane*>& lanes, std::span<const Token> history) {
  if (lanes.size() <= kMostCompared) return;
  TokenSketch said;
  said.follow(history);
  std::vector<std::pair<double, Lane*>> by_likeness;
  for (Lane* lane : lanes) by_likeness.emplace_back(said.likeness(lane->sketch), lane);
  std::ranges::partial_sort(by_likeness, by_likeness.begin() + kMostCompared, std::greater(),
                            &std::pair<double, Lane*>::first);
  lanes.clear();
  for (std::size_t i = 0; i < kMostCompared; ++i) lanes.push_back(by_likeness[i].second);
}

// At random, so that one that a later process makes up is another.
std::string new_public_id() {
  std::random_device device;
  return fmt::format("auto-{:08x}{:08x}", device(), device());
}

}  // namespace

Lanes::Lanes(Engine& engine, const SessionOptions& options, const LaneLimits& limits, LaneFolder* folder)
    : engine_(engine), options_(options), limits_(limits), folder_(folder) {}

// What a model wrote comes back in other tokens, and its calls in other words; conversations that part at once are not looked at any
// further.
std::int32_t Lanes::n_common(const Lane& lane, const LaneAsk& ask) const {
  const Held held = held_by(lane);
  const std::int32_t n_same = count_common(held.computed, held.waiting, ask.history);
  if (n_same < kLeastEvidence || n_same >= std::ssize(held.computed)) return n_same;
  // From where the reply begins in which they part.
  std::vector<Span> replies = replies_from(held.parts, Position(n_same));
  const bool parts_in_reply = !replies.empty() && replies.front().begin <= Position(n_same);
  const std::int32_t from = parts_in_reply ? replies.front().begin.value() : n_same;
  for (Span& reply : replies) reply = {reply.begin - from, reply.end - from};
  std::span<const Token> tokens = held.computed.subspan(static_cast<std::size_t>(from));
  // The end of a last reply may wait.
  std::vector<Token> last;
  if (parts_in_reply && replies.size() == 1) {
    last.assign(tokens.begin(), tokens.end());
    last.insert(last.end(), held.waiting.begin(), held.waiting.end());
    tokens = last;
  }
  const auto history = ask.history.subspan(static_cast<std::size_t>(from));
  static const SameReply kSameBytes;
  const SameReply& same_reply = ask.same_reply != nullptr ? *ask.same_reply : kSameBytes;
  const Match rest = match_history(engine_.vocabulary(), tokens, replies, history, same_reply);
  if (!last.empty() || rest.n_held < std::ssize(tokens)) return from + rest.n_held;
  return from + rest.n_held + count_common(held.waiting, {}, history.subspan(static_cast<std::size_t>(rest.n_said)));
}

// A lane that would lose something to the request must have more of it than conversations of one client begin with.
bool Lanes::goes_on(const Lane& lane, const LaneAsk& ask, std::int32_t common) const {
  const Held held = held_by(lane);
  const std::size_t n_held = held.computed.size() + held.waiting.size();
  if (std::cmp_less(common, n_held) && common < ask.n_opening) return false;
  return common >= kSameConversation * static_cast<double>(n_held);
}

Lane* Lanes::find_by_history(const LaneAsk& ask) {
  Lane* best = nullptr;
  std::int32_t best_common = 0;
  for (Lane& lane : lanes_) {
    if (lane.owner != ask.owner || !lane.id.empty() || lane.busy || lane.sparse_prompt != ask.sparse_prompt) continue;
    const std::int32_t common = n_common(lane, ask);
    if (common <= best_common || !goes_on(lane, ask, common)) continue;
    best = &lane;
    best_common = common;
  }
  return best;
}

// A clock or a stamp in its instructions changes the root of a client's id; the conversation is the same where most of
// it is, wherever that went. Of a hint's lanes what was said behind the instructions decides, since all may share those.
Lane* Lanes::find_changed(const LaneAsk& ask) {
  const std::string_view client = client_of(ask.id);
  const bool by_hint = ask.id.empty() && !ask.hint.empty();
  if (client.empty() && !by_hint) return nullptr;
  const auto n_apart = static_cast<std::size_t>(by_hint ? ask.n_instructions : 0);
  const auto told_apart = [&](std::span<const Token> tokens) {
    return tokens.subspan(std::min(n_apart, tokens.size()));
  };
  const std::span<const Token> history = told_apart(ask.history);
  const auto n_held = [&](const Lane& lane) { return told_apart(held_by(lane).computed).size(); };
  const auto n_wanted = [&](const Lane& lane) {
    return kSameConversation * static_cast<double>(std::max(n_held(lane), history.size()));
  };
  const auto may_be = [&](const Lane& lane) {
    if (by_hint) return lane.id.empty() && lane.hint == ask.hint && lane.sparse_prompt == ask.sparse_prompt;
    return !lane.id.empty() && client_of(lane.id) == client;
  };
  std::vector<Lane*> of_client;
  for (Lane& lane : lanes_) {
    if (lane.busy || lane.owner != ask.owner || !may_be(lane)) continue;
    if (static_cast<double>(std::min(n_held(lane), history.size())) >= n_wanted(lane)) of_client.push_back(&lane);
  }
  if (of_client.empty()) return nullptr;
  keep_most_alike(of_client, ask.history);
  const RunIndex said(history, kLeastRun);
  for (Lane* const lane : of_client) {
    ++n_compared_;
    std::int32_t n_same = 0;
    for (const TokenRun& run : said.find_runs(held_by(*lane).computed)) n_same += run.n_tokens;
    if (n_same >= n_wanted(*lane)) return lane;
  }
  return nullptr;
}

void Lanes::release(Lane& lane) {
  lane.busy = false;
  lane.sketch.follow(held_by(lane).computed);
}

Lane* Lanes::find_or_open(const LaneAsk& ask) {
  Lane* lane = nullptr;
  if (ask.id.empty()) {
    lane = find_by_history(ask);
  } else {
    const auto named =
        std::ranges::find_if(lanes_, [&](const Lane& l) { return l.owner == ask.owner && l.id == ask.id; });
    if (named != lanes_.end()) lane = &*named;
  }
  if (lane == nullptr) {
    lane = find_changed(ask);
    if (lane != nullptr && !ask.id.empty()) rename(*lane, ask.id);
  }
  if (lane == nullptr) {
    lane = open(ask.owner, ask.id);
    if (lane == nullptr) return nullptr;
    lane->sparse_prompt = ask.sparse_prompt;
  }
  if (ask.id.empty() && !ask.hint.empty()) lane->hint = ask.hint;
  lane->last_use = ++n_uses_;
  return lane;
}

void Lanes::let_go(Lane& lane) {
  lane.session.reset();
  lane.image.reset();
}

void Lanes::rename(Lane& lane, std::string_view id) {
  if (folder_ != nullptr) folder_->forget(lane.owner, lane.public_id);
  lane.id = id;
  lane.public_id = id;
}

Lane* Lanes::open(std::string_view owner, std::string_view id) {
  const auto n_own = [&] { return static_cast<std::size_t>(std::ranges::count(lanes_, owner, &Lane::owner)); };
  while (n_own() >= limits_.most_of_owner) {
    if (!erase_oldest(owner)) return nullptr;
  }
  if (lanes_.size() >= limits_.most && !erase_of_greatest(owner)) return nullptr;
  return &lanes_.emplace_back(Lane{.owner = std::string(owner),
                                   .id = std::string(id),
                                   .public_id = id.empty() ? new_public_id() : std::string(id),
                                   .last_use = ++n_uses_});
}

bool Lanes::erase_oldest(std::string_view owner) {
  Lane* oldest = nullptr;
  for (Lane& lane : lanes_) {
    if (lane.busy || lane.owner != owner) continue;
    if (oldest == nullptr || lane.last_use < oldest->last_use) oldest = &lane;
  }
  if (oldest != nullptr) erase(*oldest);
  return oldest != nullptr;
}

bool Lanes::erase_of_greatest(std::string_view next) {
  std::map<std::string_view, std::int64_t> n_lanes = {{next, 1}};
  for (const Lane& lane : lanes_) ++n_lanes[lane.owner];
  const auto rank = [&](const Lane& lane) {
    return std::tuple(limits_.is_known_owner(lane.owner), -n_lanes[lane.owner], lane.last_use);
  };
  Lane* least = nullptr;
  for (Lane& lane : lanes_) {
    if (!lane.busy && (least == nullptr || rank(lane) < rank(*least))) least = &lane;
  }
  if (least != nullptr) erase(*least);
  return least != nullptr;
}

Lane* Lanes::find(std::string_view owner, std::string_view public_id) {
  const auto found =
      std::ranges::find_if(lanes_, [&](const Lane& l) { return l.owner == owner && l.public_id == public_id; });
  return found == lanes_.end() ? nullptr : &*found;
}

Result<Lane*> Lanes::take_in(std::string_view owner, std::string_view id, const LaneImage& given) {
  const SessionImage& image = given.image;
  if (!id.empty() && find(owner, id) != nullptr) {
    return error(Code::kInvalidArgument, "there is a session {}; delete it first, or give another id", id);
  }
  if (const std::size_t n_tokens = image.tokens.size() + image.unfinished.size(); n_tokens > kMostTakenTokens) {
    return error(Code::kInvalidArgument,
                 "a session of {} tokens, and at most {} are taken in; say its history in a request", n_tokens,
                 kMostTakenTokens);
  }
  SessionOptions options = options_;
  options.tenant = owner;
  const std::shared_ptr<const Policy> policy = kept_policy(given.policy);
  if (policy != nullptr) options.policy = policy;
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, engine_.restore_session(options, image));
  Lane* const lane = open(owner, id);
  if (lane == nullptr) return error(Code::kOutOfBudget, "all sessions that may be are at work; try again later");
  lane->session = std::move(session);
  lane->policy = policy;
  lane->sparse_prompt = given.sparse_prompt;
  lane->sketch.follow(lane->session->tokens());
  keep(*lane);
  return lane;
}

void Lanes::erase(Lane& lane) {
  if (folder_ != nullptr) folder_->forget(lane.owner, lane.public_id);
  lanes_.remove_if([&](const Lane& l) { return &l == &lane; });
}

void Lanes::keep(Lane& lane) {
  if (folder_ == nullptr || (lane.session == nullptr && !lane.image)) return;
  LaneImage image = make_lane_image(engine_, lane.session != nullptr ? lane.session->image() : *lane.image);
  image.owner = lane.owner;
  image.id = lane.id;
  image.public_id = lane.public_id;
  image.policy = lane.own_policy();
  image.sparse_prompt = lane.sparse_prompt;
  folder_->save(std::move(image));
  if (lane.session == nullptr) return;
  // No image names the record of the open block as it was before; it would fill the store turn by turn.
  const std::int32_t last = lane.session->n_blocks() - 1;
  std::optional<Hash128> open_record;
  if (last >= 0 && !lane.session->hot().is_full(BlockIndex(last)))
    open_record = lane.session->exact_name(BlockIndex(last));
  if (lane.open_record && lane.open_record != open_record && engine_.store() != nullptr) {
    engine_.store()->drop(*lane.open_record);
  }
  lane.open_record = open_record;
}

void Lanes::resume_kept() {
  if (folder_ == nullptr) return;
  const auto fits = [&](const LaneImage& image) { return image.is_of(engine_) && limits_.is_known_owner(image.owner); };
  for (LaneImage& kept : folder_->load(fits)) {
    Lane* const lane = open(kept.owner, kept.id);
    if (lane == nullptr) return;
    lane->public_id = std::move(kept.public_id);
    lane->policy = kept_policy(kept.policy);
    lane->sparse_prompt = std::move(kept.sparse_prompt);
    lane->image = std::move(kept.image);
    lane->sketch.follow(lane->image->tokens);
  }
}

Status Lanes::wake(Lane& lane, std::int32_t n_tokens) {
  if (lane.session != nullptr) {
    // It may need more, which the scheduler finds out when it shares out.
    (void)lane.session->set_budget(FrameBudget::of_tokens(n_tokens, engine_.shape()));
    return {};
  }
  EBB_ASSIGN_OR_RETURN(lane.session, make_session(lane, n_tokens, nullptr));
  lane.image.reset();
  return {};
}

// With its policy from the start, so that notes which fit it are taken up again.
Status Lanes::wake(Lane& lane, std::int32_t n_tokens, const std::shared_ptr<const Policy>& asked) {
  if (lane.session != nullptr) {
    EBB_RETURN_IF_ERROR(engine_.set_policy(*lane.session, policy_for(lane, asked)));
    return wake(lane, n_tokens);
  }
  EBB_ASSIGN_OR_RETURN(lane.session, make_session(lane, n_tokens, asked));
  lane.image.reset();
  return {};
}

Status Lanes::wake(Lane& lane) {
  if (lane.session != nullptr) return {};
  return wake(lane, own_budget(lane));
}

Result<std::unique_ptr<Session>> Lanes::copy_parked(const Lane& lane) const {
  return make_session(lane, own_budget(lane), nullptr);
}

std::shared_ptr<const Policy> Lanes::policy_for(const Lane& lane, const std::shared_ptr<const Policy>& asked) const {
  if (asked != nullptr) return asked;
  return lane.policy != nullptr ? lane.policy : options_.policy;
}

std::shared_ptr<const Policy> Lanes::kept_policy(std::string_view spec) const {
  if (spec.empty()) return nullptr;
  Result<std::shared_ptr<const Policy>> policy = limits_.policies.make(spec);
  return policy.ok() ? *std::move(policy) : nullptr;
}

Status Lanes::set_policy(Lane& lane, std::shared_ptr<const Policy> policy) {
  if (policy != nullptr) EBB_RETURN_IF_ERROR(policy->check_grain(engine_.layout().block_size));
  lane.policy = std::move(policy);
  if (lane.busy) return {};
  if (lane.session != nullptr) EBB_RETURN_IF_ERROR(engine_.set_policy(*lane.session, policy_for(lane, nullptr)));
  keep(lane);
  return {};
}

const Policy& Lanes::policy(const Lane& lane) const {
  if (lane.session != nullptr) return lane.session->policy();
  const std::shared_ptr<const Policy> own = policy_for(lane, nullptr);
  return own != nullptr ? *own : engine_.policy();
}

std::int32_t Lanes::own_budget(const Lane& lane) const {
  return lane.budget_tokens > 0 ? lane.budget_tokens : engine_.budget_tokens();
}

// An image that does not fit is as good as none: the history is computed anew (law 8).
Result<std::unique_ptr<Session>> Lanes::make_session(const Lane& lane, std::int32_t n_tokens,
                                                     const std::shared_ptr<const Policy>& asked) const {
  SessionOptions options = options_;
  options.policy = policy_for(lane, asked);
  options.budget_tokens = n_tokens;
  options.tenant = lane.owner;
  if (lane.image) {
    Result<std::unique_ptr<Session>> restored = engine_.restore_session(options, *lane.image);
    if (restored.ok()) return restored;
  }
  return engine_.new_session(options);
}

void Lanes::park(Lane& lane) {
  if (lane.session == nullptr) return;
  try {
    lane.image = save(lane);
  } catch (const std::exception&) {  // memory is short, and its frames are wanted: its history is computed anew (law 8)
    lane.image.reset();
  }
  lane.session.reset();
}

SessionImage Lanes::save(Lane& lane) {
  if (lane.session == nullptr) return lane.image.value_or(SessionImage());
  // What cannot be saved is computed again when it is wanted (law 8).
  (void)lane.session->save();
  return lane.session->image();
}

void Lanes::forget(Lane& lane) {
  if (ColdStore* const store = engine_.store(); store != nullptr && wake(lane).ok()) {
    std::int32_t n_shared = 0;
    for (const Lane& other : lanes_) {
      if (&other == &lane || other.owner != lane.owner) continue;
      std::span<const Token> tokens;
      if (other.session != nullptr) tokens = other.session->tokens();
      if (other.session == nullptr && other.image) tokens = other.image->tokens;
      n_shared = std::max(n_shared, count_common(tokens, {}, lane.session->tokens()));
    }
    std::vector<Hash128> names;
    for (std::int32_t b = n_shared / lane.session->block_size(); b < lane.session->n_blocks(); ++b) {
      names.push_back(lane.session->exact_name(BlockIndex(b)));
    }
    lane.session.reset();
    for (const Hash128& name : names) store->drop(name);
  }
  erase(lane);
}

bool Lanes::park_one(const Lane* but_not) {
  Lane* oldest = nullptr;
  for (Lane& lane : lanes_) {
    if (lane.busy || lane.session == nullptr || &lane == but_not) continue;
    if (oldest == nullptr || lane.last_use < oldest->last_use) oldest = &lane;
  }
  if (oldest == nullptr) return false;
  park(*oldest);
  return true;
}

}  // namespace ebb
