// The anchors of a turn: which rotary positions blocks carry, and what turns them there.
//
//   anchors grow with the tokens          0 ........ next_anchor ........ n_ctx_train
//   rebase: hot blocks close together     0 .. hot . next_anchor ........ n_ctx_train      a new epoch
//   a cold block of an older epoch, or    ... open block | recalled | open block moved up | what comes next
//   one that is recalled to the tail
//
// A block is turned from its saved bytes where there are any, so that it is rounded once however often it moves.
#include <algorithm>

#include "session/turn.h"

namespace ebb {
namespace {

// Of the trained context, what hot blocks may fill after a rebase. More: rebases come often. Less: a session with a large
// budget loses much at once.
constexpr std::int32_t kRebaseShare = 2;

}  // namespace

// Makes sure that n_tokens more anchors lie inside the trained context.
Status Turn::make_anchors_for(std::int32_t n_tokens) {
  const std::int32_t n_ctx = session_.n_ctx_train();
  if (session_.next_anchor_.value() + n_tokens <= n_ctx) return {};
  if (!session_.can_rebase()) {
    return error(Code::kOutOfBudget,
                 "the session has {} tokens, as many as the model was trained for; start a new one, or allow rebasing, "
                 "which goes on with approximate positions",
                 session_.end().value());
  }
  rebase();
  if (session_.next_anchor_.value() + n_tokens <= n_ctx) return {};
  return error(Code::kOutOfBudget,
               "{} hot tokens are held, and the model was trained for {}; unpin some, or lower the budget",
               session_.n_hot_tokens(), n_ctx);
}

void Turn::rebase() {
  const std::int32_t n_most = session_.n_ctx_train() / kRebaseShare / session_.block_size();
  if (const std::int32_t n_over = session_.n_hot_blocks() - n_most; n_over > 0) {
    const Evidence evidence = evidence_now();
    for (const BlockIndex victim : choose_victims(session_.parts_.policy, evidence, n_over, n_over)) evict(victim);
  }
  ++session_.stats_.n_rebases;
  compact();
}

// Hot blocks close up in position order, from anchor 0.
void Turn::compact() {
  Position next(0);
  ++session_.epoch_;
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (!session_.residency_.is_hot(block)) continue;
    move_block(block, next);
    if (!session_.residency_.is_hot(block)) continue;
    session_.blocks_[block.index()].epoch = session_.epoch_;
    next = next + session_.residency_.span(block).n_tokens();
  }
  session_.next_anchor_ = next;
}

// Whether a cold block comes back where it was: while its anchor means something.
bool Turn::keeps_anchor(BlockIndex block) const {
  return session_.options_.recall_place == RecallPlace::kOriginal &&
         session_.blocks_[block.index()].epoch == session_.epoch_;
}

// Decides the anchor that a cold block comes back with: its own, or the tail's.
void Turn::place_cold(BlockIndex block) {
  if (!keeps_anchor(block)) place_at_tail(block);
}

// The block that new tokens join, before it comes back: where they go on, since its anchors must go on without a gap.
void Turn::place_cold_open(BlockIndex block) {
  const bool is_of_epoch = session_.blocks_[block.index()].epoch == session_.epoch_;
  const Position end_anchor = session_.anchor(block) + session_.residency_.span(block).n_tokens();
  if (!is_of_epoch || end_anchor != session_.next_anchor_) place_at_tail(block);
}

void Turn::place_at_tail(BlockIndex block) {
  Session::Block& b = session_.blocks_[block.index()];
  b.anchor = session_.next_anchor_;
  b.epoch = session_.epoch_;
  session_.next_anchor_ = session_.next_anchor_ + session_.residency_.span(block).n_tokens();
}

// After cold blocks came back.
void Turn::settle_anchors() {
  if (session_.options_.recall_place == RecallPlace::kCompacted && !stats_.recalled.empty()) return compact();
  move_open_block();
}

// After others were placed at the tail: the block that is written to goes behind them, since its anchors must go on
// without a gap.
void Turn::move_open_block() {
  if (session_.n_blocks() == 0) return;
  const BlockIndex last(session_.n_blocks() - 1);
  if (session_.is_full(last) || !session_.residency_.is_hot(last)) return;
  const std::int32_t n_tokens = session_.residency_.span(last).n_tokens();
  if (session_.anchor(last) + n_tokens == session_.next_anchor_) return;
  move_block(last, session_.next_anchor_);
  session_.next_anchor_ = session_.next_anchor_ + n_tokens;
}

// Where others use its frames and there are none for a copy, it leaves instead, however firmly it is held.
void Turn::move_block(BlockIndex block, Position anchor) {
  Session::Block& b = session_.blocks_[block.index()];
  if (b.anchor == anchor) return;
  EBB_CHECK(session_.parts_.mover != nullptr, "block {} cannot be moved: no mover", block.value());
  session_.wait_for_copy(block);
  std::vector<std::byte> bytes(session_.block_bytes(block));
  const std::optional<Position> saved = read_saved(block, bytes);
  const bool from_record = saved.has_value();
  const Position from = saved.value_or(b.anchor);
  if (!from_record) session_.read_frames(block, bytes);
  if (!make_own(block).ok()) return evict(block);
  move_bytes(block, bytes, anchor - from);
  write_frames(block, bytes);
  if (from_record) {
    b.turned = anchor != from;
  } else {
    name_moved(block, anchor - from);
  }
  b.anchor = anchor;
  session_.count_move(block);
  publish(block);
}

// No record has these bytes; under a name of their own they can be saved and come back as they are.
void Turn::name_moved(BlockIndex block, std::int32_t n_anchors) {
  Session::Block& b = session_.blocks_[block.index()];
  Hasher moves;
  moves.add(b.moves).add(static_cast<std::uint64_t>(session_.residency_.span(block).n_tokens()));
  if (b.turned) moves.add(static_cast<std::uint64_t>(b.anchor.value()));
  b.moves = moves.add(static_cast<std::uint64_t>(std::int64_t{n_anchors})).finish();
  b.turned = false;
  b.name.reset();
}

// The saved bytes of a full block and the anchor that they are for; none where they cannot be had.
std::optional<Position> Turn::read_saved(BlockIndex block, std::span<std::byte> bytes) const {
  if (!session_.is_full(block)) return std::nullopt;
  const Result<RecordHandle> record = get_record(block);
  if (!record.ok()) return std::nullopt;
  const Status status = (*record)->copy_frames([&](std::int32_t, std::span<const std::byte> frame) {
    std::ranges::copy(frame, bytes.begin());
    bytes = bytes.subspan(frame.size());
  });
  if (status.ok()) return (*record)->header().anchor;
  session_.parts_.store->refuse(*record);
  return std::nullopt;
}

}  // namespace ebb
