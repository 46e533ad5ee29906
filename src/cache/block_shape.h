// BlockShape: how many frames a block has, and which of them attention stops looking at.
//
// Thread rule: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/span.h"
#include "cache/head_set.h"

namespace ebb {

struct BlockShape {
  std::int32_t n_layers = 0;
  std::int32_t n_kv_heads = 0;
  std::int32_t block_size = 0;
  // The window of each layer: a query at position p sees positions in (p - window, p]; 0 for all. Empty: 0 for every
  // layer.
  std::vector<std::int32_t> windows = {};

  [[nodiscard]] std::int32_t frames_per_block() const { return n_layers * n_kv_heads; }
  [[nodiscard]] std::size_t n_heads() const { return static_cast<std::size_t>(frames_per_block()); }
  // The number of a (layer, KV head).
  [[nodiscard]] std::size_t head(LayerIndex layer, HeadIndex head) const {
    return layer.index() * static_cast<std::size_t>(n_kv_heads) + head.index();
  }
  [[nodiscard]] HeadSet all_heads() const { return HeadSet::all(n_heads()); }
  [[nodiscard]] HeadSet heads_of(LayerIndex layer) const {
    HeadSet heads(n_heads());
    for (std::int32_t h = 0; h < n_kv_heads; ++h) heads.add(head(layer, HeadIndex(h)));
    return heads;
  }
  [[nodiscard]] std::int32_t window(LayerIndex layer) const { return windows.empty() ? 0 : windows[layer.index()]; }
  [[nodiscard]] std::int32_t n_blocks(std::int32_t n_tokens) const { return (n_tokens + block_size - 1) / block_size; }
};

// The most frames that may be hot. What people are told of it is tokens: those that it holds in every layer and head.
struct FrameBudget {
  std::int32_t n_frames = 0;

  // Rounded down to whole blocks.
  [[nodiscard]] static FrameBudget of_tokens(std::int32_t n_tokens, const BlockShape& shape) {
    return {.n_frames = n_tokens / shape.block_size * shape.frames_per_block()};
  }
  [[nodiscard]] std::int32_t n_blocks(const BlockShape& shape) const { return n_frames / shape.frames_per_block(); }
  [[nodiscard]] std::int32_t n_tokens(const BlockShape& shape) const { return n_blocks(shape) * shape.block_size; }

  friend auto operator<=>(const FrameBudget&, const FrameBudget&) = default;
};

}  // namespace ebb
