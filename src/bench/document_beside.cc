#include "bench/document_beside.h"

#include <algorithm>
#include <map>

namespace ebb {
namespace {

const DocumentArm* find_arm(const DocumentReport& report, std::string_view name) {
  const auto found = std::ranges::find_if(report.arms, [&](const DocumentArm& arm) { return arm.name() == name; });
  return found != report.arms.end() ? &*found : nullptr;
}

// That of the arm that the cell's becomes by `change`.
template <class Change>
const DocumentCell* find_changed(const DocumentReport& report, const DocumentCell& like, const Change& change) {
  const DocumentArm* const arm = find_arm(report, like.arm);
  if (arm == nullptr || !arm->title.empty()) return nullptr;
  DocumentArm changed = *arm;
  change(changed);
  const std::string name = changed.name();
  return name == like.arm ? nullptr : find_cell(report, like, name, like.hot);
}

void add_to(std::vector<double>& sums, const std::vector<double>& more) {
  sums.resize(more.size(), 0.0);
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

}  // namespace

std::vector<HotPart> hot_parts(const DocumentReport& report) {
  std::vector<HotPart> parts;
  for (const DocumentCell& cell : report.cells) {
    if (!cell.hot.is_all() && std::ranges::find(parts, cell.hot) == parts.end()) parts.push_back(cell.hot);
  }
  return parts;
}

std::vector<const DocumentCell*> rows_of(const DocumentReport& report) {
  std::vector<const DocumentCell*> rows;
  for (const DocumentCell& cell : report.cells) {
    const bool is_known = std::ranges::any_of(
        rows, [&](const DocumentCell* row) { return are_of_one_case(*row, cell) && row->arm == cell.arm; });
    if (!is_known) rows.push_back(&cell);
  }
  return rows;
}

std::vector<std::pair<std::string, std::vector<double>>> by_group(const DocumentCell& cell) {
  std::vector<std::pair<std::string, std::vector<double>>> groups;
  for (std::size_t i = 0; i < cell.right.size(); ++i) {
    if (cell.groups[i].empty()) continue;
    auto found = std::ranges::find(groups, cell.groups[i], &std::pair<std::string, std::vector<double>>::first);
    if (found == groups.end()) found = groups.insert(groups.end(), {cell.groups[i], {}});
    found->second.push_back(cell.right[i]);
  }
  std::ranges::stable_sort(groups, {}, [](const auto& group) { return std::pair(group.first.size(), group.first); });
  return groups;
}

bool are_of_one_case(const DocumentCell& a, const DocumentCell& b) {
  return a.kind == b.kind && a.n_tokens == b.n_tokens && a.place == b.place;
}

const DocumentCell* find_cell(const DocumentReport& report, const DocumentCell& like, std::string_view arm,
                              const HotPart& hot) {
  for (const DocumentCell& cell : report.cells) {
    if (are_of_one_case(cell, like) && cell.arm == arm && cell.hot == hot) return &cell;
  }
  return nullptr;
}

const DocumentCell* find_ceiling(const DocumentReport& report, const DocumentCell& like) {
  const DocumentCell* const found = find_cell(report, like, DocumentArm().name(), {});
  return found != nullptr && found->right.size() == like.right.size() ? found : nullptr;
}

const DocumentCell* find_oracle(const DocumentReport& report, const DocumentCell& like) {
  const std::string policy = like.arm.substr(0, like.arm.find(", "));
  const DocumentCell* const found = find_cell(report, like, policy + ", oracle", like.hot);
  return found != &like ? found : nullptr;
}

const DocumentCell* find_against(const DocumentReport& report, const DocumentCell& like) {
  if (report.against.empty() || like.hot.is_all()) return nullptr;
  const DocumentCell* const found = find_cell(report, like, report.against, like.hot);
  return found != &like ? found : nullptr;
}

const DocumentCell* find_recomputed(const DocumentReport& report, const DocumentCell& like) {
  return find_changed(report, like, [](DocumentArm& arm) {
    if (arm.remains == Remains::kBytes) arm.remains = Remains::kTokens;
    arm.place = RecallPlace::kOriginal;
  });
}

const DocumentCell* find_in_ram(const DocumentReport& report, const DocumentCell& like) {
  return find_changed(report, like, [](DocumentArm& arm) { arm.n_ram_blocks = 0; });
}

std::size_t n_same_answers(const DocumentCell& a, const DocumentCell& b) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < std::min(a.said.size(), b.said.size()); ++i) n += a.said[i] == b.said[i] ? 1 : 0;
  return n;
}

// A question is asked in many arms, which are no questions of their own: their mean is what counts, and pairs are of questions.
std::vector<FactorLevel> factor_levels(const DocumentReport& report, const DocumentCell& like, const HotPart& hot) {
  std::vector<std::pair<Factor, std::vector<double>>> by_level;
  std::map<Factor, std::int32_t> n_arms;
  for (const DocumentArm& arm : report.arms) {
    const DocumentCell* const cell = find_cell(report, like, arm.name(), hot);
    if (cell == nullptr) continue;
    for (const Factor& factor : arm.factors) {
      auto found = std::ranges::find(by_level, factor, &std::pair<Factor, std::vector<double>>::first);
      if (found == by_level.end()) found = by_level.insert(by_level.end(), {factor, {}});
      add_to(found->second, cell->right);
      ++n_arms[factor];
    }
  }
  for (auto& [factor, right] : by_level) {
    for (double& one : right) one /= n_arms.at(factor);
  }
  std::ranges::stable_sort(by_level, {}, [](const auto& level) { return level.first.first; });
  std::vector<FactorLevel> levels;
  const std::vector<double>* first = nullptr;
  for (const auto& [factor, right] : by_level) {
    FactorLevel level{.level = factor, .right = mean_of(right), .beside_first = std::nullopt};
    if (levels.empty() || levels.back().level.first != factor.first) {
      first = &right;
    } else if (first->size() == right.size()) {
      level.beside_first = paired_difference(right, *first);
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

std::vector<FactorRow> factor_rows(const DocumentReport& report) {
  std::vector<FactorRow> rows;
  const DocumentCell* last = nullptr;
  for (const DocumentCell* row : rows_of(report)) {
    if (last != nullptr && are_of_one_case(*last, *row)) continue;
    last = row;
    for (const HotPart& hot : hot_parts(report)) {
      for (FactorLevel& level : factor_levels(report, *row, hot)) {
        rows.push_back({.like = row, .hot = hot, .level = std::move(level)});
      }
    }
  }
  return rows;
}

}  // namespace ebb
