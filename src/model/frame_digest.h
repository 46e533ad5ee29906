// FrameDigest: what the keys and values of one frame are together, as a few numbers.
//
// It reads a frame once for all that is asked of it (model/frame_rows.h); it does not know blocks, sessions or who asks.
//
// Bytes: of frames whose K and V have d numbers each some 170, and 4 d more for each column: directions 1, value means 1,
// ranges 6. Beside a frame of 4 d bytes a token in f16 that is little of a block of 64 tokens, and more than the frame is of a
// block of one. Time, once for each block that becomes hot: a block of 64 tokens in 32 heads (a quarter of a model of 1B
// parameters, d 64) took 0.5 ms for directions or ranges, 0.2 ms for value means and 0.9 ms for lengths, of one processor of a busy
// EPYC (frame_digest_benchmark.cc, processor time).
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/frame_layout.h"

namespace ebb {

class OutputLengths;

// What is wanted of a frame; the columns of the rest stay empty.
struct DigestAsk {
  // FrameDigest::key_norm and key_direction.
  bool directions = false;
  // FrameDigest::keys and values.
  bool ranges = false;
  // FrameDigest::values.mean.
  bool value_means = false;
  // FrameDigest::output_length of frames of head `head`; null: not wanted.
  const OutputLengths* lengths = nullptr;
  std::size_t head = 0;
};

// Over tokens, by channel.
struct ChannelDigest {
  std::vector<float> least;
  std::vector<float> greatest;
  std::vector<float> mean;
};

struct FrameDigest {
  bool is_read = false;
  // The mean length of the keys.
  float key_norm = 0.0F;
  // The mean of the keys, each divided by its length; [head_dim_k]. A key of zeros adds nothing.
  std::vector<float> key_direction;
  ChannelDigest keys;    // [head_dim_k]
  ChannelDigest values;  // [head_dim_v]
  // The mean length of v W_O (model/output_lengths.h).
  float output_length = 0.0F;
};

// Of slots [0, n_tokens); of a sealed frame n_tokens is its block size. n_tokens is at least 1.
[[nodiscard]] FrameDigest digest_frame(const FrameLayout& layout, std::span<const std::byte> frame,
                                       std::int32_t n_tokens, const DigestAsk& ask);

}  // namespace ebb
