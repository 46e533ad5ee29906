// KeyDigest: what the keys of one frame are together, as a few numbers.
//
// It reads the bytes of a frame as they lie, rotated for its anchor; it does not know blocks, sessions or who asks. Rows that are
// no numbers count as zeros. Thread rule: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/frame_layout.h"

namespace ebb {

struct KeyDigest {
  // The mean length of the keys.
  float norm = 0.0F;
  // The mean of the keys, each divided by its length; [head_dim_k]. A key of zeros adds nothing.
  std::vector<float> direction;
};

// Of the keys in slots [0, n_tokens); of a sealed frame n_tokens is its block size. n_tokens is at least 1.
[[nodiscard]] KeyDigest digest_keys(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens);

}  // namespace ebb
