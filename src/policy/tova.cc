// TOVA (Oren et al. 2024, "Transformers are Multi-State RNNs"): what the last query looks at least leaves, the same tokens in
// every head of a layer. The mean over heads ranks as their sum does. Its decision of one query is noisy; here it is not final.
#include "policy/all.h"

namespace ebb {
namespace {

class Tova final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "tova"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kLayer, .sinks = false, .last = true}; }

  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    return scope.last;
  }
};

}  // namespace

std::unique_ptr<Policy> make_tova_policy(const ParameterValues&) { return std::make_unique<Tova>(); }

}  // namespace ebb
