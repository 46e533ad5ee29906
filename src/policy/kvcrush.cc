#include "policy/kvcrush.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/to_size.h"

namespace ebb {
namespace {

std::vector<std::uint8_t> mean_bits(std::span<const std::uint8_t> bits, std::int32_t block_size) {
  const std::size_t n_blocks = bits.size() / to_size(block_size);
  std::vector<std::size_t> n_ones(to_size(block_size));
  for (std::size_t t = 0; t < bits.size(); ++t) n_ones[t % to_size(block_size)] += bits[t];
  std::vector<std::uint8_t> mean(n_ones.size());
  std::ranges::transform(n_ones, mean.begin(),
                         [&](std::size_t n) { return static_cast<std::uint8_t>(2 * n > n_blocks); });
  return mean;
}

std::int32_t count_differences(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  std::int32_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += a[i] != b[i] ? 1 : 0;
  return n;
}

}  // namespace

Status check_crush(const CrushChoice& choice, const CrushConfig& config) {
  const auto anchor = static_cast<int>(config.anchor);
  if (config.budget_blocks < 0 || anchor < 0 || anchor > static_cast<int>(CrushAnchor::kAlternating)) {
    return error(Code::kInvalidArgument, "a budget of {} blocks by anchor number {}", config.budget_blocks, anchor);
  }
  if (choice.block_size < 1 || choice.sums.size() % to_size(choice.block_size) != 0) {
    return error(Code::kInvalidArgument, "sums of {} tokens are no whole blocks of {}", choice.sums.size(),
                 choice.block_size);
  }
  for (const double sum : choice.sums) {
    if (!std::isfinite(sum)) return error(Code::kInvalidArgument, "a sum of {}, which no order can hold", sum);
  }
  const std::size_t n_blocks = choice.sums.size() / to_size(choice.block_size);
  std::int32_t before = -1;
  for (const std::int32_t victim : choice.victims) {
    if (victim <= before || to_size(victim) >= n_blocks) {
      return error(Code::kInvalidArgument, "victim {} behind {} of {} blocks: give their numbers, ascending", victim,
                   before, n_blocks);
    }
    before = victim;
  }
  return {};
}

std::vector<std::uint8_t> mark_upper_half(std::span<const double> sums) {
  std::vector<std::size_t> order(sums.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  std::vector<std::uint8_t> bits(sums.size());
  for (std::size_t i = 0; i < sums.size() / 2; ++i) bits[order[i]] = 1;
  return bits;
}

std::vector<std::uint8_t> make_crush_anchor(CrushAnchor anchor, std::span<const std::uint8_t> bits,
                                            std::int32_t block_size, std::mt19937& random) {
  std::vector<std::uint8_t> pattern(to_size(block_size));
  switch (anchor) {
    case CrushAnchor::kRandom:
      for (std::uint8_t& bit : pattern) bit = static_cast<std::uint8_t>((random() & 0xFFFFFFFFU) >> 31);
      break;
    case CrushAnchor::kZeros: break;
    case CrushAnchor::kOnes: std::ranges::fill(pattern, std::uint8_t{1}); break;
    case CrushAnchor::kMean: return mean_bits(bits, block_size);
    case CrushAnchor::kAlternating:
      for (std::size_t i = 1; i < pattern.size(); i += 2) pattern[i] = 1;
      break;
  }
  return pattern;
}

std::vector<std::int32_t> rescue_blocks(const CrushChoice& choice, const CrushConfig& config, std::mt19937& random) {
  if (config.budget_blocks < 1 || choice.victims.size() < to_size(config.budget_blocks)) return {};
  const std::vector<std::uint8_t> bits = mark_upper_half(choice.sums);
  const std::vector<std::uint8_t> anchor = make_crush_anchor(config.anchor, bits, choice.block_size, random);
  std::vector<std::pair<std::int32_t, std::int32_t>> line;  // distance and number, nearest first
  for (const std::int32_t victim : choice.victims) {
    const auto of_block =
        std::span(bits).subspan(to_size(victim) * to_size(choice.block_size), to_size(choice.block_size));
    line.emplace_back(count_differences(of_block, anchor), victim);
  }
  std::ranges::sort(line);
  const std::size_t step = line.size() / to_size(config.budget_blocks);
  std::vector<std::int32_t> rescued;
  for (std::size_t i = 0; i < to_size(config.budget_blocks); ++i) rescued.push_back(line[i * step].second);
  std::ranges::sort(rescued);
  return rescued;
}

}  // namespace ebb
