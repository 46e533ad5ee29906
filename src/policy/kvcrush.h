// KVCrush: which victims are rescued because what attention looks at in them stands for many others.
//
// Each block becomes one bit for each of its tokens: whether the token is among the half that attention looks at most. An
// anchor, a pattern of as many bits, lines the blocks up by how many bits differ, and some are taken evenly along that line.
// It sees scores only (Jha et al. 2025, "KVCrush"; the choices and ties are OpenVINO GenAI's, made total). Thread rule: pure
// functions, but for the generator, which belongs to one sequence.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "policy/areas_config.h"

namespace ebb {

// One layer's evictable blocks and those of them that are to leave.
struct CrushChoice {
  std::span<const double> sums;           // [n_blocks * block_size], never divided by counters; finite
  std::int32_t block_size = 1;            // at least 1
  std::span<const std::int32_t> victims;  // numbers 0..n_blocks, ascending; 0 is the first evictable block
};

// kInvalidArgument for sums that are no whole blocks or no numbers, victims that are no blocks or do not ascend, and a budget or
// anchor that is none.
[[nodiscard]] Status check_crush(const CrushChoice& choice, const CrushConfig& config);

// 1 for the half of the tokens, rounded down, with the largest sums; the earlier where sums are equal.
[[nodiscard]] std::vector<std::uint8_t> mark_upper_half(std::span<const double> sums);

// block_size bits. RANDOM takes one output of the generator for each and of it the highest bit, as libstdc++'s fair bits do;
// no other anchor takes any. MEAN: 1 where more than half of the blocks have it.
[[nodiscard]] std::vector<std::uint8_t> make_crush_anchor(CrushAnchor anchor, std::span<const std::uint8_t> bits,
                                                          std::int32_t block_size, std::mt19937& random);

// The rescued of choice.victims, ascending: none where the budget is 0 or larger than the victims are many. By their distance
// to the anchor, ties to the lower number, every step-th victim stays, the nearest always.
[[nodiscard]] std::vector<std::int32_t> rescue_blocks(const CrushChoice& choice, const CrushConfig& config,
                                                      std::mt19937& random);

}  // namespace ebb
