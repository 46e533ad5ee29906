#include "bench/document_beside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr HotPart kHot{.part = 0, .n_tokens = 512};

DocumentCell cell_of(const std::string& arm, std::vector<double> right, const HotPart& hot = kHot) {
  DocumentCell cell{.kind = "niah", .n_tokens = 1024, .arm = arm, .hot = hot, .right = std::move(right)};
  for (const double one : cell.right) cell.said.push_back(one > 0.0 ? "17" : "18");
  return cell;
}

DocumentReport report_of_ways() {
  DocumentReport report{.arms = *make_document_arms({.policies = {"h2o"},
                                                     .arms = {"recall", "oracle", "breadcrumb", "recompute", "disk"},
                                                     .places = {RecallPlace::kOriginal, RecallPlace::kTail}}),
                        .against = "h2o, recall"};
  report.cells.push_back(cell_of("never evicting", {1.0, 1.0}, {}));
  for (const DocumentArm& arm : report.arms) report.cells.push_back(cell_of(arm.name(), {1.0, 0.0}));
  return report;
}

std::string name_of_found(const DocumentCell* cell) { return cell != nullptr ? cell->arm : "none"; }

TEST(DocumentBeside, each_arm_is_held_against_what_differs_from_it_in_one_thing) {
  const DocumentReport report = report_of_ways();
  const auto cell = [&](std::string_view arm) { return *find_cell(report, report.cells.front(), arm, kHot); };
  EXPECT_EQ(name_of_found(find_ceiling(report, cell("h2o, recall"))), "never evicting");
  EXPECT_EQ(name_of_found(find_recomputed(report, cell("h2o, recall"))), "h2o, breadcrumb");
  EXPECT_EQ(name_of_found(find_recomputed(report, cell("h2o, recall, tail"))), "h2o, breadcrumb");
  EXPECT_EQ(name_of_found(find_recomputed(report, cell("h2o, oracle"))), "h2o, recompute");
  EXPECT_EQ(name_of_found(find_recomputed(report, cell("h2o, breadcrumb"))), "none");
  EXPECT_EQ(name_of_found(find_in_ram(report, cell("h2o, recall, disk"))), "h2o, recall");
  EXPECT_EQ(name_of_found(find_in_ram(report, cell("h2o, recall"))), "none");
  EXPECT_EQ(name_of_found(find_oracle(report, cell("h2o, recall"))), "h2o, oracle");
  EXPECT_EQ(name_of_found(find_against(report, cell("h2o, breadcrumb"))), "h2o, recall");
  EXPECT_EQ(find_against(report, report.cells.front()), nullptr);
}

TEST(DocumentBeside, answers_are_the_same_letter_for_letter_or_not) {
  EXPECT_EQ(n_same_answers(cell_of("a", {1.0, 0.0, 1.0}), cell_of("b", {1.0, 1.0, 1.0})), 2U);
}

// One of selectors matters and the gate does not.
TEST(DocumentBeside, a_factors_level_is_a_mean_over_the_others_beside_its_first) {
  DocumentReport report;
  for (const std::string selectors : {"fused", "lexical"}) {
    for (const std::string gate : {"no gate", "gate"}) {
      DocumentArm arm{.title = selectors + gate, .policy = "h2o"};
      arm.factors = {{"selectors", selectors}, {"gate", gate}};
      const double right = selectors == "fused" ? 1.0 : 0.0;
      report.cells.push_back(cell_of(arm.name(), {right, right, 1.0}));
      report.arms.push_back(std::move(arm));
    }
  }
  const std::vector<FactorLevel> levels = factor_levels(report, report.cells.front(), kHot);
  ASSERT_EQ(levels.size(), 4U);
  EXPECT_EQ(levels[0].level, (Factor{"gate", "no gate"}));
  EXPECT_FALSE(levels[0].beside_first.has_value());
  EXPECT_DOUBLE_EQ(levels[1].beside_first->mean, 0.0);
  EXPECT_EQ(levels[3].level, (Factor{"selectors", "lexical"}));
  EXPECT_NEAR(levels[3].right, 1.0 / 3.0, 1e-9);
  EXPECT_NEAR(levels[3].beside_first->mean, -2.0 / 3.0, 1e-9);
}

}  // namespace
}  // namespace ebb
