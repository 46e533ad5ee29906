// How a report on documents looks: bench/document.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/document.h"
#include "bench/report.h"
#include "bench/statistics.h"
#include "bench/svg_plot.h"
#include "server/recall_json.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

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

// With everything hot; null where nothing was asked so.
const DocumentCell* find_ceiling(const DocumentReport& report, const DocumentCell& like) {
  const DocumentCell* const found = find_cell(report, like, "never evicting", {});
  return found != nullptr && found->right.size() == like.right.size() ? found : nullptr;
}

// That of the cell's policy at its budget.
const DocumentCell* find_oracle(const DocumentReport& report, const DocumentCell& like) {
  const std::string policy = like.arm.substr(0, like.arm.find(", "));
  const DocumentCell* const found = find_cell(report, like, policy + ", oracle", like.hot);
  return found != &like ? found : nullptr;
}

std::vector<HotPart> hot_parts(const DocumentReport& report) {
  std::vector<HotPart> parts;
  for (const DocumentCell& cell : report.cells) {
    if (!cell.hot.is_all() && std::ranges::find(parts, cell.hot) == parts.end()) parts.push_back(cell.hot);
  }
  return parts;
}

std::string right_text(std::span<const double> right) {
  const ShareInterval interval = score_interval(right);
  return fmt::format("{:.0f} ({:.0f}-{:.0f})", 100.0 * mean_of(right), 100.0 * interval.low, 100.0 * interval.high);
}

std::vector<TextTable::Column> first_columns() {
  return {{"kind", Align::kLeft}, {"tokens"}, {"question", Align::kLeft}, {"arm", Align::kLeft}};
}

std::vector<std::string> first_cells(const DocumentCell& cell) {
  return {cell.kind, cell.n_tokens > 0 ? std::to_string(cell.n_tokens) : "-", std::string(name_of(cell.place)),
          cell.arm};
}

// One for each arm of a case: its first.
std::vector<const DocumentCell*> rows_of(const DocumentReport& report) {
  std::vector<const DocumentCell*> rows;
  for (const DocumentCell& cell : report.cells) {
    const bool is_known = std::ranges::any_of(
        rows, [&](const DocumentCell* row) { return are_of_one_case(*row, cell) && row->arm == cell.arm; });
    if (!is_known) rows.push_back(&cell);
  }
  return rows;
}

std::string right_table(const DocumentReport& report) {
  const std::vector<HotPart> parts = hot_parts(report);
  std::vector<TextTable::Column> columns = first_columns();
  columns.push_back({"n"});
  columns.push_back({"all hot"});
  for (const HotPart& part : parts) columns.push_back({part.name()});
  columns.push_back({"found, %"});
  columns.push_back({"recalled"});
  columns.push_back({"ms to answer"});
  TextTable table(std::move(columns));
  for (const DocumentCell* row : rows_of(report)) {
    std::vector<std::string> cells = first_cells(*row);
    cells.push_back(std::to_string(row->right.size()));
    cells.push_back(row->hot.is_all() ? right_text(row->right) : "");
    for (const HotPart& part : parts) {
      const DocumentCell* const cell = find_cell(report, *row, row->arm, part);
      cells.push_back(cell != nullptr ? right_text(cell->right) : "");
    }
    const auto n = static_cast<double>(row->right.size());
    cells.push_back(row->found.empty() ? "" : fmt::format("{:.0f}", 100.0 * mean_of(row->found)));
    cells.push_back(fmt::format("{:.1f}", static_cast<double>(row->n_recalled) / n));
    cells.push_back(fmt::format("{:.0f}", median(row->ms)));
    table.add_row(std::move(cells));
  }
  return table.render();
}

std::string beside_text(const DocumentReport& report, const DocumentCell& cell) {
  std::string text;
  if (const DocumentCell* const most = find_ceiling(report, cell)) {
    if (const std::optional<PairedShare> share = paired_share(cell.right, most->right)) {
      text = fmt::format("{:.0f} ({:.0f}-{:.0f})", 100.0 * share->share, 100.0 * share->low, 100.0 * share->high);
    }
  }
  if (const DocumentCell* const oracle = find_oracle(report, cell)) {
    const PairedDifference off = paired_difference(cell.right, oracle->right);
    text += fmt::format("{}{:+.0f} ({:+.0f}..{:+.0f})", text.empty() ? "" : "; ", 100.0 * off.mean, 100.0 * off.low,
                        100.0 * off.high);
  }
  return text;
}

std::string beside_table(const DocumentReport& report) {
  const std::vector<HotPart> parts = hot_parts(report);
  std::vector<TextTable::Column> columns = first_columns();
  for (const HotPart& part : parts) columns.push_back({part.name()});
  TextTable table(std::move(columns));
  for (const DocumentCell* row : rows_of(report)) {
    if (row->hot.is_all()) continue;
    std::vector<std::string> cells = first_cells(*row);
    for (const HotPart& part : parts) {
      const DocumentCell* const cell = find_cell(report, *row, row->arm, part);
      cells.push_back(cell != nullptr ? beside_text(report, *cell) : "");
    }
    table.add_row(std::move(cells));
  }
  return table.render();
}

// Scores by what they are counted by, in the order in which that came.
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

// A table for each kind that has groups: a row for each of its cells, a column for each group.
std::string group_tables(const DocumentReport& report) {
  std::vector<std::string> kinds;
  for (const DocumentCell& cell : report.cells) {
    if (!by_group(cell).empty() && std::ranges::find(kinds, cell.kind) == kinds.end()) kinds.push_back(cell.kind);
  }
  std::string text;
  for (const std::string& kind : kinds) {
    const auto first = std::ranges::find(report.cells, kind, &DocumentCell::kind);
    std::vector<TextTable::Column> columns = first_columns();
    columns.push_back({"hot"});
    for (const auto& [group, right] : by_group(*first)) columns.push_back({fmt::format("{}, n", group)});
    TextTable table(std::move(columns));
    for (const DocumentCell& cell : report.cells) {
      if (cell.kind != kind) continue;
      std::vector<std::string> cells = first_cells(cell);
      cells.push_back(cell.hot.is_all() ? "all" : cell.hot.name());
      for (const auto& [group, right] : by_group(cell)) {
        cells.push_back(fmt::format("{:.0f}, {}", 100.0 * mean_of(right), right.size()));
      }
      table.add_row(std::move(cells));
    }
    text += "\n" + table.render();
  }
  return text;
}

nlohmann::json cell_json(const DocumentReport& report, const DocumentCell& cell) {
  const ShareInterval interval = score_interval(cell.right);
  nlohmann::json json = {{"kind", cell.kind},
                         {"tokens", cell.n_tokens},
                         {"question", name_of(cell.place)},
                         {"arm", cell.arm},
                         {"part", cell.hot.part},
                         {"budget_tokens", cell.hot.n_tokens},
                         {"block_size", cell.block_size},
                         {"paraphrased", cell.paraphrased},
                         {"n", cell.right.size()},
                         {"right", mean_of(cell.right)},
                         {"low", interval.low},
                         {"high", interval.high},
                         {"by_question", cell.right},
                         {"recalled_blocks", cell.n_recalled},
                         {"ms", median(cell.ms)}};
  if (!cell.found.empty()) json["found"] = mean_of(cell.found);
  for (const auto& [group, right] : by_group(cell)) {
    const ShareInterval of_group = score_interval(right);
    json["groups"].push_back({{"name", group},
                              {"n", right.size()},
                              {"right", mean_of(right)},
                              {"low", of_group.low},
                              {"high", of_group.high}});
  }
  const auto put = [&](const char* name, const char* of, double value, double low, double high) {
    json[name] = {{of, value}, {"low", low}, {"high", high}};
  };
  if (const DocumentCell* const most = find_ceiling(report, cell); most != nullptr && most != &cell) {
    const PairedDifference off = paired_difference(cell.right, most->right);
    put("beside_never_evicting", "mean", off.mean, off.low, off.high);
    if (const std::optional<PairedShare> share = paired_share(cell.right, most->right)) {
      put("of_never_evicting", "share", share->share, share->low, share->high);
    }
  }
  if (const DocumentCell* const oracle = find_oracle(report, cell); oracle != nullptr && !cell.hot.is_all()) {
    const PairedDifference off = paired_difference(cell.right, oracle->right);
    put("beside_oracle", "mean", off.mean, off.low, off.high);
  }
  json["misses"] = nlohmann::json::array();
  for (const DocumentMiss& miss : cell.misses) {
    json["misses"].push_back({{"question", miss.question},
                              {"wanted", miss.wanted},
                              {"said", miss.said},
                              {"needed", miss.needed},
                              {"looks", recall_json(miss.looks, true)}});
  }
  return json;
}

// Scores by budget, of one case; those with everything hot at every budget.
LinePlot plot_of(const DocumentReport& report, const DocumentCell& first) {
  const bool has_budgets = !report.options.budgets.empty();
  LinePlot plot{
      .title = first.n_tokens > 0
                   ? fmt::format("{}, {} tokens, question {}", first.kind, first.n_tokens, name_of(first.place))
                   : fmt::format("{}, question {}", first.kind, name_of(first.place)),
      .x = {.label = has_budgets ? "tokens that may be hot" : "part of the request that may be hot", .is_log = true},
      .y = {.label = "right answers, %"},
      .series = {}};
  for (const DocumentCell* row : rows_of(report)) {
    if (!are_of_one_case(*row, first)) continue;
    LinePlot::Series series{.name = row->arm, .points = {}};
    for (const HotPart& part : hot_parts(report)) {
      const DocumentCell* const cell = row->hot.is_all() ? row : find_cell(report, *row, row->arm, part);
      if (cell == nullptr) continue;
      const ShareInterval interval = score_interval(cell->right);
      series.points.push_back({.x = has_budgets ? part.n_tokens : 1.0 / part.part,
                               .y = 100.0 * mean_of(cell->right),
                               .low = 100.0 * interval.low,
                               .high = 100.0 * interval.high});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

std::string document_text(const DocumentReport& report) {
  const RecallTaskOptions& task = report.options.cases.task;
  return fmt::format(
             "{}, one request of {} tokens (median): right answers in per cent (95 of 100 such runs lie between), by "
             "what of it may be hot;\nof what tells the answer, how much was hot, blocks recalled and time until the "
             "answer begins at the first of these; seed {}, split {}, questions {}, {} near twins\n\n",
             report.model, report.n_request_tokens, task.seed, name_of(task.split),
             task.paraphrased ? "paraphrased where the kind can" : "in the facts' words",
             task.near_twins ? "with" : "without") +
         right_table(report) +
         "\nBeside never evicting, per cent of it, and beside the oracle, points (paired bootstrap over questions):\n" +
         beside_table(report) + group_tables(report);
}

Status write_document_json(const std::filesystem::path& path, const DocumentReport& report) {
  nlohmann::json cells = nlohmann::json::array();
  for (const DocumentCell& cell : report.cells) cells.push_back(cell_json(report, cell));
  const DocumentOptions& options = report.options;
  const RecallTaskOptions& task = options.cases.task;
  return write_json(path, {{"bench", "document"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"n_ctx_train", report.n_ctx_train},
                           {"request_tokens", report.n_request_tokens},
                           {"most_recalled_blocks", options.n_recalled_blocks},
                           {"split", name_of(task.split)},
                           {"haystack", options.cases.haystack ? name_of(*options.cases.haystack) : "each kind's own"},
                           {"paraphrased", task.paraphrased},
                           {"near_twins", task.near_twins},
                           {"n_mentions", task.n_mentions},
                           {"seed", task.seed},
                           {"cells", std::move(cells)}});
}

Status write_document_html(const std::filesystem::path& path, const DocumentReport& report) {
  HtmlPage page("A document and a question, longer than the KV budget");
  page.add_paragraph(
      fmt::format("{}, one request of {} tokens (median); never evicting is drawn at every budget. Strokes: where the "
                  "true share lies, 19 times of 20.",
                  report.model, report.n_request_tokens));
  const DocumentCell* last = nullptr;
  for (const DocumentCell* row : rows_of(report)) {
    if (last == nullptr || !are_of_one_case(*last, *row)) page.add_plot(plot_of(report, *row));
    last = row;
  }
  page.add_heading("Table");
  page.add_preformatted(document_text(report));
  return page.write(path);
}

}  // namespace ebb
