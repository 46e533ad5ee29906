// H2O (Zhang et al. 2023, "H2O: Heavy-Hitter Oracle"): what all queries together looked at least leaves, by head; a share of the
// cache is for the newest tokens. Plain sums favour old tokens; `lifetime` divides by the queries that could see a block, which
// is kvpress's ObservedAttention and OpenVINO's NORM_SUM.
#include "policy/all.h"

namespace ebb {
namespace {

class H2o final : public Policy {
 public:
  H2o(double recent, bool by_lifetime) : recent_(recent), by_lifetime_(by_lifetime) {}

  [[nodiscard]] std::string_view name() const override { return "h2o"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .sinks = false, .totals = true}; }

  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    std::vector<double> scores = scope.total;
    for (std::size_t i = 0; by_lifetime_ && i < scores.size(); ++i) scores[i] /= std::max(1.0, scope.n_queries[i]);
    // The newest stay longest, the newest of them last.
    const auto n_recent = static_cast<std::size_t>(recent_ * static_cast<double>(scores.size()));
    const double heaviest = scores.empty() ? 0.0 : *std::ranges::max_element(scores);
    for (std::size_t i = scores.size() - n_recent; i < scores.size(); ++i) {
      scores[i] = heaviest + 1.0 + static_cast<double>(i);
    }
    return scores;
  }

 private:
  double recent_;
  bool by_lifetime_;
};

}  // namespace

std::unique_ptr<Policy> make_h2o_policy(const ParameterValues& values) {
  return std::make_unique<H2o>(values["recent"], values.whole("lifetime") == 1);
}

}  // namespace ebb
