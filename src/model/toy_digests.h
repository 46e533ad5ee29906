// Random keys, and digests of them, for tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/to_size.h"
#include "model/key_digest.h"
#include "model/toy_keys.h"

namespace ebb::toy {

inline constexpr std::int32_t kDims = 32;

using Rows = std::vector<std::vector<double>>;

inline std::vector<double> random_row(std::mt19937& random) {
  std::normal_distribution<double> draw;
  std::vector<double> row(to_size(kDims));
  for (double& x : row) x = draw(random);
  return row;
}

inline Rows random_rows(std::mt19937& random, std::int32_t n) {
  Rows rows;
  for (std::int32_t i = 0; i < n; ++i) rows.push_back(random_row(random));
  return rows;
}

inline FrameLayout layout_of(std::int32_t block_size, RowType type = RowType::kF32) {
  return {.row_type = type, .block_size = block_size, .head_dim_k = kDims, .head_dim_v = kDims};
}

inline std::vector<std::byte> frame_of(const FrameLayout& layout, const Rows& keys) {
  std::vector<std::byte> frame(layout.frame_bytes());
  for (std::size_t slot = 0; slot < keys.size(); ++slot) {
    put_row(layout, frame, static_cast<std::int32_t>(slot), keys[slot], key_byte_at);
  }
  return frame;
}

inline std::vector<std::byte> digest_of(const FrameLayout& layout, const Rows& keys) {
  const KeyDigestLayout digest = KeyDigestLayout::of(layout);
  std::vector<std::byte> bytes(digest.bytes());
  write_key_digest(digest, FrameRows::keys_of(layout, frame_of(layout, keys), layout.block_size), bytes);
  return bytes;
}

}  // namespace ebb::toy
