// SnapKV (Li et al. 2024): what the last queries look at least leaves, by head, each token's weight pooled with its neighbours'.
// PyramidKV (Cai et al. 2024) gives lower layers more of the budget, AdaKV (Feng et al. 2024) gives heads what they win from
// each other.
//
// By slices (slice=1: tokens, as in the originals) their weights are pooled across the borders of blocks, and a block is worth
// their mean, or the largest of them (lift=1).
//
// The originals choose once, when the prompt ends, and pool each query head before they take the mean over a KV head's; here
// they choose whenever room is needed, and pool the mean. The kernel is in tokens: at grains
// that it does not span, pooling changes nothing. Heads that choose together (snapkv) go by the sum of what each gives.
#include "policy/all.h"
#include "policy/pooling.h"

namespace ebb {
namespace {

struct SnapOptions {
  std::string_view name;
  std::int32_t window = 0;
  std::int32_t kernel = 1;
  bool pools_max = false;
  std::int32_t slice = 0;
  Lift lift = Lift::kMean;
  Scope scope = Scope::kHead;
  Shares shares;
};

class SnapKv final : public Policy {
 public:
  explicit SnapKv(const SnapOptions& options) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return options_.name; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = options_.scope, .sinks = false, .window = options_.window, .slice = options_.slice};
  }
  [[nodiscard]] Status check_grain(std::int32_t grain) const override { return asks().check_slice(grain); }
  [[nodiscard]] Shares shares() const override { return options_.shares; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    const Pooling pooling{.window = options_.window, .kernel = options_.kernel, .takes_max = options_.pools_max};
    if (scope.slices.n_slices == 0) return pool_before_window(evidence, scope, scope.window_mean, pooling);
    const SliceValues weights = list_slices(evidence, scope, scope.slices.window_mean);
    return lift_slices(pool_before_window(evidence, scope, weights, pooling), options_.lift);
  }

 private:
  SnapOptions options_;
};

SnapOptions options_of(std::string_view name, const ParameterValues& values) {
  return {.name = name,
          .window = values.whole("window"),
          .kernel = values.whole("kernel"),
          .pools_max = values.whole("max") == 1,
          .slice = values.whole("slice"),
          .lift = values.whole("lift") == 1 ? Lift::kMost : Lift::kMean};
}

}  // namespace

std::unique_ptr<Policy> make_snapkv_policy(const ParameterValues& values) {
  SnapOptions options = options_of("snapkv", values);
  constexpr Scope kScopes[] = {Scope::kHead, Scope::kLayer, Scope::kSession};
  options.scope = kScopes[values.whole("together")];
  return std::make_unique<SnapKv>(options);
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
