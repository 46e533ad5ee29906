// DefensiveKV (Feng et al. 2025, arXiv 2510.13334): what no query of the window ever looked at much leaves, weighed by what its
// values would add. A block's score in a head is the largest share that a query of the window gave it, but at least the mean of
// these over the head's blocks, so that one window does not condemn it, times the length of v W_O. Heads of a layer win budget
// from each other, and in the layer form all heads of all layers do.
//
// The definition gives heads no floor and protects no first tokens. The parameters do, the former in the layer form and the latter
// in both unless told otherwise: without a floor whole layers are left with next to nothing in some prompts; a first token takes
// much of every head's attention, and the length of its value is next to nothing in many models. The largest is of
// what the query heads of a KV head give together, the length is the mean over them and over the block's tokens, and a norm
// behind the output matrix (gemma3) is not looked at.
#include "policy/all.h"
#include "policy/pooling.h"

namespace ebb {
namespace {

class DefensiveKv final : public Policy {
 public:
  DefensiveKv(std::string_view name, FrameSharing sharing, const ParameterValues& values)
      : name_(name),
        window_(values.whole("window")),
        sinks_(values.whole("sinks") == 1),
        shares_{.sharing = sharing, .floor = values["floor"]} {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kHead, .sinks = sinks_, .window = window_, .output_lengths = true};
  }
  [[nodiscard]] Shares shares() const override { return shares_; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    // The window's own tokens are no measure for those before it.
    const std::size_t n = count_before_window(evidence, scope, window_);
    double mean = 0.0;
    for (std::size_t i = 0; i < n; ++i) mean += scope.window_max[i] / static_cast<double>(n);
    std::vector<double> scores;
    for (std::size_t i = 0; i < scope.rows.size(); ++i) {
      scores.push_back(std::max(scope.window_max[i], mean) * scope.output_length[i]);
    }
    return scores;
  }

 private:
  std::string_view name_;
  std::int32_t window_;
  bool sinks_;
  Shares shares_;
};

}  // namespace

std::unique_ptr<Policy> make_defensivekv_policy(const ParameterValues& values) {
  return std::make_unique<DefensiveKv>("defensivekv", FrameSharing::kAcrossHeads, values);
}

std::unique_ptr<Policy> make_layer_defensivekv_policy(const ParameterValues& values) {
  return std::make_unique<DefensiveKv>("layer_defensivekv", FrameSharing::kAcrossLayers, values);
}

}  // namespace ebb
