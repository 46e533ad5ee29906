// The arms of papers, in blocks of ours (bench/document_arms.h).
//
//   recency, streaming, h2o, snapkv   what leaves is gone; as their policies have it (policy/registry.cc)
//   evoke, evoke attention            EVOKE's scorer and its recall: the four likest blocks that are liker than all hot ones; and with the
//                                     weights of its attention strategy
//   discard, breadcrumb               the same, where nothing, or nothing but tokens, is kept
//   infllm                            as EVOKE's bench has InfLLM: the oldest leave behind the first tokens, a quarter of the budget is
//                                     for the newest, from half of it down to 0.3; the eight best by representative keys come back
//   arkvale, quest                    blocks that attention has not looked at for longest leave; the best by cuboid-mean, by box,
//                                     come back, as many as half of the budget
#include "bench/document_arms.h"
#include "policy/all.h"

namespace ebb {
namespace {

// EVOKE's marks and most blocks.
constexpr Watermarks kEvokesMarks = {.high = 0.95, .low = 0.75};
constexpr Watermarks kInfllmsMarks = {.high = 0.5, .low = 0.3};
constexpr std::int32_t kInfllmsMost = 8;
constexpr double kInfllmsRecent = 0.25;
// No bound of their own: a session brings back what half of its budget holds.
constexpr std::int32_t kAllThatFits = 1 << 10;
constexpr const char* kEvokesPolicy = "evoke:exponential=1";
constexpr const char* kEvokesAttention = "evoke:attention=0.5,recency=0.2,focus=0.3,exponential=1";

// What names of ours stand for is fixed.
SelectorList list_of(std::string_view text) { return SelectorList::parse(text).value(); }

DocumentArm recalling(std::string title, std::string policy, std::string selector) {
  DocumentArm arm{.title = std::move(title), .policy = std::move(policy), .recall = ArmRecall::kSelected};
  arm.selectors = list_of(selector);
  arm.selector = std::move(selector);
  return arm;
}

DocumentArm of_evoke(std::string title, std::string policy, Remains remains) {
  DocumentArm arm = recalling(std::move(title), std::move(policy), "evoke");
  arm.remains = remains;
  arm.watermarks = kEvokesMarks;
  return arm;
}

DocumentArm of_infllm() {
  DocumentArm arm = recalling("infllm", "streaming", "representative:least=0,worth=0");
  arm.n_recalled = kInfllmsMost;
  arm.watermarks = kInfllmsMarks;
  arm.recent_share = kInfllmsRecent;
  return arm;
}

// Every block is a candidate, and no score is too low.
DocumentArm of_bounds(std::string selector) {
  DocumentArm arm = recalling(selector, "scored", selector + ":least=0,worth=0");
  arm.n_recalled = kAllThatFits;
  return arm;
}

bool is_ours(std::string_view selector, bool has_meanings) {
  if (selector == kEmbedding) return has_meanings;
  return selector != kIdentity && selector != "evoke" && selector != "representative";
}

}  // namespace

DocumentArmList baselines(bool has_meanings) {
  const std::string policy(kDefaultPolicy);
  const DocumentArm ours{.policy = policy, .recall = ArmRecall::kSelected, .selectors = SelectorList::fused()};
  DocumentArmList list{
      .arms = {{.policy = "recency"}, {.policy = "streaming"}, {.policy = "h2o"}, {.policy = "snapkv"}},
      .against = ours.name()};
  list.arms.push_back(of_evoke("discard", kEvokesPolicy, Remains::kNothing));
  list.arms.push_back(of_evoke("breadcrumb", kEvokesPolicy, Remains::kTokens));
  list.arms.push_back(of_evoke("evoke", kEvokesPolicy, Remains::kBytes));
  list.arms.push_back(of_evoke("evoke attention", kEvokesAttention, Remains::kBytes));
  for (DocumentArm& arm : list.arms) {
    if (arm.selector == "evoke" && has_meanings) arm.selectors = list_of("evoke:meanings=1");
  }
  list.arms.push_back(of_infllm());
  list.arms.push_back(of_bounds("arkvale"));
  list.arms.push_back(of_bounds("quest"));
  for (const SelectorKind& kind : selector_kinds()) {
    if (is_ours(kind.name, has_meanings)) list.arms.push_back(recalling("", policy, std::string(kind.name)));
  }
  list.arms.push_back({.policy = policy, .recall = ArmRecall::kOracle, .selectors = list_of(kIdentity)});
  list.arms.push_back(ours);
  return list;
}

}  // namespace ebb
