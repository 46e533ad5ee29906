// BudgetList: how a budget is shared among layers or heads where the user says so, instead of as the policy would.
//
// Only proportions count: a list that was made for one budget serves any other (EvolKV's completion). A policy with a list is the
// same policy; it chooses by layer, or by head, at least.
//
// Thread rule: a value; functions of their arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "policy/policy.h"

namespace ebb {

struct BudgetList {
  // kLayer: one weight for each layer. kHead: one for each head, [layer][KV head].
  Scope scope = Scope::kLayer;
  // Finite, none negative, not all 0. One that is 0 has what is held there and no more.
  std::vector<double> weights;

  // kInvalidArgument says which weight is wrong, or how many there should be.
  [[nodiscard]] Status validate(std::int32_t n_layers, std::int32_t n_kv_heads) const;
};

// The policy with frames shared by the list; without one, the policy itself.
[[nodiscard]] std::shared_ptr<const Policy> with_list(std::shared_ptr<const Policy> policy,
                                                      std::shared_ptr<const BudgetList> list);

}  // namespace ebb
