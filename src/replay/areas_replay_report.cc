// How a replay looks: a table for people, JSON for programs.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "replay/areas_replay.h"

namespace ebb {
namespace {

using ReportJson = nlohmann::ordered_json;

// "4-33, 40"; "-" for none.
std::string numbers_text(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text.empty() ? "-" : text;
}

// "34-62 by 480": blocks by their numbers before, and the positions that their keys are turned back.
std::string shifts_text(const std::vector<BlockShift>& shifts) {
  std::string text;
  for (std::size_t i = 0; i < shifts.size();) {
    std::vector<std::int32_t> alike;
    const std::int32_t n_tokens = shifts[i].n_tokens;
    for (; i < shifts.size() && shifts[i].n_tokens == n_tokens; ++i) alike.push_back(shifts[i].from);
    text += fmt::format("{}{} by {}", text.empty() ? "" : "; ", numbers_text(alike), n_tokens);
  }
  return text.empty() ? "-" : text;
}

bool is_empty(const AreasReplayLayer& layer) {
  return layer.eviction.victims.empty() && layer.eviction.rescued.empty();
}

std::string head_text(const AreasReplay& replay) {
  const AreasConfig& config = replay.config;
  std::string text = fmt::format(
      "layers {}, blocks of {} tokens; start {}, recent {}, at most {} tokens, by {}, window {}; a prompt of {}{}\n",
      replay.shape.n_layers, replay.shape.block_size, config.start_tokens, config.recent_tokens, config.max_tokens,
      aggregation_name(config.aggregation), config.n_window_queries, replay.n_prompt,
      config.upstream ? "; as the original does it" : "");
  if (config.crush.budget_blocks > 0) {
    text += fmt::format("KVCrush rescues {} blocks at each eviction, by {}, seed {}\n", config.crush.budget_blocks,
                        crush_anchor_name(config.crush.anchor), config.crush.rng_seed);
  }
  return text;
}

std::string tail_text(const AreasReplay& replay, const AreasReplayReport& report) {
  std::string text =
      fmt::format("{} steps; {} tokens of each layer left; at most {} were cached, and an eviction leaves at most {}\n",
                  report.rows.size(), report.n_evicted, report.n_most_cached, report.max_after_eviction);
  text += fmt::format("usage of {} blocks: {:.1f}% in the last step, {:.1f}% at most, {:.1f}% on average\n",
                      report.n_pool_blocks, report.last_usage, report.max_usage, report.average_usage);
  if (replay.config.applies_rotation) text += "keys are turned back before the next step\n";
  for (const std::string& note : report.notes) text += "note: " + note + "\n";
  return text;
}

ReportJson layer_json(const AreasReplayLayer& layer) {
  ReportJson shifts = ReportJson::array();
  for (const BlockShift& shift : layer.shifts) {
    shifts.push_back({{"from", shift.from}, {"to", shift.to}, {"tokens", shift.n_tokens}});
  }
  return {{"evicted", layer.eviction.victims}, {"rescued", layer.eviction.rescued}, {"rotation", std::move(shifts)}};
}

}  // namespace

std::string areas_replay_text(const AreasReplay& replay, const AreasReplayReport& report) {
  constexpr TextTable::Align kLeft = TextTable::Align::kLeft;
  const bool has_rescues = replay.config.crush.budget_blocks > 0;
  const bool has_shifts = replay.config.applies_rotation;
  std::vector<TextTable::Column> columns = {{"step"}, {"tokens"}, {"left"}, {"usage"}, {"layer"}, {"evicted", kLeft}};
  if (has_rescues) columns.push_back({"rescued", kLeft});
  if (has_shifts) columns.push_back({"turned back", kLeft});
  TextTable table(std::move(columns));
  bool is_quiet = true;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const AreasReplayRow& row = report.rows[i];
    for (std::size_t layer = 0; layer < row.layers.size(); ++layer) {
      if (is_empty(row.layers[layer])) continue;
      is_quiet = false;
      std::vector<std::string> cells = {std::to_string(i + 1),      std::to_string(row.n_cached),
                                        std::to_string(row.n_left), fmt::format("{:.1f}%", row.usage),
                                        std::to_string(layer),      numbers_text(row.layers[layer].eviction.victims)};
      if (has_rescues) cells.push_back(numbers_text(row.layers[layer].eviction.rescued));
      if (has_shifts) cells.push_back(shifts_text(row.layers[layer].shifts));
      table.add_row(std::move(cells));
    }
  }
  const std::string rows = is_quiet ? "nothing leaves\n" : table.render();
  return head_text(replay) + "\n" + rows + "\n" + tail_text(replay, report);
}

std::string areas_replay_json(const AreasReplayReport& report) {
  ReportJson steps = ReportJson::array();
  for (const AreasReplayRow& row : report.rows) {
    ReportJson layers = ReportJson::array();
    for (const AreasReplayLayer& layer : row.layers) layers.push_back(layer_json(layer));
    steps.push_back({{"scheduled", row.n_scheduled},
                     {"processed", row.n_processed},
                     {"cached", row.n_cached},
                     {"left", row.n_left},
                     {"cache_usage", row.usage},
                     {"layers", std::move(layers)}});
  }
  const ReportJson json = {{"evicted_tokens", report.n_evicted},
                           {"most_cached_tokens", report.n_most_cached},
                           {"max_cache_size_after_eviction", report.max_after_eviction},
                           {"num_kv_blocks", report.n_pool_blocks},
                           {"cache_usage", report.last_usage},
                           {"max_cache_usage", report.max_usage},
                           {"avg_cache_usage", report.average_usage},
                           {"notes", report.notes},
                           {"steps", std::move(steps)}};
  return json.dump(2, ' ', false, ReportJson::error_handler_t::replace) + '\n';
}

}  // namespace ebb
