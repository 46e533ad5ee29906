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
std::size_t count_by_mass(const AdaptiveRule& rule, std::span<const std::int32_t> order) {
  double total = 0.0;
  for (const double score : rule.block_scores) total += score;
  double taken = 0.0;
  std::size_t n = order.size() - std::min(order.size(), to_size(rule.n_most_compared));
  for (const std::int32_t block : order.first(n)) taken += rule.block_scores[to_size(block)];
  for (; n < order.size() && taken < rule.attention_mass * total; ++n) taken += rule.block_scores[to_size(order[n])];
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

std::vector<std::int32_t> order_adaptive(const AdaptiveRule& rule, const DiversityAmong& diversity_among) {
  std::vector<std::int32_t> best(rule.block_scores.size());
  std::iota(best.begin(), best.end(), 0);
  std::ranges::stable_sort(best, std::greater<>(), [&](std::int32_t i) { return rule.block_scores[to_size(i)]; });
  const auto n_taken = static_cast<std::ptrdiff_t>(count_by_mass(rule, best));
  std::sort(best.begin() + n_taken, best.end());
  const std::span<const std::int32_t> others = std::span(best).subspan(to_size(static_cast<std::int32_t>(n_taken)));
  std::vector<double> diversity(best.size());
  if (!others.empty()) {
    const std::vector<double> among = diversity_among(others);
    for (std::size_t i = 0; i < others.size(); ++i) diversity[to_size(others[i])] = among[i];
  }
  std::stable_sort(best.begin() + n_taken, best.end(),
                   [&](std::int32_t a, std::int32_t b) { return diversity[to_size(a)] > diversity[to_size(b)]; });
  std::ranges::reverse(best);
  return best;
}

std::vector<std::int32_t> choose_adaptive(const AdaptiveChoice& choice) {
  const std::size_t n_blocks = choice.block_scores.size();
  std::vector<std::int32_t> victims =
      order_adaptive({.block_scores = choice.block_scores, .attention_mass = choice.attention_mass},
                     [&](std::span<const std::int32_t> candidates) {
                       std::vector<double> among;
                       for (const std::int32_t block : candidates) {
                         among.push_back(diversity_of(block, candidates, choice.diversity, n_blocks));
                       }
                       return among;
                     });
  victims.resize(n_blocks - std::min(n_blocks, to_size(choice.n_keep)));
  std::ranges::sort(victims);
  return victims;
}

}  // namespace ebb
