// How an edits report looks: the tables, the JSON and the page of bench/edits.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/edits.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

constexpr std::string_view kHowToReadEdits =
    "changed: of questions whose answers the edit gave or took, and of those that later text concluded from it, the "
    "right ones; "
    "stale: those that\nsay the old value, or leave out what follows from the new one, and the most that 19 of 20 such "
    "runs would have; lost: those of them that exact reuse answers right. "
    "behind: right answers to what the\nedit left alone. computed: tokens that went through the model before the first "
    "answer, "
    "and of exact's their share. Exact computes what any\nprefix cache would.\n";

std::string share_text(std::int64_t n, std::int64_t of) {
  return of == 0 ? "-" : fmt::format("{:.1f}", 100.0 * static_cast<double>(n) / static_cast<double>(of));
}

std::vector<std::string> row_of(const EditsReport& report, const EditCell& cell, const EditCell& exact) {
  const EditCounts changed = cell.changed();
  const EditCounts& behind = cell.by_matter[static_cast<std::size_t>(EditMatter::kBehind)];
  const double most = changed.n_asked == 0 ? 0.0 : share_interval(changed.n_stale, changed.n_asked).high;
  return {report.arms[cell.arm].name(),
          std::to_string(cell.n_edits),
          share_text(changed.n_right, changed.n_asked),
          changed.n_asked == 0 ? "-" : fmt::format("{} (< {:.1f} %)", changed.n_stale, 100.0 * most),
          std::to_string(changed.n_lost),
          share_text(behind.n_right, behind.n_asked),
          std::to_string(cell.n_computed),
          share_text(cell.n_computed, exact.n_computed),
          std::to_string(cell.n_approximate)};
}

// The kind that an arm does worst: most stale, then most computed.
std::string worst_of(const EditsReport& report, std::size_t arm) {
  std::vector<EditKind> kinds;
  for (const EditCell& cell : report.cells) {
    if (std::ranges::find(kinds, cell.kind) == kinds.end()) kinds.push_back(cell.kind);
  }
  const EditKind worst = *std::ranges::max_element(kinds, {}, [&](EditKind kind) {
    const EditCell sum = report.sum(kind, arm);
    return std::pair(sum.changed().n_stale, sum.n_computed);
  });
  const EditCell sum = report.sum(worst, arm);
  return fmt::format("{}: worst at {}, {} stale of {}, {} % of exact's tokens", report.arms[arm].name(), name_of(worst),
                     sum.changed().n_stale, sum.changed().n_asked,
                     share_text(sum.n_computed, report.sum(worst, 0).n_computed));
}

TextTable table_of(const EditsReport& report) {
  TextTable table({{"edit", Align::kLeft},
                   {"tokens"},
                   {"reuse", Align::kLeft},
                   {"edits"},
                   {"changed, %"},
                   {"stale"},
                   {"lost"},
                   {"behind, %"},
                   {"computed"},
                   {"of exact's, %"},
                   {"approximate"}});
  const auto add = [&](std::string_view edit, const std::string& n_tokens, const EditCell& cell,
                       const EditCell& exact) {
    std::vector<std::string> row = {std::string(edit), n_tokens};
    std::ranges::copy(row_of(report, cell, exact), std::back_inserter(row));
    table.add_row(std::move(row));
  };
  // The arms of a kind and length stand behind each other, exact first.
  for (const EditCell& cell : report.cells) {
    const EditCell& exact = *(&cell - cell.arm);
    add(name_of(cell.kind), std::to_string(cell.n_tokens), cell, exact);
  }
  for (std::size_t arm = 0; arm < report.arms.size(); ++arm) add("all", "", report.sum(arm), report.sum(0));
  return table;
}

nlohmann::json cell_json(const EditsReport& report, const EditCell& cell) {
  nlohmann::json matters = nlohmann::json::object();
  for (std::size_t i = 0; i < kEditMatters; ++i) {
    const EditCounts& counts = cell.by_matter[i];
    matters[std::string(name_of(static_cast<EditMatter>(i)))] = {{"n_asked", counts.n_asked},
                                                                 {"n_right", counts.n_right},
                                                                 {"n_stale", counts.n_stale},
                                                                 {"n_lost", counts.n_lost}};
  }
  return {{"kind", name_of(cell.kind)},    {"n_tokens", cell.n_tokens},          {"arm", report.arms[cell.arm].name()},
          {"n_edits", cell.n_edits},       {"answers", std::move(matters)},      {"n_prompt", cell.n_prompt},
          {"n_computed", cell.n_computed}, {"n_approximate", cell.n_approximate}};
}

nlohmann::json miss_json(const EditsReport& report, const EditMiss& miss) {
  return {{"kind", name_of(miss.kind)},           {"n_tokens", miss.n_tokens},   {"arm", report.arms[miss.arm].name()},
          {"matter", name_of(miss.probe.matter)}, {"question", miss.probe.text}, {"answers", miss.probe.answers},
          {"old_value", miss.probe.old_value},    {"reply", miss.reply}};
}

}  // namespace

std::string edits_text(const EditsReport& report) {
  std::string text =
      fmt::format("{}, blocks of {}, policy {}, {} tokens hot, {} split, seed {}\n\n", report.model, report.block_size,
                  report.policy, report.budget_tokens, name_of(report.split), report.seed);
  text += table_of(report).render() + "\n";
  for (std::size_t arm = 1; arm < report.arms.size(); ++arm) text += worst_of(report, arm) + "\n";
  return text + "\n" + std::string(kHowToReadEdits);
}

Status write_edits_json(const std::filesystem::path& path, const EditsReport& report) {
  nlohmann::json cells = nlohmann::json::array();
  for (const EditCell& cell : report.cells) cells.push_back(cell_json(report, cell));
  nlohmann::json misses = nlohmann::json::array();
  for (const EditMiss& miss : report.misses) misses.push_back(miss_json(report, miss));
  return write_json(path, {{"bench", "edits"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"block_size", report.block_size},
                           {"policy", report.policy},
                           {"budget_tokens", report.budget_tokens},
                           {"split", name_of(report.split)},
                           {"seed", report.seed},
                           {"cells", std::move(cells)},
                           {"misses", std::move(misses)}});
}

Status write_edits_html(const std::filesystem::path& path, const EditsReport& report) {
  HtmlPage page("ebb bench edits: what reuse behind an edit costs and spares");
  LinePlot plot{.title = "By what of exact's tokens is computed, stale answers",
                .x = {.label = "computed, % of exact's"},
                .y = {.label = "stale, % of what the edit changed"}};
  for (std::size_t arm = 1; arm < report.arms.size(); ++arm) {
    const EditCell sum = report.sum(arm);
    const EditCounts changed = sum.changed();
    const std::int64_t n_exact = report.sum(0).n_computed;
    if (changed.n_asked == 0 || n_exact == 0) continue;
    const ShareInterval stale = share_interval(changed.n_stale, changed.n_asked);
    const double share = static_cast<double>(changed.n_stale) / changed.n_asked;
    plot.series.push_back({.name = report.arms[arm].name(),
                           .points = {{.x = 100.0 * static_cast<double>(sum.n_computed) / static_cast<double>(n_exact),
                                       .y = 100.0 * share,
                                       .low = 100.0 * stale.low,
                                       .high = 100.0 * stale.high}}});
  }
  page.add_plot(plot);
  page.add_preformatted(edits_text(report));
  return page.write(path);
}

}  // namespace ebb
