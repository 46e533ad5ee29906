// KeyDiff (Park et al. 2025, arXiv 2504.15364): keys that are most like the mean of all leave first, by head. A block's score is the
// mean of its tokens', which its mean direction gives exactly. The original protects nothing and falls apart at small budgets;
// here the first tokens and the last ones are held as for any policy.
#include <cmath>

#include "policy/all.h"

namespace ebb {
namespace {

class KeyDiff final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "keydiff"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .keys = true}; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> anchor(scope.n_key_dims, 0.0);
    for (std::size_t i = 0; i < scope.rows.size(); ++i) {
      const double n_tokens = evidence.block(scope.rows[i]).span.n_tokens();
      const auto direction = direction_of(scope, i);
      for (std::size_t d = 0; d < direction.size(); ++d) anchor[d] += n_tokens * double{direction[d]};
    }
    double length = 0.0;
    for (const double x : anchor) length += x * x;
    length = std::sqrt(length);
    std::vector<double> scores(scope.rows.size(), 0.0);
    for (std::size_t i = 0; length > 0.0 && i < scores.size(); ++i) {
      const auto direction = direction_of(scope, i);
      for (std::size_t d = 0; d < direction.size(); ++d) scores[i] -= double{direction[d]} * anchor[d] / length;
    }
    return scores;
  }

 private:
  static std::span<const float> direction_of(const ScopeEvidence& scope, std::size_t row) {
    return std::span(scope.key_direction).subspan(row * scope.n_key_dims, scope.n_key_dims);
  }
};

}  // namespace

std::unique_ptr<Policy> make_keydiff_policy(const ParameterValues&) { return std::make_unique<KeyDiff>(); }

}  // namespace ebb
