#include "session/turn.h"

#include <algorithm>

#include "base/clock.h"
#include "policy/choose.h"

namespace ebb {
namespace {

// A step brings at most this share of the budget, so that its tokens still see most of what was hot. Larger: faster
// prefill, and more of the past is evicted before it could be looked at.
constexpr std::int32_t kStepsPerBudget = 4;

}  // namespace

Turn::Turn(Session& session, std::span<const Token> prompt)
    : session_(session), first_(session.end()), end_(session.end()), pending_(std::move(session.unfinished_)) {
  session.unfinished_.clear();
  pending_.insert(pending_.end(), prompt.begin(), prompt.end());
  n_prompt_ = n_pending();
}

void Turn::recall(std::string_view question, std::int32_t max_blocks) {
  if (session_.parts_.tier == nullptr) return;
  const Stopwatch watch;
  // Half of the budget stays for what the turn brings.
  const std::int32_t n_most = std::min(max_blocks, session_.budget_blocks_ / 2);
  for (const Scored& candidate : session_.words_.rank(question)) {
    if (static_cast<std::int32_t>(kept_.size()) >= n_most) break;
    if (!session_.residency_.is_hot(candidate.block)) {
      if (!recall_block(candidate.block).ok()) {
        ++session_.stats_.n_missed_recalls;
        continue;
      }
      stats_.recalled.push_back(candidate.block);
    }
    kept_.push_back(candidate.block);
  }
  stats_.recall_ms += watch.elapsed_ms();
}

Status Turn::recall_block(BlockIndex block) {
  EBB_ASSIGN_OR_RETURN(const Record record, session_.parts_.tier->get(session_.record_key(block)));
  const Residency::Shape& shape = session_.residency_.shape();
  const std::size_t frame_bytes = session_.parts_.memory.frame_bytes();
  if (record.begin != session_.residency_.span(block).begin ||
      !std::ranges::equal(record.tokens, session_.block_tokens(block)) || record.n_frames != shape.frames_per_block() ||
      record.frames.size() != frame_bytes * static_cast<std::size_t>(record.n_frames)) {
    return error(Code::kDamaged, "the record of block {} holds something else", block.value());
  }
  make_room(1);
  if (n_free_blocks() < 1) return error(Code::kOutOfBudget, "no room to recall block {}", block.value());
  EBB_RETURN_IF_ERROR(session_.residency_.admit(block));
  std::span<const std::byte> bytes = record.frames;
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      const FrameIndex frame = session_.residency_.frame(block, LayerIndex(layer), HeadIndex(head));
      session_.parts_.memory.write(frame, bytes.first(frame_bytes));
      bytes = bytes.subspan(frame_bytes);
    }
  }
  ++session_.stats_.n_recalled_blocks;
  return {};
}

Result<SequenceInput> Turn::begin_step(std::int32_t max_rows) {
  EBB_CHECK(n_step_ == 0 && n_pending() > 0 && max_rows > 0, "{} tokens under way, {} pending", n_step_, n_pending());
  EBB_CHECK(session_.end() == end_, "two turns of one session: it ends at {}, this turn left it at {}",
            session_.end().value(), end_.value());
  const std::int32_t block_size = session_.block_size();
  const std::int32_t n_context_left = session_.n_ctx_train() - session_.end().value();
  if (n_context_left < 1) {
    return error(Code::kOutOfBudget, "the session has {} tokens, as many as the model was trained for; start a new one",
                 session_.end().value());
  }
  const std::int32_t share = std::max(1, session_.budget_blocks_ / kStepsPerBudget) * block_size;
  std::int32_t n_tokens = std::min({n_pending(), max_rows, share, n_context_left});

  const std::int32_t n_new_blocks = (n_tokens - room_in_last_block() + block_size - 1) / block_size;
  if (n_new_blocks > 0) {
    make_room(n_new_blocks);
    n_tokens = std::min(n_tokens, room_in_last_block() + n_free_blocks() * block_size);
  }
  if (n_tokens < 1) {
    return error(
        Code::kOutOfBudget,
        "no room for a token: this session has {} hot blocks of its {}, and {} of {} frames of the pool are free; "
        "raise the budget, or end other sessions",
        session_.n_hot_blocks(), session_.budget_blocks_, session_.parts_.pool.n_free(),
        session_.parts_.pool.n_frames());
  }
  place(n_tokens);
  n_step_ = n_tokens;
  return SequenceInput{.tokens = std::span(pending_).first(static_cast<std::size_t>(n_tokens)),
                       .first = session_.end(),
                       .residency = &session_.residency_,
                       .n_outputs = n_tokens == n_pending() ? 1 : 0};
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
}

void Turn::open_block(Position begin) {
  const Result<BlockIndex> opened = session_.residency_.open_block(begin);
  EBB_CHECK(opened.ok(), "room was made for it: {}", opened.status().message());
  session_.blocks_.emplace_back();
  const Residency::Shape& shape = session_.residency_.shape();
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      session_.parts_.memory.prepare(session_.residency_.frame(*opened, LayerIndex(layer), HeadIndex(head)));
    }
  }
}

void Turn::end_step() {
  EBB_CHECK(n_step_ > 0, "no step under way");
  Position next = session_.end();
  const auto begin = pending_.begin();
  session_.tokens_.insert(session_.tokens_.end(), begin, begin + n_step_);
  pending_.erase(begin, begin + n_step_);
  while (next < session_.end()) {
    const BlockIndex block(next.value() / session_.block_size());
    const Position end = std::min(session_.end(), session_.residency_.span(block).end);
    session_.blocks_[block.index()].lineage.add(session_.visible_before(block), end - next);
    if (session_.is_full(block)) {
      // A block whose text cannot be told is one that no words find.
      if (const Result<std::string> text = session_.block_text(block); text.ok()) session_.words_.add(block, *text);
    }
    next = end;
  }
  n_step_ = 0;
  end_ = session_.end();
  if (n_pending() == 0) count_prefix();
}

void Turn::abandon_step() {
  while (session_.residency_.end() > session_.end()) {
    const BlockIndex last(session_.n_blocks() - 1);
    const Span span = session_.residency_.span(last);
    const std::int32_t n_kept = std::max(0, session_.end() - span.begin);
    session_.residency_.truncate_last(n_kept);
    if (n_kept == 0) session_.blocks_.pop_back();
  }
  n_step_ = 0;
}

void Turn::push(Token token) {
  ++stats_.n_generated;
  pending_.push_back(token);
}

const TurnStats& Turn::settle() {
  EBB_CHECK(n_step_ == 0, "{} tokens under way", n_step_);
  count_prefix();
  session_.unfinished_ = std::move(pending_);
  pending_.clear();
  return stats_;
}

// Law 7: every token that was there before the turn is hot already, recalled, or a hole.
void Turn::count_prefix() {
  if (prefix_counted_) return;
  prefix_counted_ = true;
  stats_.n_new = std::min(n_prompt_, session_.end() - first_);
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const std::int32_t n = intersect(session_.residency_.span(BlockIndex(b)), {Position(0), first_}).n_tokens();
    if (!session_.residency_.is_hot(BlockIndex(b))) {
      stats_.n_holes += n;
    } else if (std::ranges::find(stats_.recalled, BlockIndex(b)) != stats_.recalled.end()) {
      stats_.n_recalled_exact += n;
    } else {
      stats_.n_hot_already += n;
    }
  }
}

std::int32_t Turn::n_free_blocks() const {
  const std::int32_t per_block = session_.residency_.shape().frames_per_block();
  return std::min(session_.budget_blocks_ - session_.n_hot_blocks(), session_.parts_.pool.n_free() / per_block);
}

std::int32_t Turn::room_in_last_block() const {
  if (session_.n_blocks() == 0) return 0;
  const BlockIndex last(session_.n_blocks() - 1);
  return session_.residency_.is_hot(last) ? session_.block_size() - session_.residency_.span(last).n_tokens() : 0;
}

Evidence Turn::evidence() const {
  Evidence evidence{.end = session_.end()};
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (!session_.residency_.is_hot(block)) continue;
    // The block that is still written to, and what this turn asked for, stay.
    const bool pinned = !session_.is_full(block) || is_kept(block);
    evidence.blocks.push_back({.block = block, .span = session_.residency_.span(block), .pinned = pinned});
  }
  return evidence;
}

bool Turn::is_kept(BlockIndex block) const { return std::ranges::find(kept_, block) != kept_.end(); }

void Turn::make_room(std::int32_t n_blocks) {
  const std::int32_t n_missing = n_blocks - n_free_blocks();
  if (n_missing <= 0) return;
  for (const BlockIndex victim : choose_victims(session_.parts_.policy, evidence(), n_missing)) evict(victim);
}

void Turn::evict(BlockIndex block) {
  // A tier that takes nothing makes the block missing, which costs work and never truth (law 8).
  if (save(block).ok()) ++session_.stats_.n_saved_blocks;
  session_.residency_.evict(block);
  ++session_.stats_.n_evicted_blocks;
  stats_.evicted.push_back(block);
}

Status Turn::save(BlockIndex block) {
  RamTier* tier = session_.parts_.tier;
  if (tier == nullptr) return error(Code::kNotFound, "no tier to save block {} to", block.value());
  const RecordKey key = session_.record_key(block);
  if (tier->touch(key.name)) return {};
  const Residency::Shape& shape = session_.residency_.shape();
  const std::size_t frame_bytes = session_.parts_.memory.frame_bytes();
  const auto tokens = session_.block_tokens(block);
  Record record{.key = key,
                .begin = session_.residency_.span(block).begin,
                .tokens = {tokens.begin(), tokens.end()},
                .n_frames = shape.frames_per_block()};
  record.frames.resize(frame_bytes * static_cast<std::size_t>(shape.frames_per_block()));
  std::span<std::byte> bytes = record.frames;
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      const FrameIndex frame = session_.residency_.frame(block, LayerIndex(layer), HeadIndex(head));
      session_.parts_.memory.read(frame, bytes.first(frame_bytes));
      bytes = bytes.subspan(frame_bytes);
    }
  }
  return tier->put(record);
}

}  // namespace ebb
