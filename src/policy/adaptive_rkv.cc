#include "policy/adaptive_rkv.h"

#include <algorithm>
#include <numeric>

#include "base/to_size.h"

namespace ebb {
namespace {

// Mean over the tokens of all candidates, the block's own included.
double diversity_of(std::int32_t block, std::span<const std::int32_t> candidates, std::span<const float> diversity,
                    std::size_t n_blocks) {
  const std::size_t n_tokens = diversity.size() / n_blocks;
  const std::size_t block_size = n_tokens / n_blocks;
  const auto row = diversity.subspan(to_size(block) * n_tokens, n_tokens);
  double sum = 0.0;
  for (const std::int32_t candidate : candidates) {
    for (const float value : row.subspan(to_size(candidate) * block_size, block_size)) sum += value;
  }
  return sum / static_cast<double>(candidates.size() * block_size);
}

// How many of `order`, the best first, stay by their scores alone.
std::size_t count_by_mass(const AdaptiveChoice& choice, std::span<const std::int32_t> order) {
  double total = 0.0;
  for (const double score : choice.block_scores) total += score;
  double taken = 0.0;
  std::size_t n = 0;
  while (n < to_size(choice.n_keep) && n < order.size() && taken < choice.attention_mass * total) {
    taken += choice.block_scores[to_size(order[n])];
    ++n;
  }
  return n;
}

}  // namespace

void RecentPasses::add(std::span<const float> scores) {
  passes_.emplace_back(scores.begin(), scores.end());
  if (passes_.size() > to_size(most_)) passes_.pop_front();
}

std::vector<double> RecentPasses::mean() const {
  std::vector<double> mean(passes_.back().size());
  for (const std::vector<float>& pass : passes_) {
    for (std::size_t i = 0; i < pass.size(); ++i) mean[i] += pass[i];
  }
  for (double& value : mean) value /= static_cast<double>(passes_.size());
  return mean;
}

std::vector<std::int32_t> choose_adaptive(const AdaptiveChoice& choice) {
  const std::span<const double> scores = choice.block_scores;
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::int32_t a, std::int32_t b) { return scores[to_size(a)] > scores[to_size(b)]; });
  const std::size_t n_taken = count_by_mass(choice, order);
  std::vector<std::int32_t> victims(order.begin() + static_cast<std::ptrdiff_t>(n_taken), order.end());
  std::ranges::sort(victims);
  const std::size_t n_more = to_size(choice.n_keep) - n_taken;
  if (n_more == 0 || victims.empty()) return victims;
  std::vector<double> diversity(scores.size());
  for (const std::int32_t block : victims) {
    diversity[to_size(block)] = diversity_of(block, victims, choice.diversity, scores.size());
  }
  std::ranges::stable_sort(
      victims, [&](std::int32_t a, std::int32_t b) { return diversity[to_size(a)] > diversity[to_size(b)]; });
  victims.erase(victims.begin(), victims.begin() + static_cast<std::ptrdiff_t>(std::min(n_more, victims.size())));
  std::ranges::sort(victims);
  return victims;
}

}  // namespace ebb
