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
  for (const std::string& selector : selectors) {
    if (std::ranges::find(kDocumentSelectors, selector) == std::end(kDocumentSelectors)) {
      return error(Code::kInvalidArgument, "there is no selector '{}' of what comes back", selector);
    }
  }
  std::vector<DocumentArm> all;
  for (const std::string& policy : policies) {
    for (const std::string& arm : arms) {
      if (arm == "alone") {
        all.push_back({.policy = policy});
      } else if (arm == "recall") {
        for (const std::string& selector : selectors) {
          all.push_back({.policy = policy, .recall = ArmRecall::kSelected, .selector = selector});
        }
      } else if (arm == "oracle") {
        all.push_back({.policy = policy, .recall = ArmRecall::kOracle});
      } else if (arm == "breadcrumb" || arm == "discard") {
        const Remains remains = arm == "discard" ? Remains::kNothing : Remains::kTokens;
        all.push_back({.policy = policy, .recall = ArmRecall::kSelected, .remains = remains});
      } else {
        return error(Code::kInvalidArgument, "there is no arm '{}'", arm);
      }
    }
  }
  return all;
}

std::string HotPart::name() const { return n_tokens > 0 ? std::to_string(n_tokens) : fmt::format("1/{}", part); }

}  // namespace ebb
