// How a report of the longbench bench looks: bench/longbench.h.
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/longbench.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

// "62.5 (-12.5 to +0.0)"; of the row that never evicts, the score.
std::string cell_text(const LongBenchReport& report, const LongBenchRow& row, std::size_t task) {
  const std::string score = fmt::format("{:.1f}", row.score(task));
  if (row.budget_tokens == 0) return score;
  const PairedDifference difference = report.difference(row, task);
  return fmt::format("{} ({:+.1f} to {:+.1f})", score, difference.low, difference.high);
}

TextTable table_of(const LongBenchReport& report) {
  std::vector<TextTable::Column> columns = {{"policy", TextTable::Align::kLeft}, {"hot tokens"}};
  for (const LongBenchTask& task : report.tasks) columns.push_back({task.name});
  TextTable table(std::move(columns));
  for (const LongBenchRow& row : report.rows) {
    std::vector<std::string> cells = {row.policy, row.budget_tokens == 0 ? "all" : std::to_string(row.budget_tokens)};
    for (std::size_t t = 0; t < report.tasks.size(); ++t) cells.push_back(cell_text(report, row, t));
    table.add_row(std::move(cells));
  }
  return table;
}

TextTable tasks_table(const LongBenchReport& report) {
  TextTable table({{"task", TextTable::Align::kLeft},
                   {"measure", TextTable::Align::kLeft},
                   {"items"},
                   {"questions"},
                   {"prompt tokens"},
                   {"truncated"}});
  for (const LongBenchTask& task : report.tasks) {
    table.add_row({task.name, std::string(name_of(task.metric)), std::to_string(task.n_tokens.n),
                   std::to_string(task.n_questions), spread_text(task.n_tokens, 0), std::to_string(task.n_truncated)});
  }
  return table;
}

std::string set_up_text(const LongBenchReport& report) {
  return fmt::format(
      "{}, blocks of {}; policies see the question, rows of as many hot tokens have as many frames. In brackets: "
      "points "
      "beside never evicting, 19 times of 20 (paired bootstrap over items)",
      report.model, report.options.block_size);
}

nlohmann::json row_json(const LongBenchReport& report, const LongBenchRow& row) {
  nlohmann::json cells = nlohmann::json::array();
  for (std::size_t t = 0; t < report.tasks.size(); ++t) {
    nlohmann::json cell = {{"task", report.tasks[t].name}, {"score", row.score(t)}, {"scores", row.scores[t]}};
    if (row.budget_tokens > 0) {
      const PairedDifference difference = report.difference(row, t);
      cell["beside_never_evicting"] = {{"points", difference.mean}, {"low", difference.low}, {"high", difference.high}};
    }
    cells.push_back(std::move(cell));
  }
  return {{"policy", row.policy},
          {"budget_tokens", row.budget_tokens},
          {"most_hot_tokens", row.most_hot_tokens},
          {"cells", std::move(cells)}};
}

LinePlot plot_of(const LongBenchReport& report, std::size_t task) {
  LinePlot plot{.title = fmt::format("{} ({})", report.tasks[task].name, name_of(report.tasks[task].metric)),
                .x = {.label = "hot tokens", .is_log = true},
                .y = {.label = "score"},
                .series = {}};
  LinePlot::Series ceiling{.name = report.rows.front().policy, .points = {}};
  for (const std::int32_t budget : report.options.budgets) {
    ceiling.points.push_back({static_cast<double>(budget), report.rows.front().score(task)});
  }
  plot.series.push_back(std::move(ceiling));
  for (const LongBenchRow& row : report.rows) {
    if (row.budget_tokens == 0) continue;
    // Rows are by budget, each with all policies in one order.
    if (row.budget_tokens == report.options.budgets.front()) plot.series.push_back({.name = row.policy, .points = {}});
    for (LinePlot::Series& series : plot.series) {
      if (series.name != row.policy) continue;
      series.points.push_back({static_cast<double>(row.budget_tokens), row.score(task)});
    }
  }
  return plot;
}

}  // namespace

std::string longbench_text(const LongBenchReport& report) {
  return fmt::format("{}\n\n{}\n{}", set_up_text(report), table_of(report).render(), tasks_table(report).render());
}

Status write_longbench_json(const std::filesystem::path& path, const LongBenchReport& report) {
  nlohmann::json tasks = nlohmann::json::array();
  for (const LongBenchTask& task : report.tasks) {
    tasks.push_back({{"name", task.name},
                     {"metric", name_of(task.metric)},
                     {"n_items", task.n_tokens.n},
                     {"n_questions", task.n_questions},
                     {"n_truncated", task.n_truncated},
                     {"prompt_tokens", spread_json(task.n_tokens)}});
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const LongBenchRow& row : report.rows) rows.push_back(row_json(report, row));
  return write_json(path, {{"bench", "longbench"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"block_size", report.options.block_size},
                           {"budgets", report.options.budgets},
                           {"prompts", report.options.file ? "file" : "bundled tasks"},
                           {"seed", report.options.task.seed},
                           {"tasks", std::move(tasks)},
                           {"rows", std::move(rows)}});
}

Status write_longbench_html(const std::filesystem::path& path, const LongBenchReport& report) {
  HtmlPage page("ebb bench longbench: scores by policy at equal frames");
  page.add_paragraph(set_up_text(report) + ".");
  page.add_preformatted(table_of(report).render());
  page.add_preformatted(tasks_table(report).render());
  for (std::size_t t = 0; t < report.tasks.size(); ++t) page.add_plot(plot_of(report, t));
  return page.write(path);
}

}  // namespace ebb
