// BlockTable: what attention walks for one KV head of one layer of one session.
//
// Its entries are the hot blocks in position order. Nothing here knows why a block is hot or what it holds.
//
//   entry          holds the tokens [begin, begin + n_tokens) in slots 0 .. n_tokens-1 of `frame`
//   between two    a hole: positions that are not hot and are not attended to
//
// Splits: attention sums up each run of kSplitTokens positions by itself and then merges the runs in order. An
// entry belongs to the split in which it begins. The cut depends on positions alone, so neither threads, nor holes,
// nor how the batch was cut change the order of any sum.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/span.h"

namespace ebb {

// Larger: fewer merges, less to share among threads in decode. Smaller: the merges cost more than they balance.
inline constexpr std::int32_t kSplitTokens = 1024;

inline constexpr FrameIndex kNoFrame{-1};

struct TableEntry {
  FrameIndex frame;
  Position begin;
  std::int32_t n_tokens = 0;
  // Where its f16 rows lie while it is open (cache/frame_layout.h), among the open frames.
  FrameIndex open = kNoFrame;

  [[nodiscard]] Span span() const { return {begin, begin + n_tokens}; }
  [[nodiscard]] std::int32_t split() const { return begin.value() / kSplitTokens; }
};

// Sorted by `begin`, spans disjoint.
using BlockTable = std::span<const TableEntry>;

}  // namespace ebb
