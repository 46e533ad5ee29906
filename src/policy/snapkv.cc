// SnapKV (Li et al. 2024): what the last queries look at least leaves, by head, each token's weight pooled with its neighbours'.
// PyramidKV (Cai et al. 2024) gives lower layers more of the budget, AdaKV (Feng et al. 2024) gives heads what they win from
// each other.
//
// The originals choose once, when the prompt ends, and pool each query head before they take the mean over a KV head's; here
// they choose whenever room is needed, and pool the mean. The kernel is in tokens: at grains
// that it does not span, pooling changes nothing.
#include "policy/all.h"

namespace ebb {
namespace {

struct SnapOptions {
  std::string_view name;
  std::int32_t window = 0;
  std::int32_t kernel = 1;
  bool pools_max = false;
  Shares shares;
};

class SnapKv final : public Policy {
 public:
  explicit SnapKv(const SnapOptions& options) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return options_.name; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .sinks = false, .window = options_.window}; }
  [[nodiscard]] Shares shares() const override { return options_.shares; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    const std::int32_t reach = options_.kernel / 2 / evidence.grain;
    if (reach == 0) return scope.window_mean;
    // The window's own tokens are not pooled, nor with those before it.
    const Position window = evidence.end - options_.window;
    const auto is_before = [&](const ScopeRow& row) { return evidence.block(row).span.end <= window; };
    const auto n = std::ranges::find_if_not(scope.rows, is_before) - scope.rows.begin();
    std::vector<double> scores(scope.window_mean.begin(), scope.window_mean.begin() + n);
    scores = pool(scores, static_cast<std::size_t>(reach));
    scores.insert(scores.end(), scope.window_mean.begin() + n, scope.window_mean.end());
    return scores;
  }

 private:
  // Average pooling counts what lies past the ends as zeros, as PyTorch does by default.
  [[nodiscard]] std::vector<double> pool(const std::vector<double>& scores, std::size_t reach) const {
    std::vector<double> pooled;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::size_t begin = i - std::min(i, reach);
      const std::size_t end = std::min(scores.size(), i + reach + 1);
      double sum = 0.0;
      double most = 0.0;
      for (std::size_t j = begin; j < end; ++j) {
        sum += scores[j];
        most = std::max(most, scores[j]);
      }
      pooled.push_back(options_.pools_max ? most : sum / static_cast<double>(2 * reach + 1));
    }
    return pooled;
  }

  SnapOptions options_;
};

SnapOptions options_of(std::string_view name, const ParameterValues& values) {
  return {.name = name,
          .window = values.whole("window"),
          .kernel = values.whole("kernel"),
          .pools_max = values.whole("max") == 1};
}

}  // namespace

std::unique_ptr<Policy> make_snapkv_policy(const ParameterValues& values) {
  return std::make_unique<SnapKv>(options_of("snapkv", values));
}

std::unique_ptr<Policy> make_pyramidkv_policy(const ParameterValues& values) {
  SnapOptions options = options_of("pyramidkv", values);
  options.shares = {.sharing = FrameSharing::kPyramid, .floor = 1.0 / values["beta"]};
  return std::make_unique<SnapKv>(options);
}

std::unique_ptr<Policy> make_adakv_policy(const ParameterValues& values) {
  SnapOptions options = options_of("adakv", values);
  options.shares = {.sharing = FrameSharing::kAcrossHeads, .floor = values["floor"]};
  return std::make_unique<SnapKv>(options);
}

}  // namespace ebb
