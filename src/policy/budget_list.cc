#include "policy/budget_list.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ebb {
namespace {

// More tokens than any budget has, and far from where sums of doubles stop counting.
constexpr double kMostWeight = 1e12;

class Listed final : public Policy {
 public:
  Listed(std::shared_ptr<const Policy> policy, std::shared_ptr<const BudgetList> list)
      : policy_(std::move(policy)), list_(std::move(list)) {}

  [[nodiscard]] std::string_view name() const override { return policy_->name(); }
  [[nodiscard]] Ask asks() const override {
    Ask ask = policy_->asks();
    ask.scope = std::max(ask.scope, list_->scope);
    return ask;
  }
  [[nodiscard]] Shares shares() const override {
    Shares shares = policy_->shares();
    shares.list = list_.get();
    return shares;
  }
  [[nodiscard]] bool weighs_priorities() const override { return policy_->weighs_priorities(); }
  [[nodiscard]] std::string spec() const override { return policy_->spec(); }
  [[nodiscard]] Status check_grain(std::int32_t grain) const override { return policy_->check_grain(grain); }
  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    return policy_->score(evidence, scope);
  }
  [[nodiscard]] std::int32_t n_rescued(std::int32_t grain) const override { return policy_->n_rescued(grain); }
  [[nodiscard]] std::vector<std::size_t> rescue(const Evidence& evidence, const ScopeEvidence& scope,
                                                std::span<const std::size_t> leaving) const override {
    return policy_->rescue(evidence, scope, leaving);
  }

 private:
  std::shared_ptr<const Policy> policy_;
  std::shared_ptr<const BudgetList> list_;
};

}  // namespace

Status BudgetList::validate(std::int32_t n_layers, std::int32_t n_kv_heads) const {
  const bool by_layer = scope == Scope::kLayer;
  const auto n_wanted = static_cast<std::size_t>(n_layers) * static_cast<std::size_t>(by_layer ? 1 : n_kv_heads);
  if (weights.size() != n_wanted) {
    return error(Code::kInvalidArgument, "{} shares by {}, and the model has {}{}", weights.size(),
                 by_layer ? "layer" : "head", n_wanted,
                 by_layer ? " layers" : fmt::format(" heads ({} layers of {} KV heads)", n_layers, n_kv_heads));
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(weights[i]) && weights[i] >= 0.0 && weights[i] <= kMostWeight) continue;
    return error(Code::kInvalidArgument, "share {} of {} is {}; give numbers from 0 to {:g}", i + 1, weights.size(),
                 weights[i], kMostWeight);
  }
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0.0; })) {
    return error(Code::kInvalidArgument, "all {} shares are 0; give one that is more", weights.size());
  }
  return {};
}

std::shared_ptr<const Policy> with_list(std::shared_ptr<const Policy> policy, std::shared_ptr<const BudgetList> list) {
  if (list == nullptr) return policy;
  return std::make_shared<Listed>(std::move(policy), std::move(list));
}

}  // namespace ebb
