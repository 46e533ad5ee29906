#include "session/session.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ebb {
namespace {

constexpr std::int32_t kMostAnchor = 1 << 30;
constexpr std::int32_t kMostTurns = 1 << 30;
constexpr std::int64_t kMostEpoch = std::int64_t{1} << 60;

}  // namespace

Status SessionOptions::validate() const {
  if (sink_tokens < 0 || recent_tokens < 0 || pinned_tokens < 0) {
    return error(Code::kInvalidArgument, "{} sink, {} recent and {} pinned tokens; none may be negative", sink_tokens,
                 recent_tokens, pinned_tokens);
  }
  if (!(most_pinned > 0.0 && most_pinned <= 1.0)) {
    return error(Code::kInvalidArgument, "{} of the budget pinned at most; give more than 0, and 1 or less",
                 most_pinned);
  }
  return watermarks.validate();
}

Session::Session(const SessionParts& parts, const SessionOptions& options)
    : parts_(parts),
      options_(options),
      residency_(parts.pool, parts.shape, parts.open_pool, options.adopts ? parts.hot : nullptr) {
  EBB_CHECK(options.validate().ok(), "{}", options.validate().message());
  if (!options.adopts) {
    parts_.hot = nullptr;
    parts_.starts = nullptr;
  }
  const std::int32_t pool_blocks = parts.pool.n_frames() / parts.shape.frames_per_block();
  budget_blocks_ = std::min(options.budget_tokens / parts.shape.block_size, pool_blocks);
  EBB_CHECK(budget_blocks_ >= 1, "a budget of {} tokens holds no block of {}", options.budget_tokens,
            parts.shape.block_size);
}

Session::~Session() {
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    if (residency_.is_hot(BlockIndex(b))) wait_for_copy(BlockIndex(b));
  }
}

std::int32_t Session::n_hot_blocks() const { return residency_.n_hot_frames() / parts_.shape.frames_per_block(); }

std::int32_t Session::n_hot_tokens() const {
  std::int32_t n_tokens = 0;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    if (residency_.is_hot(BlockIndex(b))) n_tokens += residency_.span(BlockIndex(b)).n_tokens();
  }
  return n_tokens;
}

std::int32_t Session::n_own_blocks() const {
  std::int32_t n_blocks = 0;
  for (std::int32_t b = 0; b < residency_.n_blocks(); ++b) {
    if (residency_.is_hot(BlockIndex(b)) && !residency_.is_shared(BlockIndex(b))) ++n_blocks;
  }
  return n_blocks;
}

std::span<const Token> Session::block_tokens(BlockIndex block) const {
  const Span span = residency_.span(block);
  return std::span(tokens_).subspan(span.begin.index(), static_cast<std::size_t>(span.n_tokens()));
}

bool Session::is_full(BlockIndex block) const { return residency_.span(block).n_tokens() == block_size(); }

Result<std::string> Session::block_text(BlockIndex block) const {
  return parts_.vocabulary.detokenize(block_tokens(block), SpecialTokens::kShow);
}

void Session::set_pinned(BlockIndex block, bool pinned) {
  EBB_CHECK(block.value() >= 0 && block.value() < n_blocks(), "block {} of {}", block.value(), n_blocks());
  blocks_[block.index()].pinned = pinned;
}

bool Session::is_pinned(BlockIndex block) const {
  const Span span = residency_.span(block);
  return blocks_[block.index()].pinned || span.begin.value() < options_.pinned_tokens || said_.merged(span).pinned;
}

std::vector<std::optional<double>> Session::scores() const {
  const Evidence now = evidence({.reply = {end(), end()}});
  const std::vector<double> hot = parts_.policy.score(now);
  std::vector<std::optional<double>> scores(static_cast<std::size_t>(n_blocks()));
  for (std::size_t i = 0; i < hot.size(); ++i) {
    if (hot[i] != kNeverLeaves) scores[now.blocks[i].block.index()] = hot[i];
  }
  return scores;
}

bool Session::is_open(BlockIndex block) const {
  if (parts_.open_pool == nullptr) return false;
  return residency_.is_hot(block) ? residency_.is_open(block) : !is_full(block);
}

std::size_t Session::block_bytes(BlockIndex block) const {
  const FrameMemory& memory = parts_.memory;
  return (is_open(block) ? memory.open_frame_bytes() : memory.frame_bytes()) *
         static_cast<std::size_t>(parts_.shape.frames_per_block());
}

void Session::read_frames(BlockIndex block, std::span<std::byte> bytes) const {
  const bool open = is_open(block);
  const std::size_t n = bytes.size() / static_cast<std::size_t>(parts_.shape.frames_per_block());
  for (std::int32_t layer = 0; layer < parts_.shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < parts_.shape.n_kv_heads; ++head) {
      if (open) {
        parts_.memory.read_open(residency_.open_frame(block, LayerIndex(layer), HeadIndex(head)), bytes.first(n));
      } else {
        parts_.memory.read(residency_.frame(block, LayerIndex(layer), HeadIndex(head)), bytes.first(n));
      }
      bytes = bytes.subspan(n);
    }
  }
}

// Moving an open block rounds its f16 rows, as it would of f16 frames.
void Session::count_move(BlockIndex block) {
  ++stats_.n_moved_blocks;
  if (is_quantised(parts_.memory.layout().row_type) && !is_open(block)) ++stats_.n_requantised_blocks;
}

bool Session::is_saved(BlockIndex block) const {
  return parts_.store != nullptr &&
         (parts_.store->contains(exact_name(block)) || parts_.store->is_pending(exact_name(block)));
}

bool Session::is_listed(BlockIndex block) const {
  if (parts_.hot == nullptr || !is_full(block)) return false;
  const HotBlock* const listed = parts_.hot->find(exact_name(block));
  return listed != nullptr && listed->anchor == anchor(block) &&
         std::ranges::equal(listed->tokens, block_tokens(block));
}

void Session::wait_for_copy(BlockIndex block) const {
  if (parts_.store != nullptr) parts_.store->wait(exact_name(block));
}

BlockState Session::state(BlockIndex block) const {
  const bool saved = is_saved(block);
  if (residency_.is_hot(block)) return saved ? BlockState::kClean : BlockState::kHot;
  return saved ? BlockState::kSaved : BlockState::kMissing;
}

// A block whose text cannot be told is one that no words find.
void Session::index_words(BlockIndex block) {
  // A word that the border cuts in two is one of this block, whole.
  constexpr std::int32_t kTokensBefore = 8;
  const Span span = residency_.span(block);
  const Position from(std::max(0, span.begin.value() - kTokensBefore));
  const std::span<const Token> before = std::span(tokens_).subspan(from.index(), (span.begin - from));
  const std::span<const Token> all = std::span(tokens_).subspan(from.index(), (span.end - from));
  const Result<std::string> head = parts_.vocabulary.detokenize(before, SpecialTokens::kShow);
  const Result<std::string> text = parts_.vocabulary.detokenize(all, SpecialTokens::kShow);
  if (!head.ok() || !text.ok() || !text->starts_with(*head)) {
    if (const Result<std::string> own = block_text(block); own.ok()) words_.add(block, *own);
    return;
  }
  std::size_t begin = head->size();
  while (begin > 0 && begin < text->size() && is_word_byte((*text)[begin - 1]) && is_word_byte((*text)[begin])) --begin;
  words_.add(block, std::string_view(*text).substr(begin));
}

void Session::index_restored_words() {
  if (!std::exchange(awaits_words_, false)) return;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    if (is_full(BlockIndex(b))) index_words(BlockIndex(b));
  }
}

Hold Session::hold(BlockIndex block, const TurnHolds& turn, bool pins_hold) const {
  const auto is_of = [&](std::span<const BlockIndex> blocks) {
    return std::ranges::find(blocks, block) != blocks.end();
  };
  const Span span = residency_.span(block);
  const bool is_pin = is_pinned(block);
  // The block that is still written to stays whatever happens.
  if (!is_full(block) || (is_pin && pins_hold) || is_of(turn.computing)) return Hold::kPinned;
  if (is_of(turn.kept)) return Hold::kKept;
  const bool is_sink = parts_.policy.wants_sinks() && span.begin.value() < options_.sink_tokens;
  const bool is_recent = span.end > end() - options_.recent_tokens;
  // Without its instructions a model is another one.
  const bool is_system = said_.merged(span).source == Source::kSystem;
  return is_pin || is_sink || is_recent || is_system || span.overlaps(turn.reply) ? Hold::kProtected : Hold::kNone;
}

Evidence Session::evidence(const TurnHolds& turn) const {
  Evidence evidence{.end = end()};
  auto n_pins_left = static_cast<std::int32_t>(options_.most_pinned * budget_blocks_);
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    if (!residency_.is_hot(block)) continue;
    const Part said = said_.merged(residency_.span(block));
    std::optional<double> focus;
    std::optional<double> attention;
    if (parts_.policy.wants_attention()) attention = blocks_[block.index()].attention;
    if (parts_.policy.wants_focus()) focus = focus_.similarity(words_, block);
    evidence.blocks.push_back({.block = block,
                               .span = residency_.span(block),
                               .hold = hold(block, turn, n_pins_left > 0),
                               .source = said.source,
                               .priority = said.priority,
                               .last_access = blocks_[block.index()].last_access,
                               .attention = attention,
                               .focus = focus,
                               .recovery = blocks_[block.index()].recovery});
    n_pins_left -= is_pinned(block) ? 1 : 0;
  }
  return evidence;
}

SessionImage Session::image() const {
  SessionImage image{.tokens = tokens_,
                     .unfinished = unfinished_,
                     .parts = said_.all(),
                     .next_anchor = next_anchor_,
                     .epoch = epoch_,
                     .n_turns = n_turns_,
                     .stats = stats_};
  for (const Block& block : blocks_) {
    image.blocks.push_back({.lineage = block.lineage,
                            .moves = block.moves,
                            .anchor = block.anchor,
                            .epoch = block.epoch,
                            .pinned = block.pinned});
  }
  return image;
}

Result<std::unique_ptr<Session>> Session::restore(const SessionParts& parts, const SessionOptions& options,
                                                  const SessionImage& image) {
  const std::int32_t size = parts.shape.block_size;
  const auto n_tokens = static_cast<std::int32_t>(image.tokens.size());
  const std::int32_t n_blocks = (n_tokens + size - 1) / size;
  if (std::ssize(image.blocks) != n_blocks) {
    return error(Code::kDamaged, "a session of {} tokens in {} blocks, and blocks of {} make {}", n_tokens,
                 image.blocks.size(), size, n_blocks);
  }
  for (const std::vector<Token>* tokens : {&image.tokens, &image.unfinished}) {
    for (const Token token : *tokens) {
      if (!parts.vocabulary.contains(token)) {
        return error(Code::kDamaged, "a session with token {}, which the vocabulary of {} does not have", token.value(),
                     parts.vocabulary.n_tokens());
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
  if (!is_epoch(image.epoch)) return error(Code::kDamaged, "a session in epoch {}", image.epoch);
  if (image.next_anchor < Position(0) || image.next_anchor > Position(kMostAnchor) || image.n_turns < 0 ||
      image.n_turns > kMostTurns) {
    return error(Code::kDamaged, "a session that goes on at anchor {} after {} turns", image.next_anchor.value(),
                 image.n_turns);
  }
  auto session = std::make_unique<Session>(parts, options);
  session->tokens_ = image.tokens;
  session->unfinished_ = image.unfinished;
  session->n_turns_ = image.n_turns;
  session->next_anchor_ = image.next_anchor;
  session->epoch_ = image.epoch;
  session->stats_ = image.stats;
  session->stats_.peak_hot_blocks = 0;  // the peak under this budget, not under an earlier one
  for (const Part& part : image.parts) session->said_.add(part);
  for (std::int32_t b = 0; b < n_blocks; ++b) {
    const BlockIndex block(b);
    session->residency_.add_cold_block(Position(b * size), std::min(size, n_tokens - b * size));
    const SessionImage::Block& saved = image.blocks[block.index()];
    std::int64_t n_in_runs = 0;
    for (const Lineage::Run& run : saved.lineage.runs()) n_in_runs += std::max(0, run.n_tokens);
    if (n_in_runs != session->residency_.span(block).n_tokens()) {
      return error(Code::kDamaged, "block {} of a session has {} tokens and a lineage of {}", b,
                   session->residency_.span(block).n_tokens(), n_in_runs);
    }
    if (saved.anchor < Position(0) || saved.anchor > Position(kMostAnchor - size)) {
      return error(Code::kDamaged, "block {} of a session has its keys at {}", b, saved.anchor.value());
    }
    if (!is_epoch(saved.epoch)) return error(Code::kDamaged, "block {} of a session in epoch {}", b, saved.epoch);
    session->blocks_.push_back({.lineage = saved.lineage,
                                .moves = saved.moves,
                                .anchor = saved.anchor,
                                .epoch = saved.epoch,
                                .pinned = saved.pinned});
  }
  return session;
}

void Session::check_invariants() const {
  residency_.check_invariants();
  EBB_CHECK(residency_.end() == end(), "frames up to {}, tokens up to {}", residency_.end().value(), end().value());
  EBB_CHECK(blocks_.size() == static_cast<std::size_t>(n_blocks()), "{} lineages, {} blocks", blocks_.size(),
            n_blocks());
  EBB_CHECK(residency_.n_hot_frames() <= budget_blocks_ * parts_.shape.frames_per_block(),
            "{} hot frames over {} blocks", residency_.n_hot_frames(), budget_blocks_);
  for (std::int32_t b = 0; b + 1 < n_blocks(); ++b) {
    EBB_CHECK(is_full(BlockIndex(b)), "block {} is neither full nor the last", b);
  }
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    if (!residency_.hot_name(block)) continue;
    EBB_CHECK(residency_.hot_name(block) == exact_name(block) && is_listed(block) && !blocks_[block.index()].turned,
              "block {} is hot for others as what it is not", b);
  }
  if (n_blocks() > 0 && !is_full(BlockIndex(n_blocks() - 1)) && residency_.is_hot(BlockIndex(n_blocks() - 1))) {
    const BlockIndex last(n_blocks() - 1);
    EBB_CHECK(anchor(last) + residency_.span(last).n_tokens() == next_anchor_,
              "the last block ends at anchor {}, and new tokens go on at {}",
              (anchor(last) + residency_.span(last).n_tokens()).value(), next_anchor_.value());
  }
  for (std::int32_t b = 0; parts_.open_pool != nullptr && b < n_blocks(); ++b) {
    EBB_CHECK(!residency_.is_hot(BlockIndex(b)) || is_full(BlockIndex(b)) || residency_.is_open(BlockIndex(b)),
              "block {} is neither full nor open", b);
  }
}

}  // namespace ebb
