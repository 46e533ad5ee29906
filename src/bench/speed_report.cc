// How a speed report looks: the table, the JSON and the page of bench/speed.h.
#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/speed.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

constexpr std::string_view kHowToReadSpeed =
    "Median (least-most) of the rounds; ratios are medians of pairs measured back to back. GB/s: the bytes that a\n"
    "pass must read; of peak: of what the probe of the same round read. of limit: operations, of the multiply-adds "
    "that\n"
    "all threads did in registers in the same round. best: the quickest of the others. logits differ: largest "
    "difference over their range.\n";

TextTable table_of(const ModelSpeed& speed) {
  std::vector<TextTable::Column> columns = {
      {"test", TextTable::Align::kLeft}, {"depth"}, {"ebb tok/s"}, {"libllama tok/s"}};
  for (const SpeedPeer& peer : speed.peers) columns.push_back({peer.name + " tok/s"});
  columns.push_back({"ebb / libllama"});
  if (!speed.peers.empty()) columns.push_back({"ebb / best"});
  for (const char* more : {"GB/s", "of peak", "theirs", "GFLOP/s", "of limit", "theirs", "logits differ"}) {
    columns.push_back({more});
  }
  TextTable table(std::move(columns));
  for (const SpeedLine& line : speed.lines) {
    std::vector<std::string> cells = {fmt::format("{} {}", line.test, line.n_tokens), std::to_string(line.depth),
                                      spread_text(line.ebb.tokens_per_s), spread_text(line.llama.tokens_per_s)};
    for (const auto& peer : line.peers) cells.push_back(peer ? spread_text(peer->tokens_per_s) : "-");
    cells.push_back(spread_text(line.ratio, 2));
    if (!speed.peers.empty()) cells.push_back(fmt::format("{} ({})", spread_text(line.best_ratio, 2), line.best_peer));
    for (const std::string& cell :
         {fmt::format("{:.1f}", line.ebb.gb_per_s), share_text(line.ebb.read_share), share_text(line.llama.read_share),
          fmt::format("{:.0f}", line.ebb.gflop_per_s), share_text(line.ebb.multiply_share),
          share_text(line.llama.multiply_share), fmt::format("{:.1e}", line.logits_difference)}) {
      cells.push_back(cell);
    }
    table.add_row(std::move(cells));
  }
  return table;
}

nlohmann::json side_json(const SpeedSide& side) {
  nlohmann::json json = {
      {"tokens_per_s", spread_json(side.tokens_per_s)}, {"gb_per_s", side.gb_per_s}, {"gflop_per_s", side.gflop_per_s}};
  if (side.read_share) json["share_of_read_bandwidth"] = spread_json(side.read_share->share);
  if (side.multiply_share) json["share_of_multiply_limit"] = spread_json(side.multiply_share->share);
  return json;
}

nlohmann::json line_json(const ModelSpeed& speed, const SpeedLine& line) {
  nlohmann::json json = {{"test", line.test},
                         {"n_tokens", line.n_tokens},
                         {"depth", line.depth},
                         {"ebb", side_json(line.ebb)},
                         {"libllama", side_json(line.llama)},
                         {"ratio", spread_json(line.ratio)},
                         {"logits_difference", line.logits_difference}};
  if (speed.peers.empty()) return json;
  json["peers"] = nlohmann::json::object();
  for (std::size_t i = 0; i < speed.peers.size(); ++i) {
    if (line.peers[i]) json["peers"][speed.peers[i].name] = side_json(*line.peers[i]);
  }
  json["best_peer"] = line.best_peer;
  json["ratio_to_best"] = spread_json(line.best_ratio);
  return json;
}

nlohmann::json peers_json(const ModelSpeed& speed) {
  nlohmann::json peers = nlohmann::json::array();
  for (const SpeedPeer& peer : speed.peers) {
    peers.push_back({{"name", peer.name}, {"program", peer.program}, {"build", peer.build}});
  }
  return peers;
}

// What each peer is, and at which depths it was not asked.
std::string peers_text(const ModelSpeed& speed) {
  std::string text;
  for (std::size_t i = 0; i < speed.peers.size(); ++i) {
    const SpeedPeer& peer = speed.peers[i];
    text += fmt::format("  {}: {}, commit {}", peer.name, peer.program, peer.build.empty() ? "unknown" : peer.build);
    std::string left_out;
    for (const SpeedLine& line : speed.lines) {
      if (line.peers[i]) continue;
      left_out += fmt::format("{}{} behind {}", left_out.empty() ? "" : ", ", line.test, line.depth);
    }
    text += left_out.empty() ? "\n" : fmt::format("; it has no flag for: {}\n", left_out);
  }
  return text;
}

nlohmann::json model_json(const ModelSpeed& speed) {
  nlohmann::json lines = nlohmann::json::array();
  for (const SpeedLine& line : speed.lines) lines.push_back(line_json(speed, line));
  return {{"model", speed.model},
          {"n_parameters", speed.n_parameters},
          {"weight_bytes", speed.weight_bytes},
          {"kv_bytes_per_token", speed.kv_bytes_per_token},
          {"multiply_type", multiply_type_name(speed.multiply_type)},
          {"ebb", speed.ebb},
          {"libllama", speed.llama},
          {"peers", peers_json(speed)},
          {"lines", std::move(lines)}};
}

std::string busy_text(const SpeedReport& report) {
  if (report.n_busy == 0) return {};
  return fmt::format("Cores taken: {} other {} wanted a core each during all rounds, beside {} threads.\n",
                     report.n_busy, report.n_busy == 1 ? "program" : "programs", report.n_threads);
}

}  // namespace

std::string speed_text(const SpeedReport& report) {
  std::string text = machine_text(report.machine, report.peak, report.beaten) + busy_text(report);
  for (const ModelSpeed& speed : report.models) {
    text += fmt::format(
        "\n{}: {:.2f}e9 parameters, a token reads {} of weights and {} of K/V per resident token; the limit is of {}\n",
        speed.model, static_cast<double>(speed.n_parameters) / 1e9, bytes_text(static_cast<double>(speed.weight_bytes)),
        bytes_text(speed.kv_bytes_per_token), multiply_type_name(speed.multiply_type));
    text += fmt::format("  {}\n  {}\n{}\n{}", speed.ebb, speed.llama, peers_text(speed), table_of(speed).render());
  }
  return text + "\n" + std::string(kHowToReadSpeed);
}

Status write_speed_json(const std::filesystem::path& path, const SpeedReport& report) {
  nlohmann::json models = nlohmann::json::array();
  for (const ModelSpeed& speed : report.models) models.push_back(model_json(speed));
  return write_json(path, {{"bench", "speed"},
                           {"machine", machine_json(report.machine, report.peak, report.beaten)},
                           {"n_threads", report.n_threads},
                           {"n_busy", report.n_busy},
                           {"models", std::move(models)}});
}

Status write_speed_html(const std::filesystem::path& path, const SpeedReport& report) {
  HtmlPage page("ebb bench speed: ebb and libllama");
  page.add_paragraph(machine_text(report.machine, report.peak, report.beaten) + busy_text(report));
  for (const ModelSpeed& speed : report.models) {
    page.add_heading(speed.model);
    for (const std::string_view test : {"prompt", "decode"}) {
      BarPlot plot{.title = fmt::format("{}, {}", speed.model, test),
                   .y = {.label = "tokens per second"},
                   .series = {"ebb", "libllama"},
                   .groups = {}};
      for (const SpeedPeer& peer : speed.peers) plot.series.push_back(peer.name);
      for (const SpeedLine& line : speed.lines) {
        if (line.test != test) continue;
        plot.groups.push_back({fmt::format("{} tokens behind {}", line.n_tokens, line.depth),
                               {line.ebb.tokens_per_s.median, line.llama.tokens_per_s.median}});
        for (const auto& peer : line.peers) {
          plot.groups.back().values.push_back(peer ? peer->tokens_per_s.median : 0.0);
        }
      }
      page.add_plot(plot);
    }
    page.add_preformatted(table_of(speed).render());
    page.add_paragraph(speed.ebb);
    page.add_paragraph(speed.llama);
    if (!speed.peers.empty()) page.add_preformatted(peers_text(speed));
  }
  page.add_paragraph(kHowToReadSpeed);
  return page.write(path);
}

}  // namespace ebb
