// How a report on policies looks: bench/policies.h.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "bench/policies.h"
#include "bench/policy_forks.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

using Align = TextTable::Align;

// Fewer say nothing 19 times of 20.
constexpr std::size_t kLeastQuestions = 10;

// How a question is asked.
struct Way {
  bool is_aware;
  bool recalls;
  const char* name;
};
constexpr std::array kWays = {Way{false, false, "agnostic"}, Way{true, false, "aware"},
                              Way{false, true, "agnostic, with recall"}};

PoliciesCell cell_of(RecallKind kind, const Way& way, std::int32_t part) {
  return {.kind = kind, .is_aware = way.is_aware, .recalls = way.recalls, .part = part};
}

std::vector<std::string> rows_of(const PoliciesReport& report, const Way& way) {
  std::vector<std::string> rows = report.policies;
  if (way.is_aware) rows.emplace_back(kOracle);
  if (way.recalls) std::erase(rows, context_shift().name);
  return rows;
}

// "62.5 %", and whether that is better (+) or worse (-) than the baseline 19 times of 20.
std::string answer_cell(const PoliciesReport& report, const std::string& policy, const PoliciesCell& cell) {
  const PoliciesArm* const arm = report.find(policy, cell);
  if (arm == nullptr) return "";
  const PoliciesArm* const baseline = report.find(kBaseline, cell);
  std::string mark = " ";
  const bool is_pair = baseline != nullptr && baseline->right.size() == arm->right.size() && policy != kBaseline;
  if (is_pair && arm->right.size() >= kLeastQuestions) {
    const PairedDifference difference = compare_answers(arm->right, baseline->right);
    if (difference.low > 0.0) mark = "+";
    if (difference.high < 0.0) mark = "-";
  }
  return percent_text(arm->share()) + mark;
}

std::vector<TextTable::Column> columns_of(const PoliciesReport& report, const char* first) {
  std::vector<TextTable::Column> columns = {{first, Align::kLeft}};
  for (const std::int32_t part : report.options.parts) columns.push_back({fmt::format("1/{}", part)});
  return columns;
}

std::string answers_table(const PoliciesReport& report, RecallKind kind, const Way& way) {
  TextTable table(columns_of(report, "policy"));
  for (const std::string& policy : rows_of(report, way)) {
    std::vector<std::string> cells = {policy};
    for (const std::int32_t part : report.options.parts) {
      cells.push_back(answer_cell(report, policy, cell_of(kind, way, part)));
    }
    table.add_row(std::move(cells));
  }
  const PoliciesArm* const ceiling = report.find(kEverythingHot, {.kind = kind});
  return fmt::format("{}, {}: right of {} questions; everything hot {}\n", name_of(kind), way.name,
                     ceiling == nullptr ? 0 : ceiling->right.size(),
                     ceiling == nullptr ? "" : percent_text(ceiling->share())) +
         table.render() + "\n";
}

const PoliciesText* find_text(const PoliciesReport& report, std::string_view policy, std::int32_t part) {
  for (const PoliciesText& text : report.texts) {
    if (text.policy == policy && text.part == part) return &text;
  }
  return nullptr;
}

std::string text_table(const PoliciesReport& report) {
  const PoliciesText* const full = find_text(report, kEverythingHot, 0);
  if (full == nullptr) return "";
  TextTable table(columns_of(report, "policy"));
  for (const std::string& policy : report.policies) {
    std::vector<std::string> cells = {policy};
    for (const std::int32_t part : report.options.parts) {
      const PoliciesText* const text = find_text(report, policy, part);
      cells.push_back(
          text == nullptr ? "" : fmt::format("{:+.1f} %", 100.0 * (text->perplexity() / full->perplexity() - 1.0)));
    }
    table.add_row(std::move(cells));
  }
  return fmt::format("perplexity of {} tokens behind each of {} contexts, relative to everything hot ({:.3f})\n",
                     full->n_tokens, full->surprise.size(), full->perplexity()) +
         table.render();
}

// What noting attention and choosing cost: contexts are decoded behind with one policy after the other, so pairs compare.
std::string time_table(const PoliciesReport& report) {
  if (report.texts.empty()) return "";
  TextTable table(columns_of(report, "policy"));
  for (const std::string& policy : report.policies) {
    std::vector<std::string> cells = {policy};
    for (const std::int32_t part : report.options.parts) {
      const PoliciesText* const text = find_text(report, policy, part);
      const PoliciesText* const baseline = find_text(report, kBaseline, part);
      if (text == nullptr || baseline == nullptr) {
        cells.emplace_back();
        continue;
      }
      cells.push_back(fmt::format("{:.3f}", median(paired_ratios(text->ms_per_token, baseline->ms_per_token))));
    }
    table.add_row(std::move(cells));
  }
  return "\ntime of decoding those, relative to streaming, medians of contexts\n" + table.render();
}

nlohmann::json arm_json(const PoliciesReport& report, const PoliciesArm& arm) {
  std::string right;  // "0110": one letter for each question
  for (const bool is_right : arm.right) right += is_right ? '1' : '0';
  nlohmann::json json = {{"policy", arm.policy},
                         {"kind", name_of(arm.cell.kind)},
                         {"aware", arm.cell.is_aware},
                         {"recall", arm.cell.recalls},
                         {"part", arm.cell.part},
                         {"n_right", std::ranges::count(arm.right, true)},
                         {"n_asked", arm.right.size()},
                         {"right", right},
                         {"most_hot_tokens", arm.most_hot_tokens},
                         {"budget_tokens", arm.budget_tokens}};
  const PoliciesArm* const baseline = report.find(kBaseline, arm.cell);
  if (baseline != nullptr && baseline->right.size() == arm.right.size()) {
    const PairedDifference difference = compare_answers(arm.right, baseline->right);
    json["beside_streaming"] = {{"points", difference.mean}, {"low", difference.low}, {"high", difference.high}};
  }
  return json;
}

}  // namespace

std::string policies_text(const PoliciesReport& report) {
  std::string text = fmt::format(
      "{}, contexts of {} tokens, blocks of {}; + better, - worse than streaming, 19 times of 20 (paired "
      "bootstrap)\n\n",
      report.model, report.options.task.n_tokens, report.options.block_size);
  for (const RecallKind kind : report.options.kinds) {
    for (const Way& way : kWays) text += answers_table(report, kind, way);
  }
  return text + text_table(report) + time_table(report);
}

Status write_policies_json(const std::filesystem::path& path, const PoliciesReport& report) {
  nlohmann::json arms = nlohmann::json::array();
  for (const PoliciesArm& arm : report.arms) arms.push_back(arm_json(report, arm));
  nlohmann::json texts = nlohmann::json::array();
  for (const PoliciesText& text : report.texts) {
    texts.push_back({{"policy", text.policy},
                     {"part", text.part},
                     {"perplexity", text.perplexity()},
                     {"surprise", text.surprise},
                     {"n_tokens", text.n_tokens},
                     {"ms_per_token", spread_json(spread_of(text.ms_per_token))}});
  }
  const PoliciesOptions& options = report.options;
  return write_json(path, {{"bench", "policies"},
                           {"machine", machine_json(read_machine())},
                           {"model", report.model},
                           {"block_size", options.block_size},
                           {"sink_tokens", options.floors.sink_tokens},
                           {"recent_tokens", options.floors.recent_tokens},
                           {"n_context", options.task.n_tokens},
                           {"split", name_of(options.task.split)},
                           {"haystack", name_of(options.task.haystack)},
                           {"near_twins", options.task.near_twins},
                           {"paraphrased", options.task.paraphrased},
                           {"n_mentions", options.task.n_mentions},
                           {"seeds", options.seeds},
                           {"n_tasks", options.n_tasks},
                           {"arms", std::move(arms)},
                           {"texts", std::move(texts)}});
}

Status write_policies_html(const std::filesystem::path& path, const PoliciesReport& report) {
  HtmlPage page("What eviction policies lose");
  page.add_paragraph(fmt::format("{}, contexts of {} tokens, blocks of {}", report.model, report.options.task.n_tokens,
                                 report.options.block_size));
  for (const RecallKind kind : report.options.kinds) {
    for (const Way& way : kWays) {
      LinePlot plot{.title = fmt::format("{}, {}", name_of(kind), way.name),
                    .x = {.label = "part of the context that stays hot", .is_log = true},
                    .y = {.label = "right answers, %"}};
      for (const std::string& policy : rows_of(report, way)) {
        LinePlot::Series series{.name = policy};
        for (const std::int32_t part : report.options.parts) {
          const PoliciesArm* const arm = report.find(policy, cell_of(kind, way, part));
          if (arm != nullptr) series.points.push_back({.x = 1.0 / part, .y = 100.0 * arm->share()});
        }
        plot.series.push_back(std::move(series));
      }
      page.add_plot(plot);
    }
  }
  page.add_heading("Tables");
  page.add_preformatted(policies_text(report));
  return page.write(path);
}

}  // namespace ebb
