// LagKV (Liang et al. 2025, arXiv 2504.04704): what is most like the tokens that come next leaves first; no attention is looked at.
// Tokens after the sinks are cut into partitions of `lag`. Of each partition, the next one says between what least and greatest every
// channel of keys and values lies; what is told apart by channel most within these stays:
//
//   z = (x - least) / (greatest - least);   u = deviation of z over channels;   score = softmax of u over the partition
//
// of keys, and of values times `rho`. The original compresses each partition once to a share of it. Here, as in kvpress, a block's
// score is its place in its partition, which takes as much of each as of any other however often is chosen. The last
// partition and what follows it have nothing behind them and leave after all others, the oldest first.
//
// Partitions are positions, so that what left does not move them; a lag shorter than a block is a block, and in partitions of one
// block nothing is told apart. Least and greatest of a partition are exact from its blocks', while a block of several tokens is
// measured by its mean. What has left is not looked at: a reference whose blocks are all gone is the next one that is there.
// A choice took 0.4 ms of a busy processor for a head of 256 blocks and 64 dimensions (policies_benchmark.cc).
#include <cmath>
#include <map>

#include "base/to_size.h"
#include "policy/all.h"

namespace ebb {
namespace {

// A narrower channel counts as this wide: where all tokens are alike the original divides by zero.
constexpr double kSmallestRange = 1e-6;

// Scores of what is in no partition that has one behind it; places in partitions are below 1.
constexpr double kTail = 1.0;
constexpr double kSink = 2.0;

using RowIndices = std::vector<std::size_t>;

struct Ranges {
  std::vector<double> least;
  std::vector<double> greatest;
};

// All rows were read, and there is one at least.
Ranges ranges_of(const ChannelColumns& channels, const RowIndices& rows) {
  const auto first = channels.of(channels.least, rows.front());
  const auto top = channels.of(channels.greatest, rows.front());
  Ranges ranges{.least = {first.begin(), first.end()}, .greatest = {top.begin(), top.end()}};
  for (const std::size_t row : rows) {
    for (std::size_t d = 0; d < channels.n_dims; ++d) {
      ranges.least[d] = std::min(ranges.least[d], double{channels.of(channels.least, row)[d]});
      ranges.greatest[d] = std::max(ranges.greatest[d], double{channels.of(channels.greatest, row)[d]});
    }
  }
  return ranges;
}

// Of one row's z, over channels.
double deviation_of(std::span<const float> x, const Ranges& ranges) {
  const auto n = static_cast<double>(x.size());
  std::vector<double> z;
  double mean = 0.0;
  for (std::size_t d = 0; d < x.size(); ++d) {
    const double range = std::max(ranges.greatest[d] - ranges.least[d], kSmallestRange);
    z.push_back((double{x[d]} - ranges.least[d]) / range);
    mean += z.back() / n;
  }
  double squares = 0.0;
  for (const double value : z) squares += (value - mean) * (value - mean);
  return n > 1.0 ? std::sqrt(squares / (n - 1.0)) : 0.0;
}

std::vector<double> weights_of(const ChannelColumns& channels, const RowIndices& rows, const RowIndices& reference) {
  const Ranges ranges = ranges_of(channels, reference);
  std::vector<double> weights;
  for (const std::size_t row : rows) weights.push_back(deviation_of(channels.of(channels.mean, row), ranges));
  const double most = *std::ranges::max_element(weights);
  double sum = 0.0;
  for (double& weight : weights) sum += weight = std::exp(weight - most);
  for (double& weight : weights) weight /= sum;
  return weights;
}

class LagKv final : public Policy {
 public:
  explicit LagKv(const ParameterValues& values)
      : lag_(values.whole("lag")), n_sinks_(values.whole("sinks")), rho_(values["rho"]) {}

  [[nodiscard]] std::string_view name() const override { return "lagkv"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .ranges = true}; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    const std::int32_t lag = (lag_ + evidence.grain - 1) / evidence.grain * evidence.grain;
    std::vector<double> scores(scope.rows.size(), kTail);
    std::map<std::int32_t, RowIndices> partitions;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::int32_t begin = evidence.block(scope.rows[i]).span.begin.value() - n_sinks_;
      if (begin < 0) scores[i] = kSink;
      if (begin >= 0 && scope.is_read[i]) partitions[begin / lag].push_back(i);
    }
    // One that is not full is no reference yet.
    const std::int32_t n_full = std::max(0, evidence.end.value() - n_sinks_) / lag;
    partitions.erase(partitions.lower_bound(n_full), partitions.end());
    for (auto next = partitions.begin(); next != partitions.end();) {
      const RowIndices& rows = next->second;
      if (++next != partitions.end()) place(scope, rows, next->second, lag / evidence.grain, scores);
    }
    return scores;
  }

 private:
  // The last of a partition of n rows when it was whole is at (n - 1) / n, whatever has left of it.
  void place(const ScopeEvidence& scope, const RowIndices& rows, const RowIndices& reference, std::int32_t n,
             std::vector<double>& scores) const {
    const std::vector<double> keys = weights_of(scope.keys, rows, reference);
    const std::vector<double> values = weights_of(scope.values, rows, reference);
    std::vector<std::size_t> order(rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return keys[i] + rho_ * values[i]; });
    for (std::size_t at = 0; at < order.size(); ++at) {
      const auto place = static_cast<double>(to_size(n) + at) - static_cast<double>(order.size());
      scores[rows[order[at]]] = place / static_cast<double>(n);
    }
  }

  std::int32_t lag_;
  std::int32_t n_sinks_;
  double rho_;
};

}  // namespace

std::unique_ptr<Policy> make_lagkv_policy(const ParameterValues& values) { return std::make_unique<LagKv>(values); }

}  // namespace ebb
