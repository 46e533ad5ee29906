// How an agent report looks: the tables, the JSON and the page of bench/agent.h.
#include <nlohmann/json.hpp>

#include "bench/agent.h"
#include "bench/api_client.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

constexpr std::string_view kHowToReadAgent =
    "computed: tokens that went through the model before the reply. exact: hot, shared or recalled as they were.\n"
    "approximate: turned to another place, or computed behind other text. prefix cache: tokens that one without "
    "limits,\n"
    "which keeps every prompt and reply, would compute. partly: hot in some heads only. peak: tokens that were hot at "
    "once. Times are of one run.\n";

std::string run_title(const AgentRun& run) {
  return fmt::format("budget {} tokens, --kv-reuse {}", run.budget_tokens, name_of(run.reuse));
}

TextTable table_of(const AgentRun& run) {
  TextTable table({{"request", Align::kLeft},
                   {"prompt"},
                   {"computed"},
                   {"prefix cache"},
                   {"exact"},
                   {"partly"},
                   {"approximate"},
                   {"holes"},
                   {"peak"},
                   {"ms"}});
  for (const AgentStep& step : run.steps) {
    table.add_row({step.name, std::to_string(step.n_prompt), std::to_string(step.n_computed),
                   std::to_string(step.n_prefix_cache), std::to_string(step.n_exact), std::to_string(step.n_partly),
                   std::to_string(step.n_approximate), std::to_string(step.n_holes),
                   std::to_string(step.peak_hot_tokens), fmt::format("{:.0f}", step.ms)});
  }
  table.add_row({"all", "", std::to_string(run.n_computed()), std::to_string(run.n_prefix_cache()), "", "", "", "", "",
                 fmt::format("x {:.3f}", run.ratio())});
  table.add_row({"all but the first", "", std::to_string(run.n_computed() - run.steps.front().n_computed),
                 std::to_string(run.n_prefix_cache() - run.steps.front().n_prefix_cache), "", "", "", "", "",
                 fmt::format("x {:.3f}", run.later_ratio())});
  return table;
}

nlohmann::json run_json(const AgentRun& run) {
  nlohmann::json steps = nlohmann::json::array();
  for (const AgentStep& step : run.steps) {
    steps.push_back({{"name", step.name},
                     {"n_prompt", step.n_prompt},
                     {"n_computed", step.n_computed},
                     {"n_new", step.n_new},
                     {"n_prefix_cache", step.n_prefix_cache},
                     {"n_exact", step.n_exact},
                     {"n_partly", step.n_partly},
                     {"n_approximate", step.n_approximate},
                     {"n_holes", step.n_holes},
                     {"peak_hot_tokens", step.peak_hot_tokens},
                     {"ms", step.ms}});
  }
  return {{"budget_tokens", run.budget_tokens},
          {"reuse", name_of(run.reuse)},
          {"n_computed", run.n_computed()},
          {"n_prefix_cache", run.n_prefix_cache()},
          {"ratio", run.ratio()},
          {"later_ratio", run.later_ratio()},
          {"steps", std::move(steps)}};
}

}  // namespace

std::string agent_text(const AgentReport& report) {
  std::string text = fmt::format("{}, blocks of {}, policy {}\n", report.model, report.block_size, report.policy);
  for (const AgentRun& run : report.runs) text += "\n" + run_title(run) + "\n" + table_of(run).render();
  return text + "\n" + std::string(kHowToReadAgent);
}

Status write_agent_json(const std::filesystem::path& path, const AgentReport& report) {
  nlohmann::json runs = nlohmann::json::array();
  for (const AgentRun& run : report.runs) runs.push_back(run_json(run));
  return write_json(path, {{"bench", "agent"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"block_size", report.block_size},
                           {"policy", report.policy},
                           {"runs", std::move(runs)}});
}

Status write_agent_html(const std::filesystem::path& path, const AgentReport& report) {
  HtmlPage page("ebb bench agent: a coding agent's session, beside a prefix cache without limits");
  for (const AgentRun& run : report.runs) {
    LinePlot plot{.title = run_title(run), .x = {.label = "request"}, .y = {.label = "tokens computed"}};
    LinePlot::Series ours{.name = "ebb"};
    LinePlot::Series peer{.name = "prefix cache"};
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
      ours.points.push_back({static_cast<double>(i + 1), static_cast<double>(run.steps[i].n_computed)});
      peer.points.push_back({static_cast<double>(i + 1), static_cast<double>(run.steps[i].n_prefix_cache)});
    }
    plot.series = {std::move(ours), std::move(peer)};
    page.add_plot(plot);
    page.add_preformatted(table_of(run).render());
  }
  page.add_paragraph(kHowToReadAgent);
  return page.write(path);
}

}  // namespace ebb
