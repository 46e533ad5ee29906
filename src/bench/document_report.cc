// How a report on documents looks: bench/document.h.
#include <algorithm>

#include "bench/document_beside.h"
#include "bench/report.h"
#include "bench/statistics.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

std::string right_text(std::span<const double> right) {
  const ShareInterval interval = score_interval(right);
  return fmt::format("{:.0f} ({:.0f}-{:.0f})", 100.0 * mean_of(right), 100.0 * interval.low, 100.0 * interval.high);
}

// With a mark where the cell is worse, or better, than what all are held against, 19 times of 20.
std::string marked_text(const DocumentReport& report, const DocumentCell& cell) {
  const DocumentCell* const against = find_against(report, cell);
  if (against == nullptr) return right_text(cell.right);
  const PairedDifference off = paired_difference(cell.right, against->right);
  return right_text(cell.right) + (off.high < 0.0 ? " -" : off.low > 0.0 ? " +" : "  ");
}

std::vector<TextTable::Column> first_columns() {
  return {{"kind", Align::kLeft}, {"tokens"}, {"question", Align::kLeft}, {"arm", Align::kLeft}};
}

std::vector<std::string> first_cells(const DocumentCell& cell) {
  return {cell.kind, cell.n_tokens > 0 ? std::to_string(cell.n_tokens) : "-", std::string(name_of(cell.place)),
          cell.arm};
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
      cells.push_back(cell != nullptr ? marked_text(report, *cell) : "");
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

// What was brought back beside the same computed again, and what a disk gave beside RAM; empty where no arm has such another.
std::string counterpart_table(const DocumentReport& report) {
  std::vector<TextTable::Column> columns = first_columns();
  columns.push_back({"hot"});
  columns.push_back({"beside", Align::kLeft});
  columns.push_back({"points"});
  columns.push_back({"within 5"});
  columns.push_back({"same answers"});
  TextTable table(std::move(columns));
  std::size_t n_rows = 0;
  const auto add = [&](const DocumentCell& cell, const DocumentCell* other, const char* what) {
    if (other == nullptr) return;
    ++n_rows;
    const PairedDifference off = paired_difference(cell.right, other->right);
    std::vector<std::string> cells = first_cells(cell);
    cells.push_back(cell.hot.name());
    cells.emplace_back(what);
    cells.push_back(fmt::format("{:+.0f} ({:+.0f}..{:+.0f})", 100.0 * off.mean, 100.0 * off.low, 100.0 * off.high));
    cells.emplace_back(off.mean >= -kRecomputedRule ? "yes" : "no");
    cells.push_back(fmt::format("{} of {}", n_same_answers(cell, *other), cell.said.size()));
    table.add_row(std::move(cells));
  };
  for (const DocumentCell& cell : report.cells) {
    add(cell, find_recomputed(report, cell), "computed again");
    add(cell, find_in_ram(report, cell), "all in RAM");
  }
  return n_rows > 0
             ? "\nBrought back beside computed again, and disk beside RAM (points, and answers letter for letter):\n" +
                   table.render()
             : "";
}

// Of a factorial; empty where there is none.
std::string factor_table(const DocumentReport& report) {
  TextTable table({{"kind", Align::kLeft},
                   {"tokens"},
                   {"question", Align::kLeft},
                   {"hot"},
                   {"factor", Align::kLeft},
                   {"level", Align::kLeft},
                   {"right, %"},
                   {"beside the first"}});
  const std::vector<FactorRow> rows = factor_rows(report);
  for (const FactorRow& row : rows) {
    const FactorLevel& level = row.level;
    std::vector<std::string> cells = first_cells(*row.like);
    cells.back() = row.hot.name();
    cells.insert(cells.end(), {level.level.first, level.level.second, fmt::format("{:.1f}", 100.0 * level.right)});
    const auto& off = level.beside_first;
    cells.push_back(
        off ? fmt::format("{:+.1f} ({:+.1f}..{:+.1f})", 100.0 * off->mean, 100.0 * off->low, 100.0 * off->high) : "");
    table.add_row(std::move(cells));
  }
  return !rows.empty() ? "\nOf each factor, on average over all combinations of the others:\n" + table.render() : "";
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
         (report.against.empty()
              ? ""
              : fmt::format("-, +: worse, better than {} on the same questions, 19 times of 20\n", report.against)) +
         "\nBeside never evicting, per cent of it, and beside the oracle, points (paired bootstrap over questions):\n" +
         beside_table(report) + counterpart_table(report) + factor_table(report) + group_tables(report);
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
