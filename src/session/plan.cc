#include "session/plan.h"

#include <algorithm>

namespace ebb {
namespace {

// Blocks whose way back tells how fast others come. More: of a slow disk, more is waited for than may be. Less: chance speaks.
constexpr std::size_t kFirstBlocks = 8;

// A step brings at most this share of the budget, so that its tokens still see most of what was hot. Larger: faster
// prefill, and more of the past is evicted before it could be looked at.
constexpr std::int32_t kStepsPerBudget = 4;

// The share of the budget that is kept free for a reply at most. Larger: holes stay in small budgets that could be filled.
constexpr std::int32_t kReplyShare = 8;

std::int32_t blocks_per_step(FrameBudget budget, const BlockShape& shape) {
  return std::max(1, budget.n_blocks(shape) / kStepsPerBudget);
}

// As many of n_tokens as end with a block, where whole blocks that others computed may go on.
std::int32_t fit_adopting(std::int32_t n_tokens, const StepState& step, std::int32_t block_size) {
  if (!step.adopts || step.n_pending <= step.n_rows_left + block_size) return n_tokens;
  if (step.n_rows_left > 0) return std::min(n_tokens, step.n_rows_left);
  const bool ends = n_tokens == step.n_pending || n_tokens < block_size;
  return ends ? n_tokens : n_tokens / block_size * block_size;
}

// As many of n_tokens as leave no block part-filled.
std::int32_t fit_whole_blocks(std::int32_t n_tokens, std::int32_t n_rows_left, std::int32_t block_size) {
  if (n_tokens <= n_rows_left) return n_tokens;
  return n_rows_left + (n_tokens - n_rows_left) / block_size * block_size;
}

}  // namespace

RoomPlan plan_room(const RoomState& room, std::int32_t n_new_frames) {
  const std::int32_t n_needed = std::max(0, room.n_hot_frames + n_new_frames - room.budget.n_frames);
  const std::int32_t n_wanted = count_victims(room.n_hot_frames, n_new_frames, room.budget.n_frames, room.watermarks);
  return {.n_new_frames = n_new_frames,
          .n_evict_needed = n_needed,
          .n_evict_wanted = std::max(n_needed, n_wanted),
          .n_short = std::max(0, n_new_frames - room.n_pool_free)};
}

std::int32_t plan_adoption(const RoomState& room, std::int32_t n_blocks, const BlockShape& shape) {
  const std::int32_t n_free = std::min(room.budget.n_frames - room.n_hot_frames, room.n_pool_free);
  return std::min(n_blocks, std::max(n_free / shape.frames_per_block(), blocks_per_step(room.budget, shape)));
}

std::int32_t plan_left_free(std::int32_t n_blocks, std::int32_t n_new, std::int32_t n_reply, std::int32_t n_budget) {
  if (n_blocks + n_new <= n_budget) return n_new;
  return n_new + std::min(n_reply, n_budget / kReplyShare);
}

std::size_t plan_wave(const RecallTime& so_far, double most_ms, std::size_t n_most) {
  if (most_ms <= 0.0) return n_most;
  if (so_far.n_blocks == 0) return std::min(kFirstBlocks, n_most);
  const double left_ms = std::max(0.0, most_ms - so_far.waited_ms);
  const double needed_ms = so_far.waited_ms / static_cast<double>(so_far.n_blocks) * static_cast<double>(n_most);
  if (needed_ms <= left_ms) return n_most;
  return static_cast<std::size_t>(left_ms / needed_ms * static_cast<double>(n_most));
}

StepPlan plan_step(const StepState& step, const BlockShape& shape) {
  const std::int32_t share = blocks_per_step(step.room.budget, shape) * shape.block_size;
  std::int32_t n_tokens = std::min({step.n_to_compute, step.max_rows, share, step.n_anchors_left});
  n_tokens = fit_adopting(n_tokens, step, shape.block_size);
  if (!step.may_open) n_tokens = fit_whole_blocks(n_tokens, step.n_rows_left, shape.block_size);
  if (n_tokens < 1) return {};
  const std::int32_t n_blocks = shape.n_blocks(std::max(0, n_tokens - step.n_rows_left));
  return {.n_tokens = n_tokens, .room = plan_room(step.room, n_blocks * shape.frames_per_block())};
}

std::int32_t plan_next_queries(StepState step, std::int32_t n_tokens, const BlockShape& shape) {
  // It ends with a block that was open, so that others' may follow.
  if (step.adopts && n_tokens == step.n_rows_left) return 0;
  const std::int32_t n_blocks = shape.n_blocks(std::max(0, n_tokens - step.n_rows_left));
  const std::int32_t n_frames = n_blocks * shape.frames_per_block();
  step.n_pending -= n_tokens;
  step.n_to_compute -= n_tokens;
  step.n_rows_left += n_blocks * shape.block_size - n_tokens;
  step.n_anchors_left -= n_tokens;
  step.room.n_hot_frames += n_frames;
  step.room.n_pool_free -= n_frames;
  const StepPlan next = plan_step(step, shape);
  return next.room.n_evict_wanted > 0 || next.room.n_short > 0 ? 0 : next.n_tokens;
}

Sight plan_sight(const SparsePrompt& prompt, Position begin, std::int32_t n_tokens, std::int32_t block_size) {
  if (!prompt.is_sparse()) return {};
  return {.where = {Position(0), Position(prompt.find_tail(begin.value() + n_tokens, block_size))},
          .chunk = prompt.chunk,
          .n_start = prompt.start_tokens,
          .n_recent = prompt.recent_tokens,
          .squares = {.threshold = prompt.threshold, .stride = prompt.stride},
          .block_size = block_size};
}

std::int32_t fit_rows(std::int32_t n_tokens, std::int32_t n_rows_left, std::int32_t n_free_frames,
                      const BlockShape& shape) {
  const std::int32_t n_blocks = std::max(0, n_free_frames) / shape.frames_per_block();
  return std::min(n_tokens, n_rows_left + n_blocks * shape.block_size);
}

}  // namespace ebb
