// How a fidelity report looks: the tables, the JSON and the page of bench/fidelity.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/fidelity.h"
#include "bench/report.h"
#include "bench/statistics.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

struct ArmName {
  std::string_view key;
  std::string_view text;
};

// By FidelityArm.
constexpr std::array<ArmName, kFidelityArms> kArmNames = {
    ArmName{"reference", "reference"},
    ArmName{"recalled_sparse", "recalled, sparse"},
    ArmName{"recalled_compact", "recalled, compact"},
    ArmName{"recalled_compact_tail", "compact, at the tail"},
    ArmName{"recalled_tail", "sparse, at the tail"},
    ArmName{"redecoded", "re-decoded"},
    ArmName{"discarded", "discarded"},
};

constexpr std::string_view kHowToReadFidelity =
    "reference: nothing is evicted. recalled, sparse: back at its original position. recalled, compact: survivors "
    "close "
    "up\n"
    "when it leaves, and it comes back in its order among them; compact, at the tail: behind them. sparse, at the "
    "tail:\n"
    "survivors stay, and it comes back behind them. re-decoded: computed again. discarded: it stays a hole.\n"
    "bitwise equal: sessions all of whose logits are the reference's bit for bit. facts: the session's own reply holds "
    "the\n"
    "fact, with Wilson's 95 % interval. KL: of the next token's distribution from the reference's, nats, mean (most); "
    "of\n"
    "reply: of the tokens that make the reply. logits differ: the largest difference over the range of the reference's "
    "logits,\n"
    "mean (most). same top: tokens with the same likeliest successor. same reply: greedy replies that are the "
    "reference's;\n"
    "its tokens: the share of their tokens before the first that differs. moved: blocks turned to another anchor, "
    "rounded\n"
    "once more each. K and V: what the span's blocks are when the question is asked.\n";

std::string n_of(std::int64_t n, std::int64_t n_all) { return fmt::format("{} of {}", n, n_all); }

std::string yes_or_count(std::int64_t n, std::int64_t n_all) {
  if (n == n_all) return "yes";
  return n == 0 ? "no" : n_of(n, n_all);
}

std::string facts_text(const FidelityFigures& figures) {
  const ShareInterval interval = share_interval(figures.n_right, figures.n_sessions);
  return fmt::format("{} ({:.0f}-{:.0f}%)", n_of(figures.n_right, figures.n_sessions), 100.0 * interval.low,
                     100.0 * interval.high);
}

// Small numbers keep their first digits; 0 is exactly that.
std::string small_text(double value) {
  if (value == 0.0) return "0";
  return value < 0.001 ? fmt::format("{:.0e}", value) : fmt::format("{:.3f}", value);
}

std::string mean_and_most(double mean, double most) {
  return most == 0.0 ? "0" : fmt::format("{} ({})", small_text(mean), small_text(most));
}

double same_reply_tokens(const FidelityFigures& figures) {
  return static_cast<double>(figures.n_same_reply_tokens) / static_cast<double>(figures.n_reply_tokens);
}

std::string span_state(const FidelityFigures& figures) {
  if (figures.from[Origin::kHole] > 0) return "hole";
  if (figures.n_same_bytes == figures.n_sessions)
    return figures.from[Origin::kRecomputed] > 0 ? "computed" : "same bytes";
  if (figures.from[Origin::kRecalledApproximate] > 0) return "turned";
  if (figures.from[Origin::kRecomputed] > 0) return "computed, other";
  // The survivors' anchors may have moved with its own.
  return "other";
}

TextTable table_of(const FidelityArms& arms) {
  using enum TextTable::Align;
  TextTable table({{"arm", kLeft},
                   {"bitwise equal"},
                   {"facts"},
                   {"KL"},
                   {"of reply"},
                   {"logits differ"},
                   {"same top"},
                   {"same reply"},
                   {"its tokens"},
                   {"moved"},
                   {"K and V", kLeft}});
  for (std::size_t i = 0; i < kFidelityArms; ++i) {
    const FidelityFigures& figures = arms[i];
    table.add_row({std::string(kArmNames[i].text), yes_or_count(figures.n_bitwise, figures.n_sessions),
                   facts_text(figures), mean_and_most(figures.kl(), figures.kl_most), small_text(figures.kl_reply()),
                   mean_and_most(figures.gap(), figures.gap_most), fmt::format("{:.1f}%", 100.0 * figures.same_top()),
                   n_of(figures.n_same_replies, figures.n_sessions), percent_text(same_reply_tokens(figures)),
                   std::to_string(figures.n_moved_blocks), span_state(figures)});
  }
  return table;
}

std::string absence_text(Absence absence) {
  return absence == Absence::kMoment ? "away for a moment: everything was read with the span visible"
                                     : "away while reading: the distance was read without the span";
}

std::string case_text(const FidelityCase& one) {
  return fmt::format("K and V in {}, {} tokens evicted, {} before the question; {}", row_type_name(one.kv_type),
                     one.n_span, one.n_distance, absence_text(one.absence));
}

std::string totals_text(RowType kv_type, Absence absence) {
  return fmt::format("All cases with K and V in {}; {}", row_type_name(kv_type), absence_text(absence));
}

std::string set_up_text(const FidelityReport& report) {
  const FidelityOptions& options = report.options;
  return fmt::format("{}: {} facts a case, a session each; {} tokens compared in each; blocks of {}", report.model,
                     options.n_facts, options.n_scored, options.block_size);
}

nlohmann::json figures_json(const FidelityFigures& figures) {
  const ShareInterval interval = share_interval(figures.n_right, figures.n_sessions);
  nlohmann::json from;
  for (const OriginName& name : kOriginNames) from[std::string(name.name)] = figures.from[name.origin];
  return {{"sessions", figures.n_sessions},
          {"bitwise_equal_sessions", figures.n_bitwise},
          {"span_bytes_equal_sessions", figures.n_same_bytes},
          {"facts_right", figures.n_right},
          {"facts_right_interval", {interval.low, interval.high}},
          {"scored_tokens", figures.n_scored},
          {"kl_nats", {{"mean", figures.kl()}, {"max", figures.kl_most}, {"mean_of_reply", figures.kl_reply()}}},
          {"logit_difference_of_range", {{"mean", figures.gap()}, {"max", figures.gap_most}}},
          {"same_top", figures.same_top()},
          {"same_replies", figures.n_same_replies},
          {"reply_tokens", figures.n_reply_tokens},
          {"same_reply_tokens", figures.n_same_reply_tokens},
          {"blocks",
           {{"evicted", figures.n_evicted_blocks},
            {"recalled", figures.n_recalled_blocks},
            {"recomputed", figures.n_recomputed_blocks},
            {"moved", figures.n_moved_blocks}}},
          {"tokens_before_question", std::move(from)}};
}

nlohmann::json arms_json(const FidelityArms& arms) {
  nlohmann::json json = nlohmann::json::object();
  for (std::size_t i = 0; i < kFidelityArms; ++i) json[kArmNames[i].key] = figures_json(arms[i]);
  return json;
}

// A group of bars for each case of this type and absence, one bar for each arm.
BarPlot plot_of(const FidelityReport& report, const FidelityCase& like, std::string title, PlotAxis y,
                double (*value)(const FidelityFigures&)) {
  BarPlot plot{.title = std::move(title), .y = std::move(y), .series = {}, .groups = {}};
  for (const ArmName& name : kArmNames) plot.series.emplace_back(name.text);
  for (const FidelityCase& one : report.cases) {
    if (one.kv_type != like.kv_type || one.absence != like.absence) continue;
    BarPlot::Group group{.label = fmt::format("{} tok, {} behind", one.n_span, one.n_distance), .values = {}};
    for (const FidelityFigures& figures : one.arms) group.values.push_back(value(figures));
    plot.groups.push_back(std::move(group));
  }
  return plot;
}

void add_plots(HtmlPage& page, const FidelityReport& report, const FidelityCase& like) {
  page.add_plot(
      plot_of(report, like, "Facts recalled", {.label = "share of facts"}, [](const FidelityFigures& figures) {
        return static_cast<double>(figures.n_right) / static_cast<double>(figures.n_sessions);
      }));
  page.add_plot(plot_of(report, like, "Kullback-Leibler divergence from the reference (no bar: 0)",
                        {.label = "nats, mean", .is_log = true},
                        [](const FidelityFigures& figures) { return figures.kl(); }));
  page.add_plot(plot_of(report, like, "Tokens with the same likeliest successor", {.label = "share of tokens"},
                        [](const FidelityFigures& figures) { return figures.same_top(); }));
}

bool is_first_of_its_plots(const FidelityReport& report, const FidelityCase& one) {
  const auto first = std::ranges::find_if(report.cases, [&](const FidelityCase& other) {
    return other.kv_type == one.kv_type && other.absence == one.absence;
  });
  return &*first == &one;
}

}  // namespace

std::string_view fidelity_arm_key(FidelityArm arm) { return kArmNames[static_cast<std::size_t>(arm)].key; }
std::string_view fidelity_arm_text(FidelityArm arm) { return kArmNames[static_cast<std::size_t>(arm)].text; }
std::string_view absence_name(Absence absence) { return absence == Absence::kMoment ? "moment" : "reading"; }

std::string fidelity_text(const FidelityReport& report) {
  std::string text = set_up_text(report) + "\n";
  for (const FidelityCase& one : report.cases) {
    text += fmt::format("\n{}\n\n{}", case_text(one), table_of(one.arms).render());
  }
  for (const RowType kv_type : report.options.kv_types) {
    for (const Absence absence : report.options.absences) {
      text += fmt::format("\n{}\n\n{}", totals_text(kv_type, absence),
                          table_of(fidelity_totals(report, kv_type, absence)).render());
    }
  }
  return text + "\n" + std::string(kHowToReadFidelity);
}

Status write_fidelity_json(const std::filesystem::path& path, const FidelityReport& report) {
  nlohmann::json cases = nlohmann::json::array();
  for (const FidelityCase& one : report.cases) {
    cases.push_back({{"kv_type", row_type_name(one.kv_type)},
                     {"absence", absence_name(one.absence)},
                     {"span_tokens", one.n_span},
                     {"distance_tokens", one.n_distance},
                     {"arms", arms_json(one.arms)}});
  }
  nlohmann::json totals = nlohmann::json::object();
  for (const RowType kv_type : report.options.kv_types) {
    for (const Absence absence : report.options.absences) {
      totals[row_type_name(kv_type)][absence_name(absence)] = arms_json(fidelity_totals(report, kv_type, absence));
    }
  }
  return write_json(path, {{"bench", "fidelity"},
                           {"model", report.model},
                           {"facts", report.options.n_facts},
                           {"context_tokens", report.options.n_context},
                           {"scored_tokens", report.options.n_scored},
                           {"block_size", report.options.block_size},
                           {"seed", report.options.seed},
                           {"cases", std::move(cases)},
                           {"totals", std::move(totals)}});
}

Status write_fidelity_html(const std::filesystem::path& path, const FidelityReport& report) {
  HtmlPage page("ebb bench fidelity: what answers lose by each way of having a block back");
  page.add_paragraph(set_up_text(report) + ".");
  for (const RowType kv_type : report.options.kv_types) {
    for (const Absence absence : report.options.absences) {
      page.add_heading(totals_text(kv_type, absence));
      page.add_preformatted(table_of(fidelity_totals(report, kv_type, absence)).render());
    }
  }
  page.add_preformatted(kHowToReadFidelity);
  for (const FidelityCase& like : report.cases) {
    if (!is_first_of_its_plots(report, like)) continue;
    page.add_heading(
        fmt::format("By case: K and V in {}; {}", row_type_name(like.kv_type), absence_text(like.absence)));
    add_plots(page, report, like);
    for (const FidelityCase& one : report.cases) {
      if (one.kv_type != like.kv_type || one.absence != like.absence) continue;
      page.add_paragraph(fmt::format("{} tokens evicted, {} before the question:", one.n_span, one.n_distance));
      page.add_preformatted(table_of(one.arms).render());
    }
  }
  return page.write(path);
}

}  // namespace ebb
