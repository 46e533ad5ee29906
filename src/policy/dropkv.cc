// DropKV: what a head's output would lose without a block, squared, and the least of it leaves first. With the block's mass m, a
// share of the head's, its mean value v and the head's output o:
//
//   o - o without the block = m / (1 - m) * (v - o);    score = (m / (1 - m))^2 |o - v|^2
//
// The original costs every query of every query head by itself and takes the mean; here m is the mean over the window and the
// query heads of a KV head, and o what the blocks give with it, which is the same for one query of one head. A block's value is
// the mean of its tokens', however much each is looked at.
#include "policy/all.h"

namespace ebb {
namespace {

class DropKv final : public Policy {
 public:
  explicit DropKv(const ParameterValues& values) : window_(values.whole("window")) {}

  [[nodiscard]] std::string_view name() const override { return "dropkv"; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kHead, .sinks = false, .window = window_, .value_means = true};
  }

  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    double all = 0.0;
    for (const double mass : scope.window_mean) all += mass;
    const std::vector<double> output = output_of(scope);
    std::vector<double> scores(scope.rows.size(), 0.0);
    for (std::size_t i = 0; all > 0.0 && i < scores.size(); ++i) {
      if (!scope.is_read[i]) continue;
      const double m = scope.window_mean[i] / all;
      // Without the one that has all the mass there is no output: it leaves last.
      const double moved = m / (1.0 - m);
      scores[i] = m < 1.0 ? moved * moved * distance(output, value_of(scope, i)) : std::numeric_limits<double>::max();
    }
    return scores;
  }

 private:
  static std::span<const float> value_of(const ScopeEvidence& scope, std::size_t row) {
    return scope.values.of(scope.values.mean, row);
  }

  // Of the blocks whose values are known.
  static std::vector<double> output_of(const ScopeEvidence& scope) {
    std::vector<double> output(scope.values.n_dims, 0.0);
    double mass = 0.0;
    for (std::size_t i = 0; i < scope.rows.size(); ++i) {
      if (!scope.is_read[i]) continue;
      const auto value = value_of(scope, i);
      for (std::size_t d = 0; d < output.size(); ++d) output[d] += scope.window_mean[i] * double{value[d]};
      mass += scope.window_mean[i];
    }
    for (std::size_t d = 0; mass > 0.0 && d < output.size(); ++d) output[d] /= mass;
    return output;
  }

  static double distance(const std::vector<double>& output, std::span<const float> value) {
    double sum = 0.0;
    for (std::size_t d = 0; d < output.size(); ++d) {
      const double difference = output[d] - double{value[d]};
      sum += difference * difference;
    }
    return sum;
  }

  std::int32_t window_;
};

}  // namespace

std::unique_ptr<Policy> make_dropkv_policy(const ParameterValues& values) { return std::make_unique<DropKv>(values); }

}  // namespace ebb
