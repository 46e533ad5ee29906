#include "session/turn.h"

#include <algorithm>
#include <array>

namespace ebb {
namespace {

// A step brings at most this share of the budget, so that its tokens still see most of what was hot. Larger: faster
// prefill, and more of the past is evicted before it could be looked at.
constexpr std::int32_t kStepsPerBudget = 4;

// Of a message, its end says what it is about; of a long one the rest is what was read.
constexpr std::size_t kHeardBytes = 4096;

// Of a chunk of a prompt, its last rows say where attention goes; all of them would cost memory for each row and block.
constexpr std::int32_t kMassRows = 16;

// How slowly a block's share of attention follows, per step. EVOKE's value.
constexpr double kMassKept = 0.95;

// How fast what was recalled becomes a block like any other, per turn. EVOKE's value.
constexpr double kRecoveryKept = 0.7;

}  // namespace

Turn::Turn(Session& session, std::span<const PromptPart> prompt)
    : session_(session), first_(session.end()), end_(session.end()), pending_(std::move(session.unfinished_)) {
  begin(prompt);
}

Turn::Turn(Session& session, std::span<const Token> prompt)
    : session_(session), first_(session.end()), end_(session.end()), pending_(std::move(session.unfinished_)) {
  const std::array<PromptPart, 1> parts = {PromptPart{.tokens = prompt}};
  begin(parts);
}

Turn Turn::resume(Session& session, std::span<const PromptPart> history, const ResumeOptions& options) {
  std::vector<Token> all;
  for (const PromptPart& part : history) all.insert(all.end(), part.tokens.begin(), part.tokens.end());
  EBB_CHECK(!all.empty(), "a history without a token");
  Turn turn(session, std::span<const PromptPart>());
  // The last one is computed, for its logits.
  const Match match = turn.match(std::span(all).first(all.size() - 1), options.same_reply);
  if (match.n_held < session.end().value()) {
    std::deque<Graft> grafts;
    if (options.reuse == Reuse::kApproximate) {
      const auto rest = std::span(all).subspan(static_cast<std::size_t>(match.n_said));
      grafts = turn.plan_grafts(Position(match.n_held), rest.first(rest.size() - 1), options.n_recomputed);
    }
    turn.cut(Position(match.n_held));
    turn.grafts_ = std::move(grafts);
  } else {
    turn.pending_.erase(turn.pending_.begin() + (match.n_held - session.end().value()), turn.pending_.end());
  }
  session.said_.truncate(Position(match.n_held));
  std::vector<PromptPart> rest;
  std::int32_t n_left_out = match.n_said;
  for (PromptPart part : history) {
    const std::int32_t n = std::min(n_left_out, static_cast<std::int32_t>(part.tokens.size()));
    if (n > 0) turn.hold_as_asked(part);
    part.tokens = part.tokens.subspan(static_cast<std::size_t>(n));
    n_left_out -= n;
    rest.push_back(std::move(part));
  }
  turn.say(rest);
  return turn;
}

// Of what the session computed and what waits in it.
Match Turn::match(std::span<const Token> history, const SameReply& same_reply) const {
  std::vector<Token> held(session_.tokens_);
  held.insert(held.end(), pending_.begin(), pending_.end());
  std::vector<Span> replies;
  for (const Part& part : session_.said_.all()) {
    if (part.source == Source::kAssistant) replies.push_back(part.span);
  }
  return match_history(session_.parts_.vocabulary, held, replies, history, same_reply);
}

// What is held already, and asked now to be held more firmly: by name, since a reply that was held as written has other
// positions than in the history.
void Turn::hold_as_asked(const PromptPart& part) {
  if (part.pinned) session_.set_pinned(part.name, true);
  if (part.priority != 1.0) session_.set_priority(part.name, part.priority);
}

void Turn::begin(std::span<const PromptPart> prompt) {
  session_.index_restored_words();
  session_.unfinished_.clear();
  say(prompt);
}

// One that says nothing moves blocks for somebody, and is no turn of the conversation: names and what is told by turns do
// not know it.
void Turn::say(std::span<const PromptPart> prompt) {
  if (std::ranges::any_of(prompt, [](const PromptPart& part) { return !part.tokens.empty(); })) {
    ++session_.n_turns_;
    for (Session::Block& block : session_.blocks_) block.recovery *= kRecoveryKept;
  }
  for (const PromptPart& part : prompt) {
    if (part.tokens.empty()) continue;
    const Position begin = session_.end() + n_pending();
    session_.said_.add({.span = {begin, begin + static_cast<std::int32_t>(part.tokens.size())},
                        .source = part.source,
                        .name = part.name.empty() ? fmt::format("turn{}", session_.n_turns_) : part.name,
                        .priority = part.priority,
                        .pinned = part.pinned});
    pending_.insert(pending_.end(), part.tokens.begin(), part.tokens.end());
    if (part.source == Source::kUser) hear(part);
  }
  n_prompt_ = n_pending();
}

void Turn::hear(const PromptPart& part) {
  const std::size_t n = std::min(part.tokens.size(), kHeardBytes);
  const Result<std::string> text = session_.parts_.vocabulary.detokenize(part.tokens.last(n), SpecialTokens::kHide);
  if (!text.ok()) return;
  session_.focus_.hear(std::string_view(*text).substr(text->size() - std::min(text->size(), kHeardBytes)));
}

// --- steps ---

Result<SequenceInput> Turn::begin_step(std::int32_t max_rows) {
  EBB_CHECK(n_step_ == 0 && n_pending() + n_recomputing() > 0 && max_rows > 0,
            "{} tokens under way, {} pending, {} blocks to compute again", n_step_, n_pending(), n_recomputing());
  EBB_CHECK(session_.end() == end_, "two turns of one session: it ends at {}, this turn left it at {}",
            session_.end().value(), end_.value());
  wake_open_block();
  if (const std::optional<SequenceInput> input = begin_recompute(max_rows)) return *input;
  if (n_pending() == 0) return no_room();
  // Tokens can't go behind a block whose own are not there.
  if (session_.n_blocks() > 0 && !session_.is_full(last_block()) && !session_.residency_.is_hot(last_block())) {
    return fit_open_frames(1) < 1 ? no_open_block() : no_room();
  }

  adopt_saved();
  adopt_rows();
  EBB_RETURN_IF_ERROR(take_grafts());
  const std::int32_t block_size = session_.block_size();
  EBB_RETURN_IF_ERROR(make_anchors_for(1));
  const std::int32_t n_context_left = session_.n_ctx_train() - session_.next_anchor_.value();
  const std::int32_t share = std::max(1, session_.budget_blocks_ / kStepsPerBudget) * block_size;
  std::int32_t n_tokens = fit_open_frames(fit_adopting(std::min({n_ungrafted(), max_rows, share, n_context_left})));
  if (n_tokens < 1) return no_open_block();

  const std::int32_t n_new_blocks = (n_tokens - room_in_last_block() + block_size - 1) / block_size;
  if (n_new_blocks > 0) {
    make_room(n_new_blocks);
    n_tokens = std::min(n_tokens, room_in_last_block() + n_free_blocks() * block_size);
  }
  if (n_tokens < 1) return no_room();
  place(n_tokens);
  n_step_ = n_tokens;
  return SequenceInput{.tokens = std::span(pending_).first(static_cast<std::size_t>(n_tokens)),
                       .first = session_.end(),
                       .anchor = session_.next_anchor_,
                       .residency = &session_.residency_,
                       .n_outputs = n_tokens == n_pending() ? 1 : 0,
                       .n_mass_rows = session_.parts_.policy.wants_attention() ? std::min(n_tokens, kMassRows) : 0};
}

Status Turn::no_room() const {
  std::int32_t n_pinned = 0;
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    if (session_.residency_.is_hot(BlockIndex(b)) && session_.is_pinned(BlockIndex(b))) ++n_pinned;
  }
  return error(
      Code::kOutOfBudget,
      "no room for a token: this session has {} hot blocks of its {} ({} pinned, policy {}), and {} of {} frames "
      "of the pool are free; raise the budget, unpin, or end other sessions",
      session_.n_hot_blocks(), session_.budget_blocks_, n_pinned, session_.parts_.policy.name(),
      session_.parts_.pool.n_free(), session_.parts_.pool.n_frames());
}

// The next piece of a block that is computed again. A block that finds no room stays a hole.
std::optional<SequenceInput> Turn::begin_recompute(std::int32_t max_rows) {
  while (!recompute_.empty()) {
    const Recompute& next = recompute_.front();
    if (next.n_done == 0) {
      if (session_.residency_.is_hot(next.block) || !admit(next.block).ok()) {
        recompute_.erase(recompute_.begin());
        continue;
      }
      // Its rows must outlive the step if one is not enough.
      const bool at_once = session_.residency_.span(next.block).n_tokens() <= max_rows;
      if (!at_once && !session_.residency_.hold_open(next.block).ok()) {
        session_.residency_.evict(next.block);
        recompute_.erase(recompute_.begin());
        continue;
      }
      // A rebase since it was queued took away the anchor that it was to have.
      if (session_.blocks_[next.block.index()].epoch != session_.epoch_) place_cold(next.block);
      prepare_frames(next.block);
    }
    const auto tokens = session_.block_tokens(next.block).subspan(static_cast<std::size_t>(next.n_done));
    n_step_ = std::min(max_rows, static_cast<std::int32_t>(tokens.size()));
    step_recomputes_ = true;
    return SequenceInput{.tokens = tokens.first(static_cast<std::size_t>(n_step_)),
                         .first = session_.residency_.span(next.block).begin + next.n_done,
                         .anchor = session_.anchor(next.block) + next.n_done,
                         .residency = &session_.residency_,
                         .n_outputs = 0};
  }
  return std::nullopt;
}

void Turn::end_recompute() {
  Recompute& done = recompute_.front();
  done.lineage.add(session_.visible_before(done.block), n_step_);
  done.n_done += n_step_;
  if (done.n_done < session_.residency_.span(done.block).n_tokens()) return;
  if (session_.is_full(done.block)) session_.residency_.seal(done.block);
  Session::Block& block = session_.blocks_[done.block.index()];
  block.lineage = std::move(done.lineage);
  block.moves = Hash128();
  block.turned = false;
  block.name.reset();
  block.last_access = session_.n_steps_;
  publish(done.block);
  ++session_.stats_.n_recomputed_blocks;
  stats_.recomputed.push_back(done.block);
  recompute_.erase(recompute_.begin());
  if (recompute_.empty() && session_.options_.recall_place == RecallPlace::kCompacted) compact();
}

void Turn::place(std::int32_t n_tokens) {
  Position next = session_.end();
  while (n_tokens > 0) {
    if (room_in_last_block() == 0) open_block(next);
    const std::int32_t n = std::min(n_tokens, room_in_last_block());
    session_.residency_.append(n);
    n_tokens -= n;
    next = next + n;
  }
  session_.stats_.peak_hot_blocks = std::max(session_.stats_.peak_hot_blocks, session_.n_hot_blocks());
  if (room_in_last_block() == 0) return;
  const Status held = session_.residency_.hold_open(last_block());
  EBB_CHECK(held.ok(), "it was looked whether they are free: {}", held.message());
}

void Turn::open_block(Position begin) {
  const Result<BlockIndex> opened = session_.residency_.open_block(begin);
  EBB_CHECK(opened.ok(), "room was made for it: {}", opened.status().message());
  session_.blocks_.push_back({.anchor = session_.next_anchor_ + (begin - session_.end()), .epoch = session_.epoch_});
  prepare_frames(*opened);
}

// A block was looked at if it got its fair share or more.
void Turn::note_mass(std::span<const BlockMass> mass) {
  double total = 0.0;
  for (const BlockMass& m : mass) total += m.mass;
  if (total <= 0.0) return;
  for (const BlockMass& m : mass) {
    Session::Block& block = session_.blocks_[m.block.index()];
    const double share = m.mass / total;
    block.attention = kMassKept * block.attention + (1.0 - kMassKept) * share;
    if (share * static_cast<double>(mass.size()) >= 1.0) block.last_access = session_.n_steps_;
  }
}

void Turn::end_step(std::span<const BlockMass> mass) {
  EBB_CHECK(n_step_ > 0, "no step under way");
  ++session_.n_steps_;
  note_mass(mass);
  if (step_recomputes_) {
    end_recompute();
    step_recomputes_ = false;
    n_step_ = 0;
    return;
  }
  advance(n_step_, std::nullopt);
  n_step_ = 0;
  if (n_pending() == 0) count_prefix();
}

// The next n_tokens pending ones are in their frames: computed there behind what is visible, or grafted, by this name.
void Turn::advance(std::int32_t n_tokens, const std::optional<Hash128>& grafted) {
  Position next = session_.end();
  const auto begin = pending_.begin();
  session_.tokens_.insert(session_.tokens_.end(), begin, begin + n_tokens);
  pending_.erase(begin, begin + n_tokens);
  session_.next_anchor_ = session_.next_anchor_ + n_tokens;
  while (next < session_.end()) {
    const BlockIndex block(next.value() / session_.block_size());
    const Position end = std::min(session_.end(), session_.residency_.span(block).end);
    session_.blocks_[block.index()].lineage.add(grafted ? *grafted : session_.visible_before(block), end - next);
    session_.blocks_[block.index()].last_access = session_.n_steps_;
    if (session_.is_full(block)) {
      session_.residency_.seal(block);
      session_.index_words(block);
      publish(block);
      save_behind(block);
    }
    next = end;
  }
  end_ = session_.end();
}

void Turn::abandon_step() {
  if (step_recomputes_) {
    session_.residency_.evict(recompute_.front().block);
    recompute_.front() = {.block = recompute_.front().block};
  }
  while (session_.residency_.end() > session_.end()) {
    const BlockIndex last(session_.n_blocks() - 1);
    const Span span = session_.residency_.span(last);
    const std::int32_t n_kept = std::max(0, session_.end() - span.begin);
    session_.residency_.truncate_last(n_kept);
    if (n_kept == 0) session_.blocks_.pop_back();
  }
  step_recomputes_ = false;
  n_step_ = 0;
}

void Turn::push(Token token) {
  if (!reply_begin_) {
    reply_begin_ = session_.end() + n_pending();
    session_.said_.add({.span = {*reply_begin_, *reply_begin_},
                        .source = Source::kAssistant,
                        .name = fmt::format("reply{}", session_.n_turns_)});
  }
  session_.said_.extend_last(1);
  ++stats_.n_generated;
  pending_.push_back(token);
}

// Of what is pending, what comes before the next graft.
std::int32_t Turn::n_ungrafted() const {
  return grafts_.empty() ? n_pending() : std::min(n_pending(), grafts_.front().to.begin - session_.end());
}

// Of n_tokens those up to the end of a block, where whole blocks that others computed may go on.
std::int32_t Turn::fit_adopting(std::int32_t n_tokens) const {
  const std::int32_t block_size = session_.block_size();
  const std::int32_t room = room_in_last_block();
  if (!session_.options_.adopts || n_pending() <= room + block_size) return n_tokens;
  if (room > 0) return std::min(n_tokens, room);
  const bool ends = n_tokens == n_pending() || n_tokens < block_size;
  return ends ? n_tokens : n_tokens / block_size * block_size;
}

// Of all that is hot, with what this turn holds.
Evidence Turn::evidence_now() const {
  std::vector<BlockIndex> computing;
  for (const Recompute& next : recompute_) computing.push_back(next.block);
  const Position end = session_.end() + n_pending();
  return session_.evidence({.kept = kept_, .computing = computing, .reply = {reply_begin_.value_or(end), end}});
}

const TurnStats& Turn::settle() {
  EBB_CHECK(n_step_ == 0, "{} tokens under way", n_step_);
  // A block that is half computed is none.
  if (!recompute_.empty() && recompute_.front().n_done > 0) session_.residency_.evict(recompute_.front().block);
  recompute_.clear();
  count_prefix();
  session_.unfinished_ = std::move(pending_);
  pending_.clear();
  return stats_;
}

std::int32_t Turn::n_free_blocks() const {
  const std::int32_t per_block = session_.residency_.shape().frames_per_block();
  return std::min(session_.budget_blocks_ - session_.n_hot_blocks(), session_.parts_.pool.n_free() / per_block);
}

std::int32_t Turn::room_in_last_block() const {
  if (session_.n_blocks() == 0) return 0;
  const BlockIndex last = last_block();
  return session_.residency_.is_hot(last) ? session_.block_size() - session_.residency_.span(last).n_tokens() : 0;
}

BlockIndex Turn::last_block() const { return BlockIndex(session_.n_blocks() - 1); }

// Of n_tokens those that leave no more blocks open than there are open frames for.
std::int32_t Turn::fit_open_frames(std::int32_t n_tokens) const {
  const FramePool* const open_pool = session_.parts_.open_pool;
  const std::int32_t per_block = session_.residency_.shape().frames_per_block();
  if (open_pool == nullptr || open_pool->n_free() >= per_block) return n_tokens;
  const std::int32_t room = room_in_last_block();
  if (n_tokens <= room) return n_tokens;
  return room + (n_tokens - room) / session_.block_size() * session_.block_size();
}

Status Turn::no_open_block() const {
  const std::int32_t n_most = session_.parts_.open_pool->n_frames() / session_.residency_.shape().frames_per_block();
  return error(Code::kOutOfBudget,
               "all {} blocks that may be open at once are, each of another session; end some, or open the engine with "
               "more open blocks",
               n_most);
}

}  // namespace ebb
