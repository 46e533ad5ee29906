// The ablation's arms (bench/document_arms.h): ours, and what changes in it.
//
//   one at a time   block size, most blocks, selectors, policy
//   factorial       selectors x moment x gate x policy: EVOKE's embedder, recover before decode, resident gate and attention
//
// An arm is called by the levels that differ from ours, and ours "ours".
#include <array>

#include "bench/document_arms.h"
#include "policy/all.h"

namespace ebb {
namespace {

// 128 are the most that a frame holds.
constexpr std::array kBlockSizes = {16, 32, 64, 128};
constexpr std::array kMosts = {1, 2, 4, 16};
constexpr std::array kOtherSelectors = {"arkvale", "quest", "evoke"};
constexpr std::array kOtherPolicies = {"recency", "streaming", "h2o", "snapkv"};

// The first of each is ours.
constexpr std::array kSelectors = {"fused", "lexical", "digest"};
constexpr std::array kGated = {"identity+lexical:gate=1+digest:gate=1", "lexical:gate=1", "digest:gate=1"};
constexpr const char* kEvoke = "evoke";
constexpr const char* kEvokeAttention = "evoke:attention=0.5,recency=0.2,focus=0.3";

DocumentArm ours() {
  return {.title = "ours",
          .policy = std::string(kDefaultPolicy),
          .recall = ArmRecall::kSelected,
          .selectors = SelectorList::fused()};
}

struct Levels {
  std::size_t selectors = 0;
  bool is_late = false;
  bool has_gate = false;
  std::string policy{kDefaultPolicy};
};

DocumentArm arm_of(const Levels& levels) {
  DocumentArm arm = ours();
  arm.policy = levels.policy;
  arm.selector = levels.has_gate ? kGated[levels.selectors] : kSelectors[levels.selectors];
  arm.selectors = SelectorList::parse(arm.selector).value();
  arm.is_late = levels.is_late;
  const std::string policy = levels.policy == kEvokeAttention ? "evoke with attention" : levels.policy;
  arm.factors = {{"selectors", kSelectors[levels.selectors]},
                 {"moment", levels.is_late ? "behind the question" : "before the tail"},
                 {"gate", levels.has_gate ? "gate" : "no gate"},
                 {"policy", policy}};
  std::string title;
  const auto add = [&](bool differs, std::string_view text) {
    if (differs) title += fmt::format("{}{}", title.empty() ? "" : ", ", text);
  };
  add(levels.selectors > 0, kSelectors[levels.selectors]);
  add(levels.is_late, "behind the question");
  add(levels.has_gate, "gate");
  add(levels.policy != kDefaultPolicy, policy);
  if (!title.empty()) arm.title = title;
  return arm;
}

std::vector<DocumentArm> one_at_a_time() {
  std::vector<DocumentArm> arms;
  for (const std::int32_t size : kBlockSizes) {
    arms.push_back(ours());
    arms.back().title = fmt::format("blocks of {}", size);
    arms.back().block_size = size;
  }
  for (const std::int32_t most : kMosts) {
    arms.push_back(ours());
    arms.back().title = fmt::format("most {}", most);
    arms.back().n_recalled = most;
  }
  for (const char* const selector : kOtherSelectors) {
    arms.push_back(ours());
    arms.back().title = fmt::format("selector {}", selector);
    arms.back().selector = selector;
    arms.back().selectors = SelectorList::parse(selector).value();
  }
  for (const char* const policy : kOtherPolicies) {
    arms.push_back(ours());
    arms.back().title = policy;
    arms.back().policy = policy;
  }
  return arms;
}

}  // namespace

DocumentArmList ablation() {
  DocumentArmList list{.arms = one_at_a_time(), .against = "ours"};
  for (const std::string& policy : {std::string(kDefaultPolicy), std::string(kEvoke), std::string(kEvokeAttention)}) {
    for (std::size_t selectors = 0; selectors < kSelectors.size(); ++selectors) {
      for (const bool is_late : {false, true}) {
        for (const bool has_gate : {false, true}) {
          list.arms.push_back(
              arm_of({.selectors = selectors, .is_late = is_late, .has_gate = has_gate, .policy = policy}));
        }
      }
    }
  }
  return list;
}

}  // namespace ebb
