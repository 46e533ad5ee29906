// How an evidence report looks: the table, the JSON and the page of bench/evidence_cost.h.
#include <nlohmann/json.hpp>

#include "bench/evidence_cost.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

constexpr std::string_view kHowToRead =
    "Time beside a session that notes nothing, over the same frames, in turn, in %: the median of the pairs, and "
    "where\n"
    "it lies 19 times of 20. nothing: a second session that notes nothing, so what the machine itself is off by. "
    "notes:\n"
    "what a session keeps of it by head at rest, beside K and V, all of it over the tokens behind it. choice: choosing "
    "one "
    "block's\n"
    "frames of all heads by it, what frames hold read before. Prompts of a policy that reads them twice are read "
    "twice.\n";

std::string cost_text(const MedianInterval& cost) {
  return fmt::format("{:+.1f} ({:+.1f} to {:+.1f})", 100.0 * cost.median, 100.0 * cost.low, 100.0 * cost.high);
}

std::string choice_text(const MedianInterval& choice) {
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", choice.median, choice.low, choice.high);
}

std::string setting_text(const EvidenceCostReport& report) {
  return fmt::format("{}, {} threads, {} KV in blocks of {}, {:.0f} bytes a token; {} tokens decoded, {} prompts of {}",
                     report.model, report.n_threads, row_type_name(report.kv_type), report.block_size,
                     report.kv_bytes_per_token, report.n_decode, report.n_prompts, report.n_prompt);
}

TextTable table_of(const EvidenceCostDepth& depth) {
  TextTable table({{"what is noted for", TextTable::Align::kLeft},
                   {"decode, %"},
                   {"tok/s"},
                   {"prompt, %"},
                   {"tok/s"},
                   {"notes, bytes a token"},
                   {"choice, ms"}});
  for (const EvidenceCostArm& arm : depth.arms) {
    table.add_row({arm.policy, cost_text(arm.decode), fmt::format("{:.1f}", arm.decode_tokens_per_s),
                   cost_text(arm.prompt), fmt::format("{:.1f}", arm.prompt_tokens_per_s),
                   fmt::format("{:.1f}", arm.note_bytes_per_token), choice_text(arm.choice_ms)});
  }
  return table;
}

nlohmann::json cost_json(const MedianInterval& cost) {
  return {{"median", cost.median}, {"low", cost.low}, {"high", cost.high}, {"n", cost.n}};
}

nlohmann::json arm_json(const EvidenceCostArm& arm) {
  return {{"policy", arm.policy},
          {"decode_cost", cost_json(arm.decode)},
          {"prompt_cost", cost_json(arm.prompt)},
          {"decode_tokens_per_s", arm.decode_tokens_per_s},
          {"prompt_tokens_per_s", arm.prompt_tokens_per_s},
          {"note_bytes_per_token", arm.note_bytes_per_token},
          {"choice_ms", cost_json(arm.choice_ms)}};
}

// What is drawn of each arm: an interval's median times `scale`.
struct Drawn {
  std::string title;
  std::string label;
  MedianInterval EvidenceCostArm::*values;
  double scale = 100.0;
};

BarPlot plot_of(const EvidenceCostReport& report, const Drawn& drawn) {
  BarPlot plot{.title = drawn.title, .y = {.label = drawn.label}, .series = {}, .groups = {}};
  for (const EvidenceCostArm& arm : report.depths.front().arms) plot.series.push_back(arm.policy);
  for (const EvidenceCostDepth& depth : report.depths) {
    BarPlot::Group group{.label = fmt::format("{} tokens", depth.n_resident), .values = {}};
    for (const EvidenceCostArm& arm : depth.arms) group.values.push_back(drawn.scale * (arm.*drawn.values).median);
    plot.groups.push_back(std::move(group));
  }
  return plot;
}

}  // namespace

std::string evidence_cost_text(const EvidenceCostReport& report) {
  std::string text = setting_text(report) + "\n";
  for (const EvidenceCostDepth& depth : report.depths) {
    text += fmt::format("\nbehind {} tokens\n\n{}", depth.n_resident, table_of(depth).render());
  }
  return text + "\n" + std::string(kHowToRead);
}

Status write_evidence_cost_json(const std::filesystem::path& path, const EvidenceCostReport& report) {
  nlohmann::json depths = nlohmann::json::array();
  for (const EvidenceCostDepth& depth : report.depths) {
    nlohmann::json arms = nlohmann::json::array();
    for (const EvidenceCostArm& arm : depth.arms) arms.push_back(arm_json(arm));
    depths.push_back({{"n_resident", depth.n_resident}, {"arms", std::move(arms)}});
  }
  return write_json(path, {{"bench", "evidence"},
                           {"machine", machine_json(report.machine)},
                           {"model", report.model},
                           {"n_threads", report.n_threads},
                           {"block_size", report.block_size},
                           {"kv_type", row_type_name(report.kv_type)},
                           {"kv_bytes_per_token", report.kv_bytes_per_token},
                           {"n_decode", report.n_decode},
                           {"n_prompts", report.n_prompts},
                           {"n_prompt", report.n_prompt},
                           {"n_choices", report.n_choices},
                           {"depths", std::move(depths)}});
}

Status write_evidence_cost_html(const std::filesystem::path& path, const EvidenceCostReport& report) {
  HtmlPage page("ebb bench evidence: what noting attention costs");
  page.add_paragraph(setting_text(report));
  page.add_plot(plot_of(report, {.title = "Decoding", .label = "more time, %", .values = &EvidenceCostArm::decode}));
  page.add_plot(plot_of(report, {.title = "Prompts", .label = "more time, %", .values = &EvidenceCostArm::prompt}));
  page.add_plot(
      plot_of(report, {.title = "A choice", .label = "ms", .values = &EvidenceCostArm::choice_ms, .scale = 1.0}));
  for (const EvidenceCostDepth& depth : report.depths) {
    page.add_heading(fmt::format("Behind {} tokens", depth.n_resident));
    page.add_preformatted(table_of(depth).render());
  }
  page.add_paragraph(kHowToRead);
  return page.write(path);
}

}  // namespace ebb
