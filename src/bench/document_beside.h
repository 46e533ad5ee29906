// Document beside: what cells of a document report are held against, pair by pair over the same questions.
//
// It prints nothing. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/document.h"
#include "bench/statistics.h"

namespace ebb {

// Budgets, in the order in which they came.
[[nodiscard]] std::vector<HotPart> hot_parts(const DocumentReport& report);
// One for each arm of a case: its first.
[[nodiscard]] std::vector<const DocumentCell*> rows_of(const DocumentReport& report);
// Scores by what they are counted by, in the order of the names' lengths and letters.
[[nodiscard]] std::vector<std::pair<std::string, std::vector<double>>> by_group(const DocumentCell& cell);
// Of the same kind, length and place.
[[nodiscard]] bool are_of_one_case(const DocumentCell& a, const DocumentCell& b);
// Of the same case; null where there is none.
[[nodiscard]] const DocumentCell* find_cell(const DocumentReport& report, const DocumentCell& like,
                                            std::string_view arm, const HotPart& hot);
// With everything hot; null where nothing was asked so.
[[nodiscard]] const DocumentCell* find_ceiling(const DocumentReport& report, const DocumentCell& like);
// At the cell's budget, and never the cell itself: the oracle of its policy; what all arms are held against; the same arm, but that
// what comes back is computed again; the same arm, but that all is kept in RAM.
[[nodiscard]] const DocumentCell* find_oracle(const DocumentReport& report, const DocumentCell& like);
[[nodiscard]] const DocumentCell* find_against(const DocumentReport& report, const DocumentCell& like);
[[nodiscard]] const DocumentCell* find_recomputed(const DocumentReport& report, const DocumentCell& like);
[[nodiscard]] const DocumentCell* find_in_ram(const DocumentReport& report, const DocumentCell& like);

// EVOKE's rule: what is brought back is within 5 points of what is computed again.
inline constexpr double kRecomputedRule = 0.05;

// Questions to which both said the same, letter for letter.
[[nodiscard]] std::size_t n_same_answers(const DocumentCell& a, const DocumentCell& b);

// What a level of a factor has on average over all combinations of the others, in one case at one budget.
struct FactorLevel {
  Factor level;
  double right = 0.0;
  // By how much that is more than what the factor's first level has, question by question; nothing of that itself.
  std::optional<PairedDifference> beside_first;
};
[[nodiscard]] std::vector<FactorLevel> factor_levels(const DocumentReport& report, const DocumentCell& like,
                                                     const HotPart& hot);
// Of all cases, each at every budget.
struct FactorRow {
  const DocumentCell* like = nullptr;
  HotPart hot;
  FactorLevel level;
};
[[nodiscard]] std::vector<FactorRow> factor_rows(const DocumentReport& report);

}  // namespace ebb
