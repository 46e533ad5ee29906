// How a report of the limit bench looks: bench/limit.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/limit.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

bool is_length(const LimitReport& report) { return report.options.mode == LimitMode::kGenLength; }

std::string percent(double share) { return fmt::format("{:.1f}", 100.0 * share); }
double gigabytes(std::size_t n_bytes) { return static_cast<double>(n_bytes) / 1e9; }

std::string arm_name(const LimitArm& arm) { return arm.policy == "none" ? "none (eviction off)" : arm.policy; }

TextTable table_of(const LimitReport& report, const LimitArm& arm) {
  TextTable table({{is_length(report) ? "length" : "prompts"},
                   {is_length(report) ? "result length" : "generated"},
                   {"avg %"},
                   {"max %"},
                   {"RSS GB"},
                   {"seconds"},
                   {"tok/s"},
                   {"", TextTable::Align::kLeft}});
  for (const LimitRound& round : arm.rounds) {
    table.add_row({std::to_string(round.n_asked), std::to_string(round.n_generated), percent(round.mean_usage),
                   percent(round.most_usage), fmt::format("{:.3f}", gigabytes(round.resident_bytes)),
                   fmt::format("{:.1f}", round.seconds), fmt::format("{:.0f}", round.tokens_per_s()),
                   round.is_full   ? "full"
                   : round.is_late ? "late"
                                   : ""});
  }
  return table;
}

std::string outcome_text(const LimitReport& report, const LimitArm& arm) {
  if (is_length(report)) return fmt::format("{}; longest text: {} tokens", limit_end_text(arm.end), arm.most);
  // Only a full pool says that more do not fit.
  if (arm.end == LimitEnd::kExhausted) return fmt::format("Approximate highest throughput: {} prompts", arm.most);
  return fmt::format("{}; at least {} prompts fit at once", limit_end_text(arm.end), arm.most);
}

std::string set_up_text(const LimitReport& report) {
  const LimitOptions& options = report.options;
  return fmt::format(
      "{}, {}: a pool of {} tokens in blocks of {}, prompts of up to {} tokens{}; a sequence keeps {} hot where "
      "something "
      "evicts, {} s for a round at most",
      report.model, name_of(options.mode), options.pool_tokens, options.block_size, report.n_prompt_tokens,
      is_length(report) ? "" : fmt::format(", {} generated for each", options.max_tokens), options.session_tokens,
      options.timeout_s);
}

LinePlot plot_of(const LimitReport& report, const char* what, double (*value)(const LimitRound&)) {
  LinePlot plot{.title = what,
                .x = {.label = is_length(report) ? "tokens asked for" : "prompts at once", .is_log = true},
                .y = {.label = what},
                .series = {}};
  for (const LimitArm& arm : report.arms) {
    LinePlot::Series series{.name = arm_name(arm), .points = {}};
    for (const LimitRound& round : arm.rounds) {
      series.points.push_back({static_cast<double>(round.n_asked), value(round)});
    }
    // Halving goes back and forth.
    std::ranges::sort(series.points, {}, &PlotPoint::x);
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

std::string limit_end_text(LimitEnd end) {
  switch (end) {
    case LimitEnd::kTime: return "Maximum generation time reached";
    case LimitEnd::kExhausted: return "Cache size exhausted";
    case LimitEnd::kOutOfPrompts: return "No more prompts: give more with --data, or a smaller --kv-budget";
  }
  return "";
}

std::string limit_text(const LimitReport& report) {
  std::string text = set_up_text(report) + "\n";
  for (const LimitArm& arm : report.arms) {
    text += fmt::format("\n{}\n{}{}\n", arm_name(arm), table_of(report, arm).render(), outcome_text(report, arm));
  }
  return text;
}

Status write_limit_csv(const std::filesystem::path& path, const LimitReport& report) {
  std::string text = is_length(report) ? "length,result length,avg %,max %,RSS GB,policy\n"
                                       : "prompts,generated,avg %,max %,RSS GB,policy\n";
  for (const LimitArm& arm : report.arms) {
    for (const LimitRound& round : arm.rounds) {
      text += fmt::format("{},{},{},{},{:.6f},\"{}\"\n", round.n_asked, round.n_generated, percent(round.mean_usage),
                          percent(round.most_usage), gigabytes(round.resident_bytes), arm.policy);
    }
  }
  return write_text(path, text);
}

Status write_limit_json(const std::filesystem::path& path, const LimitReport& report) {
  nlohmann::json arms = nlohmann::json::array();
  for (const LimitArm& arm : report.arms) {
    nlohmann::json rounds = nlohmann::json::array();
    for (const LimitRound& round : arm.rounds) {
      rounds.push_back({{"n_asked", round.n_asked},
                        {"n_generated", round.n_generated},
                        {"mean_usage", round.mean_usage},
                        {"most_usage", round.most_usage},
                        {"resident_bytes", round.resident_bytes},
                        {"seconds", round.seconds},
                        {"full", round.is_full},
                        {"late", round.is_late}});
    }
    arms.push_back(
        {{"policy", arm.policy}, {"end", limit_end_text(arm.end)}, {"most", arm.most}, {"rounds", std::move(rounds)}});
  }
  const LimitOptions& options = report.options;
  return write_json(path, {{"bench", "limit"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"mode", name_of(options.mode)},
                           {"kv_type", row_type_name(options.kv_type)},
                           {"block_size", options.block_size},
                           {"pool_tokens", options.pool_tokens},
                           {"session_tokens", options.session_tokens},
                           {"timeout_s", options.timeout_s},
                           {"max_tokens", options.max_tokens},
                           {"prompt_tokens", report.n_prompt_tokens},
                           {"arms", std::move(arms)}});
}

Status write_limit_html(const std::filesystem::path& path, const LimitReport& report) {
  HtmlPage page(fmt::format("ebb bench limit, {}: how far a KV budget carries", name_of(report.options.mode)));
  page.add_paragraph(set_up_text(report) + ".");
  for (const LimitArm& arm : report.arms) {
    page.add_heading(arm_name(arm));
    page.add_preformatted(table_of(report, arm).render());
    page.add_paragraph(outcome_text(report, arm) + ".");
  }
  page.add_plot(plot_of(report, "most of the pool that was hot, %",
                        [](const LimitRound& round) { return 100.0 * round.most_usage; }));
  page.add_plot(
      plot_of(report, "tokens generated", [](const LimitRound& round) -> double { return round.n_generated; }));
  page.add_plot(
      plot_of(report, "tokens generated each second", [](const LimitRound& round) { return round.tokens_per_s(); }));
  page.add_plot(plot_of(report, "resident memory of the process, GB",
                        [](const LimitRound& round) { return gigabytes(round.resident_bytes); }));
  return page.write(path);
}

}  // namespace ebb
