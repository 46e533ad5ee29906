#include "session/session.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/to_size.h"

namespace ebb {
namespace {

constexpr std::int32_t kMostAnchor = 1 << 30;
constexpr std::int32_t kMostTurns = 1 << 30;
constexpr std::int64_t kMostEpoch = std::int64_t{1} << 60;

// The end of a message says what it is about; the rest of a long one is what was read.
constexpr std::size_t kHeardBytes = 4096;

// How fast what was recalled becomes a block like any other, per turn. EVOKE's value.
constexpr double kRecoveryKept = 0.7;

Hash128 identity_of(const SessionDeps& deps, const std::string& tenant) {
  Hasher hasher;
  hasher.add(deps.model).add(deps.memory.layout().fingerprint());
  if (!tenant.empty()) hasher.add_text(tenant);
  return hasher.finish();
}

Keeper::Deps keeper_deps(const SessionDeps& deps, const SessionOptions& options) {
  return {.sources = {.pool = deps.pool, .open_pool = deps.open_pool, .shared = options.adopts ? deps.hot : nullptr},
          .shape = deps.shape,
          .identity = identity_of(deps, options.tenant),
          .io = {.memory = deps.memory, .store = deps.store, .mover = deps.mover, .model = deps.model},
          .starts = options.adopts ? deps.starts : nullptr,
          .state = deps.state,
          .when_fetched = deps.when_fetched,
          .remains = options.remains,
          .place = options.recall_place};
}

}  // namespace

Status SessionOptions::validate() const {
  if (sink_tokens < 0 || recent_tokens < 0 || pinned_tokens < 0) {
    return error(Code::kInvalidArgument, "{} sink, {} recent and {} pinned tokens; none may be negative", sink_tokens,
                 recent_tokens, pinned_tokens);
  }
  if (renewed_tokens < 0 || renewed_tokens > kMostRenewed) {
    return error(Code::kInvalidArgument, "{} renewed tokens; give 0 to {}", renewed_tokens, kMostRenewed);
  }
  if (prompt_budget_tokens < 0) {
    return error(Code::kInvalidArgument, "a prompt budget of {} tokens; give 0 or more", prompt_budget_tokens);
  }
  if (!(most_pinned > 0.0 && most_pinned <= 1.0)) {
    return error(Code::kInvalidArgument, "{} of the budget pinned at most; give more than 0, and 1 or less",
                 most_pinned);
  }
  return watermarks.validate();
}

Session::Session(const SessionDeps& deps, const SessionOptions& options)
    : deps_(deps),
      options_(options),
      policy_(with_list(options.policy == nullptr ? deps.policy : options.policy, options.budget_list)),
      own_budget_(std::min(FrameBudget::of_tokens(options.budget_tokens, deps.shape),
                           FrameBudget{.n_frames = deps.pool.n_frames() / deps.shape.frames_per_block() *
                                                   deps.shape.frames_per_block()})),
      prompt_budget_(FrameBudget::of_tokens(options.prompt_budget_tokens, deps.shape)),
      budget_(own_budget_),
      largest_budget_(own_budget_),
      lent_(deps.pool),
      keeper_(keeper_deps(deps, options)),
      finder_({.hot = keeper_.hot(),
               .io = keeper_.io(),
               .vocabulary = deps.vocabulary,
               .shape = deps_.shape,
               .scorer = options.remains == Remains::kNothing ? nullptr : deps.scorer,
               .room = deps.digest_room}),
      meanings_({.hot = keeper_.hot(),
                 .vocabulary = deps.vocabulary,
                 .source = options.remains == Remains::kNothing ? nullptr : deps.meanings,
                 .notify = deps.when_fetched}) {
  EBB_CHECK(options.validate().ok(), "{}", options.validate().message());
  EBB_CHECK(budget_.n_frames >= deps.shape.frames_per_block(), "a budget of {} tokens holds no block of {}",
            options.budget_tokens, deps.shape.block_size);
  EBB_CHECK(!policy_->asks().output_lengths || deps.output_lengths != nullptr,
            "policy {} asks for lengths behind output matrices, which nobody has", policy_->name());
  const Status listed = options.budget_list == nullptr
                            ? Status()
                            : options.budget_list->validate(deps.shape.n_layers, deps.shape.n_kv_heads);
  EBB_CHECK(listed.ok(), "{}", listed.message());
  if (policy_->asks().attention())
    attention_.emplace(deps.shape.n_heads(), policy_->asks(), block_size(), to_size(deps.shape.n_kv_heads));
  begin_queries();
}

Session::~Session() = default;

// --- looking ---

std::int32_t Session::n_hot_tokens() const {
  std::int64_t n_in_heads = 0;
  for (const BlockIndex block : hot().hot_blocks()) {
    const std::int64_t n_tokens = hot().span(block).n_tokens();
    const std::int64_t n_heads = deps_.shape.frames_per_block();
    n_in_heads += n_tokens * (hot().is_hot(block) ? n_heads : hot().n_hot_frames(block));
  }
  return static_cast<std::int32_t>(n_in_heads / deps_.shape.frames_per_block());
}

std::int32_t Session::n_visible_tokens() const {
  std::int32_t n_tokens = 0;
  for (const BlockIndex block : hot().hot_blocks()) n_tokens += hot().span(block).n_tokens();
  return n_tokens;
}

std::int32_t Session::peak_hot_tokens() const {
  return FrameBudget{.n_frames = stats().peak_hot_frames}.n_tokens(deps_.shape);
}

Result<std::string> Session::block_text(BlockIndex block) const {
  return deps_.vocabulary.detokenize(hot().block_tokens(block), SpecialTokens::kShow);
}

// Its place in blocks_of_parts(name): several parts may have the name, as what is left of a message does whose end was edited.
std::string Session::block_name(BlockIndex block) const {
  const std::string name = said_.merged(hot().span(block)).name;
  std::int32_t n_before = 0;
  std::int32_t next = 0;
  for (const Span span : said_.find(name)) {
    const std::int32_t from = std::max(next, span.begin.value() / block_size());
    const std::int32_t end = deps_.shape.n_blocks(span.end.value());
    if (block.value() < end) {
      n_before += block.value() - from;
      break;
    }
    n_before += std::max(0, end - from);
    next = std::max(next, end);
  }
  return fmt::format("{}#{}", name, n_before);
}

std::vector<BlockIndex> Session::blocks_of_parts(std::string_view name) const {
  std::vector<BlockIndex> blocks;
  for (const Span span : said_.find(name)) {
    const std::int32_t last = std::min(deps_.shape.n_blocks(span.end.value()), n_blocks());
    for (std::int32_t b = span.begin.value() / block_size(); b < last; ++b) {
      if (blocks.empty() || blocks.back() < BlockIndex(b)) blocks.emplace_back(b);
    }
  }
  return blocks;
}

std::vector<BlockIndex> Session::find_blocks(std::string_view name) const {
  std::vector<BlockIndex> blocks = blocks_of_parts(name);
  const std::size_t mark = name.rfind('#');
  if (!blocks.empty() || mark == std::string_view::npos) return blocks;

  std::size_t index = 0;
  const std::string_view digits = name.substr(mark + 1);
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (failure != std::errc() || end != digits.data() + digits.size()) return {};
  const std::vector<BlockIndex> all = blocks_of_parts(name.substr(0, mark));
  return index < all.size() ? std::vector{all[index]} : std::vector<BlockIndex>{};
}

void Session::set_pinned(BlockIndex block, bool pinned) { keeper_.hot().notes(block).pinned = pinned; }

bool Session::is_pinned(BlockIndex block) const {
  const Span span = hot().span(block);
  return hot().notes(block).pinned || span.begin.value() < options_.pinned_tokens || said_.merged(span).pinned;
}

BlockState Session::state(BlockIndex block) const {
  const bool saved = keeper_.io().is_saved(block);
  if (hot().is_hot(block)) return saved ? BlockState::kClean : BlockState::kHot;
  if (hot().n_hot_frames(block) > 0) return BlockState::kPartly;
  return saved ? BlockState::kSaved : BlockState::kMissing;
}

void Session::read_frames(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes) const {
  keeper_.io().read(block, heads, bytes);
}

void Session::read_frames(BlockIndex block, std::span<std::byte> bytes) const {
  read_frames(block, deps_.shape.all_heads(), bytes);
}

Origin Session::origin(BlockIndex block, const Acts& acts) const {
  const auto is_of = [&](const std::vector<BlockIndex>& blocks) {
    return std::ranges::find(blocks, block) != blocks.end();
  };
  if (is_unseen(block)) return is_cleared(block) ? Origin::kCleared : Origin::kHole;
  if (is_of(acts.recomputed)) return Origin::kRecomputed;
  if (is_of(acts.shared)) return Origin::kShared;
  if (!is_of(acts.recalled)) return hot().is_hot(block) ? Origin::kHotAlready : Origin::kPartlyHot;
  return hot().is_turned(block) ? Origin::kRecalledApproximate : Origin::kRecalledExact;
}

TokenOrigins Session::origins(const Acts& acts) const {
  TokenOrigins from;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    from[origin(BlockIndex(b), acts)] += hot().span(BlockIndex(b)).n_tokens();
  }
  return from;
}

// --- what is said ---

std::vector<Token> Session::take_unfinished() { return std::exchange(unfinished_, {}); }

void Session::say(const Prompt& prompt, std::int32_t n_held, Position begin) {
  if (prompt.n_tokens() > n_held) {
    ++n_turns_;
    for (std::int32_t b = 0; b < n_blocks(); ++b) keeper_.hot().notes(BlockIndex(b)).recovery *= kRecoveryKept;
  }
  cleared_ = find_cleared(prompt, n_held, begin);
  // What is held already, and asked now to be held more firmly: by name, since a reply that was held as written has other
  // positions than in the history.
  std::int32_t n_said = 0;
  const auto is_new = [&](const PromptPart& part) { return n_held <= std::exchange(n_said, n_said + part.n_tokens); };
  said_.hold_as_asked({prompt.parts().begin(), std::ranges::find_if(prompt.parts(), is_new)});
  std::span<const Token> tokens = prompt.tokens();
  for (const PromptPart& part : prompt.parts()) {
    const std::span<const Token> own = tokens.first(static_cast<std::size_t>(part.n_tokens));
    tokens = tokens.subspan(own.size());
    const std::int32_t n_new = part.n_tokens - std::min(n_held, part.n_tokens);
    n_held -= part.n_tokens - n_new;
    if (n_new == 0) continue;
    said_.add({.span = {begin, begin + n_new},
               .source = part.source,
               .name = part.name.empty() ? fmt::format("turn{}", n_turns_) : part.name,
               .priority = part.priority,
               .pinned = part.pinned});
    begin = begin + n_new;
    if (part.source != Source::kUser) continue;
    const std::size_t n = std::min(static_cast<std::size_t>(n_new), kHeardBytes);
    const Result<std::string> text = deps_.vocabulary.detokenize(own.last(n), SpecialTokens::kHide);
    if (text.ok()) focus_.hear(std::string_view(*text).substr(text->size() - std::min(text->size(), kHeardBytes)));
  }
}

void Session::begin_reply(Position begin) {
  said_.add({.span = {begin, begin}, .source = Source::kAssistant, .name = fmt::format("reply{}", n_turns_)});
}

void Session::note_full(std::span<const BlockIndex> blocks) {
  for (const BlockIndex block : blocks) {
    finder_.note_full(block);
    meanings_.note_full(block);
  }
}

// --- images ---

SessionImage Session::image() const {
  SessionImage image{.tokens = {tokens().begin(), tokens().end()},
                     .unfinished = unfinished_,
                     .parts = said_.all(),
                     .next_anchor = hot().next_anchor(),
                     .epoch = hot().epoch(),
                     .n_turns = n_turns_,
                     .stats = stats()};
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockNotes& notes = hot().notes(BlockIndex(b));
    image.blocks.push_back({.info = hot().info(BlockIndex(b)),
                            .pinned = notes.pinned,
                            .age = n_steps_ - notes.last_access,
                            .attention = notes.attention,
                            .recovery = notes.recovery});
  }
  if (keeper_.snapshots()) image.borders = keeper_.snapshots()->borders();
  if (attention_) image.attention = attention_->image();
  if (queries_) image.queries = queries_->image();
  image.reliances = reliances_;
  return image;
}

Result<std::unique_ptr<Session>> Session::restore(const SessionDeps& deps, const SessionOptions& options,
                                                  const SessionImage& image) {
  const std::int32_t size = deps.shape.block_size;
  const auto n_tokens = static_cast<std::int32_t>(image.tokens.size());
  const std::int32_t n_blocks = deps.shape.n_blocks(n_tokens);
  if (std::ssize(image.blocks) != n_blocks) {
    return error(Code::kDamaged, "a session of {} tokens in {} blocks, and blocks of {} make {}", n_tokens,
                 image.blocks.size(), size, n_blocks);
  }
  for (const std::vector<Token>* tokens : {&image.tokens, &image.unfinished}) {
    for (const Token token : *tokens) {
      if (!deps.vocabulary.contains(token)) {
        return error(Code::kDamaged, "a session with token {}, which the vocabulary of {} does not have", token.value(),
                     deps.vocabulary.n_tokens());
      }
    }
  }
  Position said_end(0);
  const Position end(n_tokens + static_cast<std::int32_t>(image.unfinished.size()));
  for (const Part& part : image.parts) {
    const bool fits = part.span.begin >= said_end && part.span.end >= part.span.begin && part.span.end <= end;
    if (!fits || !std::isfinite(part.priority) || part.priority < 0.0) {
      return error(Code::kDamaged, "a session with a part from {} to {} behind {}, up to {}, of priority {}",
                   part.span.begin.value(), part.span.end.value(), said_end.value(), end.value(), part.priority);
    }
    said_end = part.span.end;
  }
  const auto is_epoch = [](std::int64_t epoch) { return epoch >= 0 && epoch <= kMostEpoch; };
  const auto is_anchor = [&](Position p) { return p >= Position(0) && p <= Position(kMostAnchor - size); };
  if (!is_epoch(image.epoch)) return error(Code::kDamaged, "a session in epoch {}", image.epoch);
  if (!is_anchor(image.next_anchor) || image.n_turns < 0 || image.n_turns > kMostTurns) {
    return error(Code::kDamaged, "a session that goes on at anchor {} after {} turns", image.next_anchor.value(),
                 image.n_turns);
  }
  if (!image.borders.empty() && std::ssize(image.borders) != n_tokens / size) {
    return error(Code::kDamaged, "a session with {} snapshots of {} tokens", image.borders.size(), n_tokens);
  }
  auto session = std::make_unique<Session>(deps, options);
  session->n_turns_ = image.n_turns;
  session->finder_.await();
  session->keeper_.stats() = image.stats;
  session->keeper_.stats().peak_hot_frames = 0;  // the peak under this budget, not under an earlier one
  HotSet& hot = session->keeper_.hot();
  for (std::int32_t b = 0; b < n_blocks; ++b) {
    const SessionImage::Block& saved = image.blocks[static_cast<std::size_t>(b)];
    const std::int32_t n_in_block = std::min(size, n_tokens - b * size);
    std::int64_t n_in_runs = 0;
    for (const Lineage::Run& run : saved.info.lineage.runs()) n_in_runs += std::max(0, run.n_tokens);
    if (n_in_runs != n_in_block) {
      return error(Code::kDamaged, "block {} of a session has {} tokens and a lineage of {}", b, n_in_block, n_in_runs);
    }
    if (!is_anchor(saved.info.anchor)) {
      return error(Code::kDamaged, "block {} of a session has its keys at {}", b, saved.info.anchor.value());
    }
    if (!is_epoch(saved.info.epoch)) {
      return error(Code::kDamaged, "block {} of a session in epoch {}", b, saved.info.epoch);
    }
    const auto own = std::span(image.tokens).subspan(static_cast<std::size_t>(b * size));
    const BlockIndex block = hot.add_cold(own.first(static_cast<std::size_t>(n_in_block)), saved.info);
    const auto is_share = [](double value) { return value >= 0.0 && value <= 1.0; };
    if (saved.age < 0 || saved.age > kMostEpoch || !is_share(saved.attention) || !is_share(saved.recovery)) {
      return error(Code::kDamaged,
                   "block {} of a session, accessed {} steps ago, with {} of attention and {} of recovery", b,
                   saved.age, saved.attention, saved.recovery);
    }
    hot.notes(block) = {
        .pinned = saved.pinned, .last_access = -saved.age, .attention = saved.attention, .recovery = saved.recovery};
  }
  if (session->attention_) EBB_RETURN_IF_ERROR(session->attention_->restore(image.attention, n_blocks));
  if (session->queries_) EBB_RETURN_IF_ERROR(session->queries_->restore(image.queries));
  if (image.reliances) {
    session->note_reliances();
    const bool fits = image.reliances->end().value() <= n_tokens &&
                      image.reliances->n_slice_tokens() == StepReliances::slice_tokens(size);
    if (!fits) return error(Code::kDamaged, "a session of {} tokens that knows on what more of them rely", n_tokens);
    if (session->reliances_) session->reliances_ = image.reliances;
  }
  hot.set_next_anchor(image.next_anchor);
  hot.set_epoch(image.epoch);
  hot.look_from(hot.end());
  if (session->keeper_.snapshots()) {
    session->keeper_.snapshots()->restore(image.borders);
    session->cut(hot.end());
  }
  session->unfinished_.insert(session->unfinished_.end(), image.unfinished.begin(), image.unfinished.end());
  for (const Part& part : image.parts) session->said_.add(part);
  return session;
}

void Session::check_invariants() const {
  hot().check_invariants();
  EBB_CHECK(hot().n_hot_frames() <= budget_.n_frames, "{} hot frames over {}", hot().n_hot_frames(), budget_.n_frames);
  EBB_CHECK(!keeper_.snapshots() || keeper_.snapshots()->end() == end(), "a state that is not behind {} tokens",
            end().value());
}

}  // namespace ebb
