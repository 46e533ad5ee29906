// R-KV (Cai et al. 2025, arXiv 2505.24133): what other blocks say too and the window does not look at leaves first, by head. Importance
// I and redundancy r are shares:
//
//   I      of the window's attention on what lies before it, pooled with its neighbours by their largest
//   r      softmax over the blocks of how like all others their keys are on average (cosines)
//   score  lambda * I - (1 - lambda) * r
//
// The newest block that is alike (above `similar`) is not held against an older one; where a block has none, the first block is
// spared, as the original's code does. Of blocks, the cosine is the mean over their tokens, which mean directions give exactly.
// Importance is the mean over a KV head's query heads, where the original takes the largest logit of them before the softmax,
// and over the window's queries together, where the original divides each by what it gives before the window.
//
// Price: all pairs of blocks of a head are compared, n^2 / 2 * head size products a head and choice: 1 ms of a busy processor for
// 256 blocks and heads of 64, beside 0.03 ms for keydiff (policies_benchmark.cc). So no more than `most` compete: those that the
// window looks at least; the others stay longer than all of them.
#include <cmath>
#include <numeric>

#include "policy/all.h"
#include "policy/pooling.h"

namespace ebb {
namespace {

using RowIndices = std::vector<std::size_t>;

class RKv final : public Policy {
 public:
  explicit RKv(const ParameterValues& values)
      : window_(values.whole("window")),
        kernel_(values.whole("kernel")),
        lambda_(values["lambda"]),
        similar_(values["similar"]),
        n_most_(static_cast<std::size_t>(values.whole("most"))) {}

  [[nodiscard]] std::string_view name() const override { return "rkv"; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kHead, .sinks = false, .window = window_, .keys = true};
  }

  [[nodiscard]] bool compares_blocks() const override { return true; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    const std::vector<double> importance = importance_of(evidence, scope);
    std::vector<double> scores;
    for (const double share : importance) scores.push_back(lambda_ * share);
    const RowIndices rivals = least(importance);
    const std::vector<double> redundancy = redundancy_of(scope, rivals);
    for (std::size_t i = 0; i < rivals.size(); ++i) scores[rivals[i]] -= (1.0 - lambda_) * redundancy[i];
    // Whoever does not compete is ahead of whoever does, in the order of importance.
    if (rivals.size() == scores.size()) return scores;
    double ahead = 0.0;
    for (const std::size_t rival : rivals) ahead = std::max(ahead, scores[rival]);
    std::vector<bool> competes(scores.size(), false);
    for (const std::size_t rival : rivals) competes[rival] = true;
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += competes[i] ? 0.0 : ahead;
    return scores;
  }

 private:
  [[nodiscard]] std::vector<double> importance_of(const Evidence& evidence, const ScopeEvidence& scope) const {
    std::vector<double> shares = scope.window_mean;
    const std::size_t n = count_before_window(evidence, scope, window_);
    const double all = std::accumulate(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(n), 0.0);
    for (double& share : shares) share = all > 0.0 ? share / all : 0.0;
    return pool_before_window(evidence, scope, shares, {.window = window_, .kernel = kernel_, .takes_max = true});
  }

  // In position order.
  [[nodiscard]] RowIndices least(const std::vector<double>& importance) const {
    RowIndices rows(importance.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    if (rows.size() <= n_most_) return rows;
    std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return importance[row]; });
    rows.resize(n_most_);
    std::ranges::sort(rows);
    return rows;
  }

  // As the definition has it: row i says how like i all others are, and spares the last that is alike.
  [[nodiscard]] std::vector<double> redundancy_of(const ScopeEvidence& scope, const RowIndices& rows) const {
    const std::size_t n = rows.size();
    std::vector<double> sums(n, 0.0);
    // Of each row, what it spares and how like it that is; of rows without one, the first.
    std::vector<std::size_t> spared(n, 0);
    std::vector<double> spared_cosine(n, 0.0);
    const std::vector<double> planes = planes_of(scope, rows);
    std::vector<double> cosines(n);
    for (std::size_t i = 0; i < n; ++i) {
      std::ranges::fill(cosines, 0.0);
      for (const double* plane = planes.data(); plane != planes.data() + planes.size(); plane += n) {
        for (std::size_t j = i + 1; j < n; ++j) cosines[j] += plane[i] * plane[j];
      }
      if (i == 0) spared_cosine = cosines;
      for (std::size_t j = i + 1; j < n; ++j) {
        sums[i] += cosines[j];
        sums[j] += cosines[j];
        // j rises for i; and i for j, whose later ones come when it is i itself.
        if (cosines[j] > similar_) {
          spared[i] = j;
          spared[j] = i;
          spared_cosine[i] = spared_cosine[j] = cosines[j];
        }
      }
    }
    for (std::size_t i = 0; i < n; ++i) sums[spared[i]] -= spared_cosine[i];
    for (double& sum : sums) sum /= static_cast<double>(n);
    return softmax(std::move(sums));
  }

  // Directions by dimension, [n_key_dims][rows], so that one block's cosines with all others are found side by side.
  static std::vector<double> planes_of(const ScopeEvidence& scope, const RowIndices& rows) {
    std::vector<double> planes(scope.n_key_dims * rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t d = 0; d < scope.n_key_dims; ++d) {
        planes[d * rows.size() + i] = double{scope.key_direction[rows[i] * scope.n_key_dims + d]};
      }
    }
    return planes;
  }

  static std::vector<double> softmax(std::vector<double> values) {
    if (values.empty()) return values;
    const double most = *std::ranges::max_element(values);
    double sum = 0.0;
    for (double& value : values) sum += value = std::exp(value - most);
    for (double& value : values) value /= sum;
    return values;
  }

  std::int32_t window_;
  std::int32_t kernel_;
  double lambda_;
  double similar_;
  std::size_t n_most_;
};

}  // namespace

std::unique_ptr<Policy> make_rkv_policy(const ParameterValues& values) { return std::make_unique<RKv>(values); }

}  // namespace ebb
