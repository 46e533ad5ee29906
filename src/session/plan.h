// plan: what a step of a session needs, as a value. Pure functions from snapshots; they move nothing.
//
// The scheduler asks it what the steps of its requests lack, the session executes it; there is no other arithmetic of
// room.
//
//   rows        as many pending tokens as fit the batch, a share of the budget, the trained context and the open frames
//   frames      of the blocks that these rows begin
//   own budget  what is over leaves: n_evict_needed frames must, n_evict_wanted may (watermarks)
//   sight       rows of a sparse prompt that leave out the same
//   the pool    n_short frames are lacking even then: idle sessions give theirs, or else this one does
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/block_shape.h"
#include "cache/sight.h"
#include "policy/choose.h"
#include "policy/sparse_prompt.h"

namespace ebb {

// How much a session may have, has, and finds.
struct RoomState {
  std::int32_t n_hot_frames = 0;
  FrameBudget budget;
  Watermarks watermarks;
  std::int32_t n_pool_free = 0;
};

// What it takes to have n_new_frames more.
struct RoomPlan {
  std::int32_t n_new_frames = 0;
  // To leave for the session's budget.
  std::int32_t n_evict_needed = 0;
  std::int32_t n_evict_wanted = 0;
  // That the pool has not, before anything leaves.
  std::int32_t n_short = 0;
};
[[nodiscard]] RoomPlan plan_room(const RoomState& room, std::int32_t n_new_frames);

// How many of n_blocks whole blocks of a prompt that are to be had at once may come: what fits without anything
// leaving, or as many as a step brings, so that what leaves for them is what would leave if they were computed.
[[nodiscard]] std::int32_t plan_adoption(const RoomState& room, std::int32_t n_blocks, const BlockShape& shape);

// Blocks that filling holes leaves free for a reply. More: holes stay that could be filled. Less: what was just recalled leaves
// for it.
inline constexpr std::int32_t kReplyBlocks = 4;

// Blocks that filling holes leaves free: n_new for what comes next and, for a reply behind it, n_reply, or an eighth of the
// budget where that is less. None for the reply where the whole session fits: it then has no holes, as if nothing had ever
// left.
[[nodiscard]] std::int32_t plan_left_free(std::int32_t n_blocks, std::int32_t n_new, std::int32_t n_reply,
                                          std::int32_t n_budget);

// What a turn waited so far for blocks that it asked back.
struct RecallTime {
  double waited_ms = 0.0;
  std::size_t n_blocks = 0;
};

// How many of them come next, of n_most at most, so that it waits for all of them together no longer than most_ms (0: as long as it takes),
// as fast as those before came. The first few tell how fast that is.
[[nodiscard]] std::size_t plan_wave(const RecallTime& so_far, double most_ms, std::size_t n_most);

// What bounds the next step of pending tokens.
struct StepState {
  std::int32_t n_pending = 0;
  // Pending tokens that nothing but computing gives.
  std::int32_t n_to_compute = 0;
  std::int32_t max_rows = 0;
  // Rows that the last block has left.
  std::int32_t n_rows_left = 0;
  // Anchors that the trained context has left.
  std::int32_t n_anchors_left = 0;
  // Whether one more block may be open, that is end the step part-filled.
  bool may_open = true;
  // Steps end where whole blocks of others may follow.
  bool adopts = false;
  RoomState room;
};

struct StepPlan {
  std::int32_t n_tokens = 0;
  RoomPlan room;
};
// n_tokens 0: there is no open frame for even one.
[[nodiscard]] StepPlan plan_step(const StepState& step, const BlockShape& shape);

// How many queries the step behind one of n_tokens gives before anything leaves, as far as can be told now: nobody knows what
// others will take of the pool by then. 0 where something leaves first, or something else may come: blocks of others, a graft.
// `step` is the state in which those n_tokens find room, but for max_rows, which is that of the step behind.
[[nodiscard]] std::int32_t plan_next_queries(StepState step, std::int32_t n_tokens, const BlockShape& shape);

// What the rows of a prompt of n_tokens behind `begin` leave out.
[[nodiscard]] Sight plan_sight(const SparsePrompt& prompt, Position begin, std::int32_t n_tokens,
                               std::int32_t block_size);

// How many of n_tokens rows find a place when so many frames are free.
[[nodiscard]] std::int32_t fit_rows(std::int32_t n_tokens, std::int32_t n_rows_left, std::int32_t n_free_frames,
                                    const BlockShape& shape);

}  // namespace ebb
