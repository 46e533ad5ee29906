#include "bench/document_arms.h"

#include <algorithm>

namespace ebb {

std::string DocumentArm::name() const {
  if (policy.empty()) return "never evicting";
  if (remains == Remains::kNothing) return policy + ", discard";
  if (remains == Remains::kTokens) return policy + ", breadcrumb";
  switch (recall) {
    case ArmRecall::kNothing: return policy;
    case ArmRecall::kSelected: return policy + ", " + selector;
    case ArmRecall::kOracle: return policy + ", oracle";
  }
  return policy;
}

Result<std::vector<DocumentArm>> make_document_arms(std::span<const std::string> policies,
                                                    std::span<const std::string> arms,
                                                    std::span<const std::string> selectors) {
  std::vector<std::pair<std::string, SelectorList>> lists;
  for (const std::string& selector : selectors) {
    EBB_ASSIGN_OR_RETURN(SelectorList list,
                         SelectorList::parse(selector == kDefaultSelector ? std::string_view("fused") : selector));
    lists.emplace_back(selector, std::move(list));
  }
  EBB_ASSIGN_OR_RETURN(const SelectorList by_name, SelectorList::parse("identity"));
  std::vector<DocumentArm> all;
  for (const std::string& policy : policies) {
    for (const std::string& arm : arms) {
      if (arm == "alone") {
        all.push_back({.policy = policy});
      } else if (arm == "recall") {
        for (const auto& [selector, list] : lists) {
          all.push_back({.policy = policy, .recall = ArmRecall::kSelected, .selector = selector, .selectors = list});
        }
      } else if (arm == "oracle") {
        all.push_back({.policy = policy, .recall = ArmRecall::kOracle, .selectors = by_name});
      } else if (arm == "breadcrumb" || arm == "discard") {
        const Remains remains = arm == "discard" ? Remains::kNothing : Remains::kTokens;
        all.push_back(
            {.policy = policy, .recall = ArmRecall::kSelected, .selectors = SelectorList::fused(), .remains = remains});
      } else {
        return error(Code::kInvalidArgument, "there is no arm '{}'", arm);
      }
    }
  }
  return all;
}

std::string HotPart::name() const { return n_tokens > 0 ? std::to_string(n_tokens) : fmt::format("1/{}", part); }

}  // namespace ebb
