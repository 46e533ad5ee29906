// How a report on documents looks: bench/document.h.
#include <nlohmann/json.hpp>

#include "bench/document.h"
#include "bench/report.h"
#include "bench/statistics.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

const DocumentCell* find_cell(const DocumentReport& report, const DocumentCell& like, std::int32_t part) {
  for (const DocumentCell& cell : report.cells) {
    if (cell.kind == like.kind && cell.place == like.place && cell.arm == like.arm && cell.part == part) return &cell;
  }
  return nullptr;
}

const DocumentCell* find_ceiling(const DocumentReport& report, const DocumentCell& like) {
  for (const DocumentCell& cell : report.cells) {
    if (cell.kind == like.kind && cell.place == like.place && cell.part == 1) return &cell;
  }
  return nullptr;
}

double share_of(const DocumentCell& cell) {
  double n_right = 0.0;
  for (const double right : cell.right) n_right += right;
  return cell.right.empty() ? 0.0 : n_right / static_cast<double>(cell.right.size());
}

ShareInterval interval_of(const DocumentCell& cell) {
  const auto n = static_cast<std::int64_t>(cell.right.size());
  return share_interval(static_cast<std::int64_t>(share_of(cell) * static_cast<double>(n) + 0.5), n);
}

std::string cell_text(const DocumentCell* cell) {
  if (cell == nullptr) return "";
  const ShareInterval interval = interval_of(*cell);
  return fmt::format("{} ({:.0f}-{:.0f})", percent_text(share_of(*cell)), 100.0 * interval.low, 100.0 * interval.high);
}

}  // namespace

std::string document_text(const DocumentReport& report) {
  std::vector<TextTable::Column> columns = {
      {"kind", Align::kLeft}, {"question", Align::kLeft}, {"arm", Align::kLeft}, {"n"}, {"all hot"}};
  for (const std::int32_t part : report.options.parts) columns.push_back({fmt::format("1/{}", part)});
  columns.push_back({"recalled"});
  columns.push_back({"ms to answer"});
  TextTable table(std::move(columns));
  for (const DocumentCell& cell : report.cells) {
    const bool is_first = cell.part == 1 || cell.part == report.options.parts.front();
    if (!is_first) continue;
    std::vector<std::string> cells = {std::string(name_of(cell.kind)), std::string(name_of(cell.place)), cell.arm,
                                      std::to_string(cell.right.size())};
    cells.push_back(cell.part == 1 ? cell_text(&cell) : "");
    for (const std::int32_t part : report.options.parts) {
      cells.push_back(cell.part == 1 ? "" : cell_text(find_cell(report, cell, part)));
    }
    const auto n = static_cast<double>(std::max<std::size_t>(1, cell.right.size()));
    cells.push_back(fmt::format("{:.1f}", static_cast<double>(cell.n_recalled) / n));
    cells.push_back(fmt::format("{:.0f}", median(cell.ms)));
    table.add_row(std::move(cells));
  }
  const RecallTaskOptions& task = report.options.task;
  return fmt::format(
             "{}, one request of {} tokens (median): right answers in per cent (95 of 100 such runs lie between), by "
             "the "
             "part of it that may be hot;\nblocks recalled and time until the answer begins at the first part; seed "
             "{}, split "
             "{}, questions {}, {} near twins\n\n",
             report.model, report.n_request_tokens, task.seed, name_of(task.split),
             task.paraphrased ? "paraphrased" : "as told", task.near_twins ? "with" : "without") +
         table.render();
}

Status write_document_json(const std::filesystem::path& path, const DocumentReport& report) {
  nlohmann::json cells = nlohmann::json::array();
  for (const DocumentCell& cell : report.cells) {
    const ShareInterval interval = interval_of(cell);
    nlohmann::json json = {
        {"kind", name_of(cell.kind)}, {"question", name_of(cell.place)}, {"arm", cell.arm},
        {"part", cell.part},          {"n", cell.right.size()},          {"right", share_of(cell)},
        {"low", interval.low},        {"high", interval.high},           {"recalled_blocks", cell.n_recalled},
        {"ms", median(cell.ms)}};
    if (const DocumentCell* const most = find_ceiling(report, cell); most != nullptr && cell.part > 1) {
      const PairedDifference difference = paired_difference(cell.right, most->right);
      json["beside_never_evicting"] = {{"mean", difference.mean}, {"low", difference.low}, {"high", difference.high}};
    }
    cells.push_back(std::move(json));
  }
  const RecallTaskOptions& task = report.options.task;
  return write_json(path, {{"bench", "document"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"block_size", report.options.block_size},
                           {"request_tokens", report.n_request_tokens},
                           {"most_recalled_blocks", report.options.n_recalled_blocks},
                           {"split", name_of(task.split)},
                           {"haystack", name_of(task.haystack)},
                           {"paraphrased", task.paraphrased},
                           {"near_twins", task.near_twins},
                           {"n_mentions", task.n_mentions},
                           {"seed", task.seed},
                           {"cells", std::move(cells)}});
}

Status write_document_html(const std::filesystem::path& path, const DocumentReport& report) {
  HtmlPage page("A document and a question, longer than the KV budget");
  page.add_paragraph(fmt::format("{}, one request of {} tokens (median); never evicting is drawn at every part",
                                 report.model, report.n_request_tokens));
  for (const DocumentCell& most : report.cells) {
    if (most.part != 1) continue;
    LinePlot plot{.title = fmt::format("{}, question {}", name_of(most.kind), name_of(most.place)),
                  .x = {.label = "part of the request that may be hot", .is_log = true},
                  .y = {.label = "right answers, %"}};
    for (const DocumentCell& cell : report.cells) {
      const bool is_first = cell.part == 1 || cell.part == report.options.parts.front();
      if (cell.kind != most.kind || cell.place != most.place || !is_first) continue;
      LinePlot::Series series{.name = cell.arm, .points = {}};
      for (const std::int32_t part : report.options.parts) {
        const DocumentCell* const at = cell.part == 1 ? &cell : find_cell(report, cell, part);
        if (at != nullptr) series.points.push_back({.x = 1.0 / part, .y = 100.0 * share_of(*at)});
      }
      plot.series.push_back(std::move(series));
    }
    page.add_plot(plot);
  }
  page.add_heading("Table");
  page.add_preformatted(document_text(report));
  return page.write(path);
}

}  // namespace ebb
