#include "policy/areas_scores.h"

#include <algorithm>

#include "base/to_size.h"

namespace ebb {
namespace {

// The entries of the blocks, moved over: one pass for sums and counters alike.
template <class T>
void remove_blocks(std::vector<T>& entries, std::span<const std::int32_t> places, std::size_t block_size) {
  auto to = entries.begin();
  std::size_t next = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    while (next < places.size() && (to_size(places[next]) + 1) * block_size <= i) ++next;
    if (next < places.size() && to_size(places[next]) * block_size <= i) continue;
    *to++ = entries[i];
  }
  entries.erase(to, entries.end());
}

}  // namespace

std::int32_t count_queries(const PassPlace& place, std::int32_t n_window) {
  if (n_window == 0) return place.n_scheduled;
  const std::int32_t first = std::max(0, place.n_prompt - n_window);
  if (place.n_processed > first) return place.n_scheduled;
  return std::max(0, place.n_processed + place.n_scheduled - first);
}

std::vector<double> pool_ahead(std::span<const double> scores) {
  std::vector<double> pooled(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    pooled[i] = std::ranges::max(scores.subspan(i, std::min(kPoolTokens, scores.size() - i)));
  }
  return pooled;
}

LayerScores::LayerScores(const AreasConfig& config)
    : aggregation_(config.aggregation), upstream_(config.upstream), recent_(config.adaptive.n_passes) {}

Status LayerScores::check(std::size_t n_scores, const CountedQueries& queries) const {
  if (n_scores < sums_.size()) {
    return error(
        Code::kInvalidArgument,
        "{} scores behind the start area, and {} tokens are tracked there: a cache does not shrink but by its own "
        "evictions; reset the sequence where tokens were taken back",
        n_scores, sums_.size());
  }
  const std::int32_t n_counted = sums_.empty() ? queries.n_in_pass : queries.n_total;
  const bool is_filling = queries.n_window > 0 && (sums_.empty() || queries.n_total < queries.n_window);
  if (upstream_ && aggregation_ == Aggregation::kNormSum && is_filling && n_scores < to_size(n_counted)) {
    return error(
        Code::kInvalidArgument,
        "{} tokens are tracked and {} queries of the window are counted: the original ends here, since its counters "
        "take each counted query to have a tracked token; a shorter snapkv_window_size or start_size avoids it",
        n_scores, n_counted);
  }
  return {};
}

void LayerScores::add(std::span<const float> scores, const CountedQueries& queries) {
  const std::size_t n_before = sums_.size();
  counters_.resize(scores.size());
  if (aggregation_ == Aggregation::kAdaptiveRkv) {
    recent_.add(scores);
    // The very first vector stands as it came, as in the original; no eviction comes before the next replaces it.
    sums_ = n_before == 0 ? recent_.mean() : pool_ahead(recent_.mean());
    return;
  }
  const std::vector<double> pooled = pool_ahead(std::vector<double>(scores.begin(), scores.end()));
  sums_.resize(pooled.size());
  for (std::size_t i = 0; i < pooled.size(); ++i) sums_[i] += pooled[i];
  add_counters(n_before, queries);
}

void LayerScores::add_counters(std::size_t n_before, const CountedQueries& queries) {
  const auto n_tokens = static_cast<std::int64_t>(counters_.size());
  const bool is_first = n_before == 0;
  // Once a first vector is stored every query of a pass counts, so counters grow by the new tokens. The original counts
  // anew while the window fills, and takes tokens that left between for queries that never were.
  const bool counts_anew = is_first || (upstream_ && queries.n_total < queries.n_window);
  if (counts_anew && queries.n_window > 0) {
    // The window's queries are the last of all: a token nearer to the end than they are many was seen by those behind it.
    const std::int32_t n_counted = is_first ? queries.n_in_pass : queries.n_total;
    for (std::int64_t i = 0; i < n_tokens; ++i) {
      counters_[static_cast<std::size_t>(i)] = std::min<std::int64_t>(n_counted, n_tokens - i);
    }
    return;
  }
  const auto n_old = static_cast<std::int64_t>(n_before);
  for (std::int64_t i = 0; i < n_tokens; ++i) {
    std::int64_t& counter = counters_[static_cast<std::size_t>(i)];
    counter = i < n_old ? counter + n_tokens - n_old : n_tokens - i;
  }
}

std::vector<double> LayerScores::block_values(const BlockRange& range, std::int32_t n_start_blocks,
                                              std::int32_t block_size) const {
  std::vector<double> values;
  for (std::int32_t block = range.begin; block < range.end; ++block) {
    const std::size_t begin = to_size(block - n_start_blocks) * to_size(block_size);
    double value = 0.0;
    for (std::size_t i = begin; i < begin + to_size(block_size); ++i) {
      const bool is_norm = aggregation_ == Aggregation::kNormSum;
      value += is_norm ? sums_[i] / static_cast<double>(counters_[i]) : sums_[i];
    }
    values.push_back(value);
  }
  return values;
}

void LayerScores::remove(std::span<const std::int32_t> victims, std::int32_t n_start_blocks, std::int32_t block_size) {
  std::vector<std::int32_t> places(victims.begin(), victims.end());
  for (std::int32_t& place : places) place -= n_start_blocks;
  remove_blocks(sums_, places, to_size(block_size));
  remove_blocks(counters_, places, to_size(block_size));
  if (!victims.empty()) recent_.clear();
}

}  // namespace ebb
