#include "bench/document_arms.h"

#include <algorithm>

namespace ebb {
namespace {

constexpr std::pair<RecallPlace, std::string_view> kRecallPlaces[] = {
    {RecallPlace::kOriginal, "original"}, {RecallPlace::kCompacted, "compacted"}, {RecallPlace::kTail, "tail"}};
// EVOKE's host-RAM bench.
constexpr std::int32_t kRamBlocks = 8;

std::string_view recalled_by(const DocumentArm& arm) {
  switch (arm.recall) {
    case ArmRecall::kNothing: return "";
    case ArmRecall::kOracle: return arm.remains == Remains::kTokens ? "recompute" : "oracle";
    case ArmRecall::kSelected: break;
  }
  switch (arm.remains) {
    case Remains::kNothing: return "discard";
    case Remains::kTokens: return "breadcrumb";
    case Remains::kBytes: break;
  }
  return arm.selector;
}

// A policy in one of the ways, and, where `arm` is none, nothing.
class ArmMaker {
 public:
  ArmMaker(const DocumentArmNames& names, std::vector<SelectorList> lists, SelectorList by_name)
      : names_(names), lists_(std::move(lists)), by_name_(std::move(by_name)) {}

  std::vector<DocumentArm> make(const std::string& policy, std::string_view arm) const {
    const DocumentArm fused{.policy = policy, .recall = ArmRecall::kSelected, .selectors = SelectorList::fused()};
    const DocumentArm oracle{.policy = policy, .recall = ArmRecall::kOracle, .selectors = by_name_};
    if (arm == "alone") return {{.policy = policy}};
    if (arm == "recall") return in_every_place(by_every_selector(fused));
    if (arm == "oracle") return in_every_place({oracle});
    if (arm == "breadcrumb") return {with(fused, Remains::kTokens)};
    if (arm == "discard") return {with(fused, Remains::kNothing)};
    if (arm == "recompute") return {with(oracle, Remains::kTokens)};
    if (arm != "disk") return {};
    DocumentArm disk = fused;
    disk.n_ram_blocks = kRamBlocks;
    return {disk};
  }

 private:
  static DocumentArm with(DocumentArm arm, Remains remains) {
    arm.remains = remains;
    return arm;
  }
  [[nodiscard]] std::vector<DocumentArm> by_every_selector(const DocumentArm& like) const {
    std::vector<DocumentArm> arms(lists_.size(), like);
    for (std::size_t i = 0; i < arms.size(); ++i) {
      arms[i].selector = names_.selectors[i];
      arms[i].selectors = lists_[i];
    }
    return arms;
  }
  [[nodiscard]] std::vector<DocumentArm> in_every_place(const std::vector<DocumentArm>& like) const {
    std::vector<DocumentArm> arms;
    for (const DocumentArm& arm : like) {
      for (const RecallPlace place : names_.places) {
        for (const std::int32_t n_renewed : names_.renewed) {
          arms.push_back(arm);
          arms.back().place = place;
          arms.back().n_renewed = n_renewed;
        }
      }
    }
    return arms;
  }

  const DocumentArmNames& names_;
  std::vector<SelectorList> lists_;
  SelectorList by_name_;
};

}  // namespace

std::string_view name_of(RecallPlace place) {
  return std::ranges::find(kRecallPlaces, place, &std::pair<RecallPlace, std::string_view>::first)->second;
}

std::optional<RecallPlace> find_recall_place(std::string_view name) {
  for (const auto& [place, of] : kRecallPlaces) {
    if (of == name) return place;
  }
  return std::nullopt;
}

std::string DocumentArm::name() const {
  if (!title.empty()) return title;
  if (policy.empty()) return "never evicting";
  std::string text = policy;
  if (const std::string_view by = recalled_by(*this); !by.empty()) text += fmt::format(", {}", by);
  if (place != RecallPlace::kOriginal) text += fmt::format(", {}", name_of(place));
  if (n_renewed > 0) text += fmt::format(", {} renewed", n_renewed);
  if (n_ram_blocks > 0) text += ", disk";
  return text;
}

Result<std::vector<DocumentArm>> make_document_arms(const DocumentArmNames& names) {
  std::vector<SelectorList> lists;
  for (const std::string& selector : names.selectors) {
    const bool is_default = selector == kDefaultSelector;
    EBB_ASSIGN_OR_RETURN(lists.emplace_back(), SelectorList::parse(is_default ? std::string_view("fused") : selector));
  }
  EBB_ASSIGN_OR_RETURN(SelectorList by_name, SelectorList::parse(kIdentity));
  const ArmMaker maker(names, std::move(lists), std::move(by_name));
  std::vector<DocumentArm> all;
  for (const std::string& policy : names.policies) {
    for (const std::string& arm : names.arms) {
      std::vector<DocumentArm> made = maker.make(policy, arm);
      if (made.empty() && arm != "recall" && arm != "oracle") {
        return error(Code::kInvalidArgument, "there is no arm '{}'", arm);
      }
      std::ranges::move(made, std::back_inserter(all));
    }
  }
  return all;
}

std::string HotPart::name() const { return n_tokens > 0 ? std::to_string(n_tokens) : fmt::format("1/{}", part); }

}  // namespace ebb
