// Row change: how much K and V of some tokens differ from what they were when the same tokens stood behind other text.
// It reads frames, and knows no sessions. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "cache/block_shape.h"
#include "cache/frame_layout.h"

namespace ebb {

// Rows of a block: its frames one behind the other, [layer][KV head], and the first slot.
struct BlockRows {
  std::span<const std::byte> bytes;
  std::size_t first = 0;
};

// The most that K or V of one of n rows differ in one layer, all heads together, over the mean length of those of `before`.
[[nodiscard]] double most_change(const FrameLayout& layout, const BlockShape& shape, const BlockRows& before,
                                 const BlockRows& now, std::size_t n_rows);

}  // namespace ebb
