// KVzip (Kim et al. 2025, arXiv 2505.23416): what the session needs least to say itself again leaves, among all heads of all layers;
// no question has to be known. Every prompt is read twice for it (session/reread.h): about twice the time of prefill.
//
// The original takes the largest weight over a KV head's query heads, here their sum; it removes once, behind the prompt, here
// whenever room is needed. `layers=1`: each layer keeps its share, and only its heads win from each other.
#include "policy/all.h"

namespace ebb {
namespace {

class KvZip final : public Policy {
 public:
  explicit KvZip(const Shares& shares) : shares_(shares) {}

  [[nodiscard]] std::string_view name() const override { return "kvzip"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .reread = true}; }
  [[nodiscard]] Shares shares() const override { return shares_; }

  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    return scope.reread;
  }

 private:
  Shares shares_;
};

}  // namespace

std::unique_ptr<Policy> make_kvzip_policy(const ParameterValues& values) {
  const bool by_layer = values.whole("layers") == 1;
  return std::make_unique<KvZip>(
      Shares{.sharing = by_layer ? FrameSharing::kAcrossHeads : FrameSharing::kAcrossLayers, .floor = values["floor"]});
}

}  // namespace ebb
