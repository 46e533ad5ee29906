// How a sparse report looks: the tables, the JSON and the page of bench/sparse.h.
#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/sparse.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

constexpr std::string_view kHowToReadSparse =
    "Median (least-most) of the rounds; ratios are medians of pairs of the same round. sparse K: at most K tokens are "
    "hot,\n"
    "survivors stay where they are; compact K: they close up and are turned at every eviction, as shifting caches do.\n"
    "Evictions and moved blocks: of all rounds together. K/V read: bytes that one token reads, on average. Perplexity "
    "is\n"
    "that of the scored tokens; same words: Jaccard index of the generated words with those of no eviction.\n";

TextTable speed_table(const SparseDepth& depth) {
  TextTable table({{"arm", TextTable::Align::kLeft},
                   {"tok/s"},
                   {"/ no eviction"},
                   {"/ sparse"},
                   {"peak hot"},
                   {"evictions"},
                   {"moved"},
                   {"K/V read"}});
  for (const SparseSpeed& speed : depth.arms) {
    table.add_row({speed.arm.name(), spread_text(speed.tokens_per_s), spread_text(speed.over_nothing, 2),
                   speed.over_sparse ? spread_text(*speed.over_sparse, 2) : "-", std::to_string(speed.peak_hot_tokens),
                   std::to_string(speed.n_evicted_blocks), std::to_string(speed.n_moved_blocks),
                   bytes_text(speed.kv_bytes)});
  }
  return table;
}

TextTable quality_table(const SparseText& text) {
  TextTable table({{"arm", TextTable::Align::kLeft}, {"perplexity"}, {"same words"}, {"peak hot"}, {"evictions"}});
  for (const SparseQuality& quality : text.arms) {
    table.add_row({quality.arm.name(), fmt::format("{:.2f}", quality.perplexity), percent_text(quality.overlap),
                   std::to_string(quality.peak_hot_tokens), std::to_string(quality.n_evicted_blocks)});
  }
  return table;
}

std::string set_up_text(const SparseReport& report) {
  return fmt::format("{}, {} threads, K and V in {}, blocks of {} tokens, rounds of {} decoded tokens", report.model,
                     report.n_threads, row_type_name(report.kv_type), report.block_size, report.n_decode);
}

std::string quality_text(const SparseText& text) {
  return fmt::format("Text: {} reads {} tokens of {}, then {} are scored, then {} generated", text.model,
                     text.n_context, text.text, text.n_scored, text.n_generated);
}

nlohmann::json arm_json(const SparseArm& arm) {
  return {{"way", sparse_way_name(arm.way)}, {"budget_tokens", arm.budget_tokens}};
}

nlohmann::json depth_json(const SparseDepth& depth) {
  nlohmann::json arms = nlohmann::json::array();
  for (const SparseSpeed& speed : depth.arms) {
    nlohmann::json arm = arm_json(speed.arm);
    arm["tokens_per_s"] = spread_json(speed.tokens_per_s);
    arm["over_no_eviction"] = spread_json(speed.over_nothing);
    if (speed.over_sparse) arm["over_sparse"] = spread_json(*speed.over_sparse);
    arm["peak_hot_tokens"] = speed.peak_hot_tokens;
    arm["n_evicted_blocks"] = speed.n_evicted_blocks;
    arm["n_moved_blocks"] = speed.n_moved_blocks;
    arm["kv_bytes_read_per_token"] = speed.kv_bytes;
    arms.push_back(std::move(arm));
  }
  return {{"n_tokens", depth.n_tokens}, {"arms", std::move(arms)}};
}

nlohmann::json text_json(const SparseText& text) {
  nlohmann::json arms = nlohmann::json::array();
  for (const SparseQuality& quality : text.arms) {
    nlohmann::json arm = arm_json(quality.arm);
    arm["perplexity"] = quality.perplexity;
    arm["word_overlap"] = quality.overlap;
    arm["peak_hot_tokens"] = quality.peak_hot_tokens;
    arm["n_evicted_blocks"] = quality.n_evicted_blocks;
    arms.push_back(std::move(arm));
  }
  return {{"model", text.model},
          {"text", text.text},
          {"n_context", text.n_context},
          {"n_scored", text.n_scored},
          {"n_generated", text.n_generated},
          {"arms", std::move(arms)}};
}

// A group of bars for no eviction, and one per budget with both ways side by side.
template <class Arms, class Value>
BarPlot plot_of(const Arms& arms, std::string title, PlotAxis y, const Value& value) {
  BarPlot plot{.title = std::move(title), .y = std::move(y), .series = {}, .groups = {}};
  for (const SparseWay way : {SparseWay::kNothing, SparseWay::kSparse, SparseWay::kCompact}) {
    plot.series.emplace_back(sparse_way_name(way));
  }
  for (const auto& entry : arms) {
    const std::string label = entry.arm.budget_tokens == 0 ? "all" : fmt::format("K = {}", entry.arm.budget_tokens);
    auto group = std::ranges::find(plot.groups, label, &BarPlot::Group::label);
    if (group == plot.groups.end()) {
      // No number: the bar is left out.
      plot.groups.push_back({label, std::vector<double>(plot.series.size(), std::numeric_limits<double>::quiet_NaN())});
      group = plot.groups.end() - 1;
    }
    group->values[static_cast<std::size_t>(entry.arm.way)] = value(entry);
  }
  return plot;
}

}  // namespace

std::string sparse_text(const SparseReport& report) {
  std::string text = machine_text(report.machine, report.peak) + set_up_text(report) + "\n";
  for (const SparseDepth& depth : report.depths) {
    text += fmt::format("\nbehind {} tokens\n\n{}", depth.n_tokens, speed_table(depth).render());
  }
  if (report.text) text += fmt::format("\n{}\n\n{}", quality_text(*report.text), quality_table(*report.text).render());
  return text + "\n" + std::string(kHowToReadSparse);
}

Status write_sparse_json(const std::filesystem::path& path, const SparseReport& report) {
  nlohmann::json depths = nlohmann::json::array();
  for (const SparseDepth& depth : report.depths) depths.push_back(depth_json(depth));
  nlohmann::json json = {{"bench", "sparse"},
                         {"machine", machine_json(report.machine, report.peak)},
                         {"model", report.model},
                         {"n_threads", report.n_threads},
                         {"kv_type", row_type_name(report.kv_type)},
                         {"block_size", report.block_size},
                         {"n_decode", report.n_decode},
                         {"depths", std::move(depths)}};
  if (report.text) json["text"] = text_json(*report.text);
  return write_json(path, json);
}

Status write_sparse_html(const std::filesystem::path& path, const SparseReport& report) {
  HtmlPage page("ebb bench sparse: decoding under a small budget");
  page.add_paragraph(set_up_text(report) + ".");
  page.add_paragraph(machine_text(report.machine, report.peak));
  for (const SparseDepth& depth : report.depths) {
    page.add_heading(fmt::format("Behind {} tokens", depth.n_tokens));
    page.add_plot(plot_of(depth.arms, fmt::format("Decode speed behind {} tokens", depth.n_tokens),
                          {.label = "tokens per second"},
                          [](const SparseSpeed& speed) { return speed.tokens_per_s.median; }));
    page.add_plot(plot_of(depth.arms, "K and V that a token reads", {.label = "MB", .is_log = true},
                          [](const SparseSpeed& speed) { return speed.kv_bytes / 1e6; }));
    page.add_preformatted(speed_table(depth).render());
  }
  if (report.text) {
    page.add_heading("Text");
    page.add_paragraph(quality_text(*report.text) + ".");
    page.add_plot(plot_of(report.text->arms, "Perplexity of the scored tokens", {.label = "perplexity", .is_log = true},
                          [](const SparseQuality& quality) { return quality.perplexity; }));
    page.add_plot(plot_of(report.text->arms, "Generated words that no eviction gives too", {.label = "Jaccard index"},
                          [](const SparseQuality& quality) { return quality.overlap; }));
    page.add_preformatted(quality_table(*report.text).render());
  }
  page.add_paragraph(kHowToReadSparse);
  return page.write(path);
}

}  // namespace ebb
