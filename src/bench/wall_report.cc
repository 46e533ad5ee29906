// How a wall report looks: the table, the JSON and the page of bench/wall.h.
#include <algorithm>
#include <map>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/svg_plot.h"
#include "bench/wall.h"

namespace ebb {
namespace {

TextTable table_of(const WallReport& report) {
  using enum TextTable::Align;
  TextTable table({{"", kLeft},
                   {"sections"},
                   {"right"},
                   {"budget"},
                   {"peak hot"},
                   {"session"},
                   {"computed"},
                   {"evicted"},
                   {"recalled"},
                   {"rebases"},
                   {"seconds"}});
  for (const WallArm& arm : report.arms) {
    table.add_row({arm.name, std::to_string(arm.n_sections), fmt::format("{} of {}", arm.n_right, arm.n_asked),
                   std::to_string(arm.budget_tokens), std::to_string(arm.peak_hot_tokens),
                   std::to_string(arm.session_tokens), std::to_string(arm.n_computed), std::to_string(arm.n_evicted),
                   std::to_string(arm.n_recalled), std::to_string(arm.n_rebases), fmt::format("{:.1f}", arm.seconds)});
  }
  return table;
}

std::string set_up_text(const WallReport& report) {
  return fmt::format("{}, trained for {} tokens; a session of {} sections, {} tokens in all, and {} late questions",
                     report.model, report.n_ctx_train, report.options.n_sections, report.options.session_tokens,
                     report.options.n_questions);
}

std::string how_to_read(const WallReport& report) {
  return fmt::format(
      "budget, peak, session and computed are tokens; evicted and recalled are blocks of {}. ceiling: each question "
      "right behind its own section.",
      report.options.block_size);
}

std::string endings_text(const WallReport& report) {
  std::string text;
  for (const WallArm& arm : report.arms) {
    if (arm.ended_by.empty()) continue;
    text += fmt::format("{} ended in section {}: {}\n", arm.name, arm.n_sections + 1, arm.ended_by);
  }
  return text;
}

TextTable answers_table(const WallArm& arm) {
  using enum TextTable::Align;
  TextTable table({{"section"}, {"read since"}, {"wanted"}, {"", kLeft}, {"said", kLeft}, {"blocks recalled", kLeft}});
  for (const WallAnswer& answer : arm.answers) {
    table.add_row({std::to_string(answer.n_section + 1), std::to_string(answer.n_read), answer.wanted,
                   answer.is_right ? "right" : "wrong", answer.said,
                   answer.recalled.empty() ? "none" : fmt::format("{}", fmt::join(answer.recalled, ", "))});
  }
  return table;
}

nlohmann::json turns_json(const WallArm& arm) {
  nlohmann::json turns = nlohmann::json::array();
  for (const WallTurn& turn : arm.turns) {
    turns.push_back({{"session_tokens", turn.session_tokens},
                     {"hot_tokens", turn.hot_tokens},
                     {"evicted_blocks", turn.n_evicted},
                     {"recalled_blocks", turn.n_recalled}});
  }
  return turns;
}

nlohmann::json answers_json(const WallArm& arm) {
  nlohmann::json answers = nlohmann::json::array();
  for (const WallAnswer& answer : arm.answers) {
    answers.push_back({{"section", answer.n_section},
                       {"tokens_since", answer.n_read},
                       {"wanted", answer.wanted},
                       {"said", answer.said},
                       {"right", answer.is_right},
                       {"recalled_blocks", answer.recalled}});
  }
  return answers;
}

// Hot tokens over the session, and each budget as a line across.
LinePlot hot_plot(const WallReport& report) {
  LinePlot plot{.title = "Hot tokens when a turn has settled",
                .x = {.label = "tokens of the session"},
                .y = {.label = "hot tokens"},
                .series = {}};
  double end = 0.0;
  for (const WallArm& arm : report.arms) {
    if (arm.turns.empty()) continue;
    LinePlot::Series series{.name = fmt::format("{} (peak {})", arm.name, arm.peak_hot_tokens), .points = {{0.0, 0.0}}};
    for (const WallTurn& turn : arm.turns) {
      series.points.push_back({static_cast<double>(turn.session_tokens), static_cast<double>(turn.hot_tokens)});
    }
    end = std::max(end, series.points.back().x);
    plot.series.push_back(std::move(series));
  }
  // The budget last: dashed, it shows where it hides the line of an arm.
  const double context = report.n_ctx_train;
  plot.series.push_back({fmt::format("trained context ({})", report.n_ctx_train), {{0.0, context}, {end, context}}});
  const double budget = report.options.budget_tokens;
  plot.series.push_back({fmt::format("budget ({})", report.options.budget_tokens), {{0.0, budget}, {end, budget}}});
  return plot;
}

LinePlot moves_plot(const WallReport& report) {
  LinePlot plot{.title = "Blocks that left and came back, by turn",
                .x = {.label = fmt::format("turn: {} sections, then {} questions", report.options.n_sections,
                                           report.options.n_questions)},
                .y = {.label = "blocks"},
                .series = {}};
  const auto add = [&](const WallArm& arm, std::string_view what, std::int32_t WallTurn::*count) {
    LinePlot::Series series{.name = fmt::format("{}, {}", what, arm.name), .points = {}};
    for (std::size_t i = 0; i < arm.turns.size(); ++i) {
      series.points.push_back({static_cast<double>(i + 1), static_cast<double>(arm.turns[i].*count)});
    }
    plot.series.push_back(std::move(series));
  };
  for (const WallArm& arm : report.arms) {
    if (arm.n_evicted > 0) add(arm, "evicted", &WallTurn::n_evicted);
    if (arm.n_recalled > 0) add(arm, "recalled", &WallTurn::n_recalled);
  }
  return plot;
}

// Dots of one question lie above each other: at what was read since in the longest session that answered it.
DotPlot answers_plot(const WallReport& report) {
  DotPlot plot{.title = "Late questions: right or wrong, by what was read since the fact",
               .x = {.label = "tokens read since the fact's section; of the ceiling: none"},
               .full = "right",
               .empty = "wrong",
               .rows = {}};
  std::map<std::int32_t, std::int32_t> n_read;
  for (const WallArm& arm : report.arms) {
    for (const WallAnswer& answer : arm.answers) {
      n_read[answer.n_section] = std::max(n_read[answer.n_section], answer.n_read);
    }
  }
  for (const WallArm& arm : report.arms) {
    DotPlot::Row row{.name = arm.name, .dots = {}};
    for (const WallAnswer& answer : arm.answers) {
      row.dots.push_back({static_cast<double>(n_read[answer.n_section]), answer.is_right});
    }
    plot.rows.push_back(std::move(row));
  }
  return plot;
}

BarPlot arms_plot(const WallReport& report) {
  BarPlot plot{.title = "The arms beside each other",
               .y = {.label = "tokens", .is_log = true},
               .series = {"session", "peak hot", "budget", "computed"},
               .groups = {}};
  for (const WallArm& arm : report.arms) {
    plot.groups.push_back({fmt::format("{}: {} of {} right", arm.name, arm.n_right, arm.n_asked),
                           {static_cast<double>(arm.session_tokens), static_cast<double>(arm.peak_hot_tokens),
                            static_cast<double>(arm.budget_tokens), static_cast<double>(arm.n_computed)}});
  }
  return plot;
}

}  // namespace

std::string wall_text(const WallReport& report) {
  return fmt::format("{}\n\n{}\n{}\n{}", set_up_text(report), table_of(report).render(), how_to_read(report),
                     endings_text(report));
}

std::string wall_answers_text(const WallReport& report) {
  std::string text;
  for (const WallArm& arm : report.arms) {
    text += fmt::format("\n{}\n", arm.name);
    for (const WallAnswer& answer : arm.answers) {
      text +=
          fmt::format("  {}  wanted {}, said: {}  (blocks recalled: {})\n", answer.question, answer.wanted, answer.said,
                      answer.recalled.empty() ? "none" : fmt::format("{}", fmt::join(answer.recalled, ", ")));
    }
  }
  return text;
}

Status write_wall_json(const std::filesystem::path& path, const WallReport& report) {
  nlohmann::json arms = nlohmann::json::array();
  for (const WallArm& arm : report.arms) {
    arms.push_back({{"name", arm.name},
                    {"sections", arm.n_sections},
                    {"right", arm.n_right},
                    {"asked", arm.n_asked},
                    {"budget_tokens", arm.budget_tokens},
                    {"peak_hot_tokens", arm.peak_hot_tokens},
                    {"session_tokens", arm.session_tokens},
                    {"computed_tokens", arm.n_computed},
                    {"evicted_blocks", arm.n_evicted},
                    {"recalled_blocks", arm.n_recalled},
                    {"rebases", arm.n_rebases},
                    {"seconds", arm.seconds},
                    {"ended_by", arm.ended_by},
                    {"turns", turns_json(arm)},
                    {"answers", answers_json(arm)}});
  }
  return write_json(path, {{"bench", "wall"},
                           {"model", report.model},
                           {"trained_context", report.n_ctx_train},
                           {"sections", report.options.n_sections},
                           {"questions", report.options.n_questions},
                           {"block_size", report.options.block_size},
                           {"policy", report.options.policy},
                           {"kv_type", row_type_name(report.options.kv_type)},
                           {"seed", report.options.seed},
                           {"arms", arms}});
}

Status write_wall_html(const std::filesystem::path& path, const WallReport& report) {
  HtmlPage page("ebb bench wall: a session far beyond its KV budget and the model's context");
  page.add_paragraph(set_up_text(report) + ".");
  page.add_preformatted(table_of(report).render());
  page.add_paragraph(how_to_read(report));
  if (const std::string endings = endings_text(report); !endings.empty()) page.add_paragraph(endings);
  page.add_plot(hot_plot(report));
  page.add_plot(moves_plot(report));
  page.add_plot(answers_plot(report));
  page.add_plot(arms_plot(report));
  for (const WallArm& arm : report.arms) {
    if (arm.answers.empty()) continue;
    page.add_heading("What was said: " + arm.name);
    page.add_preformatted(answers_table(arm).render());
  }
  return page.write(path);
}

}  // namespace ebb
