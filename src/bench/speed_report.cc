// How a speed report looks: the table and the JSON of bench/speed.h.
#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/speed.h"

namespace ebb {
namespace {

std::string percent_text(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

std::string machine_text(const SpeedReport& report) {
  const Machine& machine = report.machine;
  const Bandwidth& bandwidth = report.bandwidth;
  std::string text = fmt::format("{}, {} CPUs, {} of memory; {} threads read {} GB/s and copy {} GB/s\n", machine.cpu,
                                 machine.n_cpus, bytes_text(static_cast<double>(machine.memory_bytes)),
                                 report.n_threads, spread_text(bandwidth.read_gb_s), spread_text(bandwidth.copy_gb_s));
  if (machine.load_1min > 0.5) {
    text += fmt::format("Other programs were busy (load {:.1f}): ratios hold, absolute figures are too low.\n",
                        machine.load_1min);
  }
  return text;
}

TextTable table_of(const ModelSpeed& speed) {
  TextTable table({{"test", TextTable::Align::kLeft},
                   {"depth"},
                   {"ebb tok/s"},
                   {"libllama tok/s"},
                   {"ebb / libllama"},
                   {"GB/s"},
                   {"of peak"},
                   {"theirs"},
                   {"GFLOP/s"},
                   {"theirs"},
                   {"logits differ"}});
  for (const SpeedLine& line : speed.lines) {
    table.add_row({fmt::format("{} {}", line.test, line.n_tokens), std::to_string(line.depth),
                   spread_text(line.ebb.tokens_per_s), spread_text(line.llama.tokens_per_s), spread_text(line.ratio, 2),
                   fmt::format("{:.1f}", line.ebb.gb_per_s), percent_text(line.ebb.read_share),
                   percent_text(line.llama.read_share), fmt::format("{:.0f}", line.ebb.gflop_per_s),
                   fmt::format("{:.0f}", line.llama.gflop_per_s), fmt::format("{:.1e}", line.logits_difference)});
  }
  return table;
}

nlohmann::json side_json(const SpeedSide& side) {
  return {{"tokens_per_s", spread_json(side.tokens_per_s)},
          {"gb_per_s", side.gb_per_s},
          {"share_of_read_bandwidth", side.read_share},
          {"gflop_per_s", side.gflop_per_s}};
}

nlohmann::json model_json(const ModelSpeed& speed) {
  nlohmann::json lines = nlohmann::json::array();
  for (const SpeedLine& line : speed.lines) {
    lines.push_back({{"test", line.test},
                     {"n_tokens", line.n_tokens},
                     {"depth", line.depth},
                     {"ebb", side_json(line.ebb)},
                     {"libllama", side_json(line.llama)},
                     {"ratio", spread_json(line.ratio)},
                     {"logits_difference", line.logits_difference}});
  }
  return {{"model", speed.model},
          {"n_parameters", speed.n_parameters},
          {"weight_bytes", speed.weight_bytes},
          {"kv_bytes_per_token", speed.kv_bytes_per_token},
          {"ebb", speed.ebb},
          {"libllama", speed.llama},
          {"lines", std::move(lines)}};
}

}  // namespace

std::string speed_text(const SpeedReport& report) {
  std::string text = machine_text(report);
  for (const ModelSpeed& speed : report.models) {
    text += fmt::format("\n{}: {:.2f}e9 parameters, a token reads {} of weights and {} of K/V per resident token\n",
                        speed.model, static_cast<double>(speed.n_parameters) / 1e9,
                        bytes_text(static_cast<double>(speed.weight_bytes)), bytes_text(speed.kv_bytes_per_token));
    text += fmt::format("  {}\n  {}\n\n{}", speed.ebb, speed.llama, table_of(speed).render());
  }
  text +=
      "\nMedian (least-most) of the rounds; ratios are medians of pairs measured back to back. GB/s: the bytes that a\n"
      "pass must read; of peak: of the measured read bandwidth. logits differ: largest difference over their range.\n";
  return text;
}

Status write_speed_json(const std::filesystem::path& path, const SpeedReport& report) {
  nlohmann::json models = nlohmann::json::array();
  for (const ModelSpeed& speed : report.models) models.push_back(model_json(speed));
  return write_json(path, {{"bench", "speed"},
                           {"machine",
                            {{"cpu", report.machine.cpu},
                             {"n_cpus", report.machine.n_cpus},
                             {"memory_bytes", report.machine.memory_bytes},
                             {"last_cache_bytes", report.machine.last_cache_bytes},
                             {"load_1min", report.machine.load_1min},
                             {"read_gb_per_s", spread_json(report.bandwidth.read_gb_s)},
                             {"copy_gb_per_s", spread_json(report.bandwidth.copy_gb_s)}}},
                           {"n_threads", report.n_threads},
                           {"models", std::move(models)}});
}

}  // namespace ebb
