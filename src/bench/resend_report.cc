// How a resend report looks: the table, the JSON and the page of bench/resend.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/resend.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

constexpr std::string_view kHowToReadResend =
    "right: of all questions, those that the session did not live to hear too. cold: questions whose fact was in no "
    "hot\n"
    "block when they came. found: questions whose fact was in one when they were answered, so that the rest is the "
    "model's,\n"
    "and how many of those were right. peak hot: tokens, at any moment of any session; over: above the budget. "
    "computed a turn: tokens that went through the model, mean. overhead: matching the history, recalling "
    "and\n"
    "filling, median of the turns in each session's last quarter, and their share of the turn. x none: a session's "
    "time\n"
    "over that of none, median of pairs. evicted, recalled: blocks of all sessions.\n";

struct Sums {
  std::int32_t n_right = 0;
  std::int32_t n_cold = 0;
  std::int32_t n_found = 0;
  std::int32_t n_found_right = 0;
  std::int32_t peak_hot_tokens = 0;
  std::int32_t history_tokens = 0;
  std::int64_t n_turns = 0;
  std::int64_t n_computed = 0;
  std::int64_t n_evicted = 0;
  std::int64_t n_recalled = 0;
  std::string ended_by;  // of one session
  std::vector<double> seconds;

  [[nodiscard]] double computed_per_turn() const {
    return static_cast<double>(n_computed) / static_cast<double>(std::max<std::int64_t>(n_turns, 1));
  }
};

Sums sums_of(const ResendSide& side) {
  Sums sums;
  for (const ResendSession& session : side.sessions) {
    for (const ResendAnswer& answer : session.answers) {
      sums.n_right += answer.is_right ? 1 : 0;
      sums.n_cold += answer.was_cold ? 1 : 0;
      sums.n_found += answer.was_found ? 1 : 0;
      sums.n_found_right += answer.was_found && answer.is_right ? 1 : 0;
    }
    for (const ResendTurn& turn : session.turns) {
      sums.history_tokens = std::max(sums.history_tokens, turn.history_tokens);
      sums.n_computed += turn.n_computed;
      sums.n_evicted += turn.n_evicted;
      sums.n_recalled += turn.n_recalled;
    }
    sums.n_turns += std::ssize(session.turns);
    sums.peak_hot_tokens = std::max(sums.peak_hot_tokens, session.peak_hot_tokens);
    sums.seconds.push_back(session.seconds);
    if (!session.ended_by.empty()) sums.ended_by = session.ended_by;
  }
  return sums;
}

// Sessions of the two sides, pair by pair; n is 0 where one of none did not come to its end.
Spread seconds_over_none(const ResendCase& played, const Sums& sums) {
  const auto none = std::ranges::find(played.sides, ResendArm::kNone, &ResendSide::arm);
  if (none == played.sides.end()) return {};
  const Sums of_none = sums_of(*none);
  if (!of_none.ended_by.empty()) return {};
  return spread_of(paired_ratios(sums.seconds, of_none.seconds));
}

std::string overhead_text(const ResendOverhead& overhead) {
  if (overhead.ms.n == 0) return "";
  return fmt::format("{:.1f} ms {}", overhead.ms.median, percent_text(overhead.share.median));
}

TextTable table_of(const ResendReport& report) {
  using enum TextTable::Align;
  TextTable table({{"", kLeft},
                   {"right"},
                   {"cold"},
                   {"right of found"},
                   {"history"},
                   {"peak hot"},
                   {"", kLeft},
                   {"computed a turn"},
                   {"evicted"},
                   {"recalled"},
                   {"overhead reading"},
                   {"asking"},
                   {"seconds"},
                   {"x none"}});
  for (const ResendCase& played : report.cases) {
    if (&played != &report.cases.front()) table.add_gap();
    table.add_row({played.name, "", "", "", "", "", "", "", "", "", "", "", "", ""});
    for (const ResendSide& side : played.sides) {
      const Sums sums = sums_of(side);
      const Spread ratio = seconds_over_none(played, sums);
      table.add_row({fmt::format("  {}", resend_arm_name(side.arm)),
                     fmt::format("{} of {}", sums.n_right, side.n_questions), std::to_string(sums.n_cold),
                     fmt::format("{} of {}", sums.n_found_right, sums.n_found), std::to_string(sums.history_tokens),
                     std::to_string(sums.peak_hot_tokens), sums.peak_hot_tokens > played.budget_tokens ? "over" : "",
                     fmt::format("{:.0f}", sums.computed_per_turn()), std::to_string(sums.n_evicted),
                     std::to_string(sums.n_recalled), overhead_text(resend_overhead(side, false)),
                     overhead_text(resend_overhead(side, true)), spread_text(spread_of(sums.seconds), 2),
                     ratio.n > 0 ? spread_text(ratio, 2) : ""});
    }
  }
  return table;
}

std::string setup_text(const ResendReport& report) {
  return fmt::format(
      "{}, trained for {} tokens, {} threads; blocks of {} tokens, policy {} at {} to {} of the budget, K and V in "
      "{}\n{}\n",
      report.setup.model.stem().string(), report.n_ctx_train, report.setup.n_threads, report.setup.block_size,
      report.setup.policy, report.setup.watermarks.high, report.setup.watermarks.low,
      row_type_name(report.setup.kv_type), report.protocol);
}

std::string endings_text(const ResendReport& report) {
  std::string text;
  for (const ResendCase& played : report.cases) {
    for (const ResendSide& side : played.sides) {
      if (const Sums sums = sums_of(side); !sums.ended_by.empty()) {
        text += fmt::format("{}: {} ended early: {}\n", played.name, resend_arm_name(side.arm), sums.ended_by);
      }
    }
  }
  return text;
}

nlohmann::json overhead_json(const ResendOverhead& overhead) {
  if (overhead.ms.n == 0) return nullptr;
  return {{"ms", spread_json(overhead.ms)}, {"share_of_turn", spread_json(overhead.share)}};
}

// The turns of one session: the others are as long.
nlohmann::json turns_json(const ResendSession& session) {
  nlohmann::json turns = nlohmann::json::array();
  for (const ResendTurn& turn : session.turns) {
    turns.push_back({{"asks", turn.asks},
                     {"history_tokens", turn.history_tokens},
                     {"hot_tokens", turn.hot_tokens},
                     {"computed_tokens", turn.n_computed},
                     {"evicted_blocks", turn.n_evicted},
                     {"recalled_blocks", turn.n_recalled},
                     {"overhead_ms", turn.overhead_ms},
                     {"ms", turn.ms}});
  }
  return turns;
}

nlohmann::json answers_json(const ResendSide& side) {
  nlohmann::json answers = nlohmann::json::array();
  for (const ResendSession& session : side.sessions) {
    for (const ResendAnswer& answer : session.answers) {
      answers.push_back({{"wanted", answer.wanted},
                         {"said", answer.said},
                         {"right", answer.is_right},
                         {"was_cold", answer.was_cold},
                         {"was_found", answer.was_found}});
    }
  }
  return answers;
}

nlohmann::json side_json(const ResendCase& played, const ResendSide& side) {
  const Sums sums = sums_of(side);
  const Spread ratio = seconds_over_none(played, sums);
  return {{"arm", resend_arm_name(side.arm)},
          {"questions", side.n_questions},
          {"right", sums.n_right},
          {"cold", sums.n_cold},
          {"found", sums.n_found},
          {"found_right", sums.n_found_right},
          {"history_tokens", sums.history_tokens},
          {"peak_hot_tokens", sums.peak_hot_tokens},
          {"computed_tokens_per_turn", sums.computed_per_turn()},
          {"evicted_blocks", sums.n_evicted},
          {"recalled_blocks", sums.n_recalled},
          {"overhead_reading", overhead_json(resend_overhead(side, false))},
          {"overhead_asking", overhead_json(resend_overhead(side, true))},
          {"seconds", spread_json(spread_of(sums.seconds))},
          {"seconds_over_none", ratio.n > 0 ? spread_json(ratio) : nlohmann::json()},
          {"ended_by", sums.ended_by},
          {"turns_of_first_session", turns_json(side.sessions.front())},
          {"answers", answers_json(side)}};
}

// Hot tokens of the first session of each arm, and the budget as a line across.
LinePlot hot_plot(const ResendCase& played) {
  LinePlot plot{.title = fmt::format("{}: hot tokens when a turn has settled", played.name),
                .x = {.label = "turn"},
                .y = {.label = "hot tokens"},
                .series = {}};
  std::size_t n_turns = 0;
  for (const ResendSide& side : played.sides) {
    LinePlot::Series series{.name = std::string(resend_arm_name(side.arm)), .points = {}};
    for (const ResendTurn& turn : side.sessions.front().turns) {
      series.points.push_back({static_cast<double>(series.points.size() + 1), static_cast<double>(turn.hot_tokens)});
    }
    n_turns = std::max(n_turns, series.points.size());
    plot.series.push_back(std::move(series));
  }
  const double budget = played.budget_tokens;
  plot.series.push_back({"budget", {{1.0, budget}, {static_cast<double>(n_turns), budget}}});
  return plot;
}

}  // namespace

std::string resend_text(const ResendReport& report) {
  return machine_text(report.machine, report.peak) + "\n" + setup_text(report) + "\n" + table_of(report).render() +
         "\n" + std::string(kHowToReadResend) + endings_text(report);
}

Status write_resend_json(const std::filesystem::path& path, const ResendReport& report) {
  nlohmann::json cases = nlohmann::json::array();
  for (const ResendCase& played : report.cases) {
    nlohmann::json sides = nlohmann::json::array();
    for (const ResendSide& side : played.sides) sides.push_back(side_json(played, side));
    cases.push_back({{"name", played.name}, {"budget_tokens", played.budget_tokens}, {"arms", std::move(sides)}});
  }
  return write_json(path, {{"bench", report.bench},
                           {"protocol", report.protocol},
                           {"machine", machine_json(report.machine, report.peak)},
                           {"model", report.setup.model.stem().string()},
                           {"trained_context", report.n_ctx_train},
                           {"n_threads", report.setup.n_threads},
                           {"block_size", report.setup.block_size},
                           {"policy", report.setup.policy},
                           {"high_watermark", report.setup.watermarks.high},
                           {"low_watermark", report.setup.watermarks.low},
                           {"kv_type", row_type_name(report.setup.kv_type)},
                           {"seed", report.setup.seed},
                           {"cases", std::move(cases)}});
}

Status write_resend_html(const std::filesystem::path& path, const ResendReport& report) {
  HtmlPage page(fmt::format("ebb bench {}", report.bench));
  page.add_paragraph(machine_text(report.machine, report.peak));
  page.add_preformatted(setup_text(report));
  page.add_preformatted(table_of(report).render());
  page.add_paragraph(kHowToReadResend);
  if (const std::string endings = endings_text(report); !endings.empty()) page.add_paragraph(endings);
  for (const ResendCase& played : report.cases) page.add_plot(hot_plot(played));
  return page.write(path);
}

}  // namespace ebb
