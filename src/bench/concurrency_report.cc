// How a concurrency report looks: the table, the JSON and the page of bench/concurrency.h.
#include <nlohmann/json.hpp>

#include "bench/concurrency.h"
#include "bench/report.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

constexpr std::array<std::string_view, kConcurrencySides> kNames = {"ebb", "libllama", "libllama, one buffer"};
constexpr std::array<std::string_view, kConcurrencySides> kKeys = {"ebb", "libllama_split", "libllama_unified"};

constexpr std::string_view kHowToReadConcurrency =
    "tok/s of all sessions together: median (least-most) of the rounds. ebb / libllama: against the faster of the two, "
    "the\n"
    "median of pairs measured in one round. x one: over one session of the same side and round. GB/s: the bytes that a "
    "step must\n"
    "read; of peak: of what the probe of the same round read. logits differ: largest difference over their range.\n";

TextTable table_of(const ConcurrencyReport& report) {
  TextTable table({{"sessions"},
                   {"ebb tok/s"},
                   {"x one"},
                   {"libllama tok/s"},
                   {"x one"},
                   {"one buffer tok/s"},
                   {"x one"},
                   {"ebb / libllama"},
                   {"GB/s"},
                   {"of peak"},
                   {"logits differ"}});
  for (const ConcurrencyLine& line : report.lines) {
    std::vector<std::string> cells = {std::to_string(line.n_sessions)};
    for (const ConcurrencyFigure& figure : line.sides) {
      cells.push_back(spread_text(figure.tokens_per_s, 0));
      cells.push_back(spread_text(figure.speedup, 2));
    }
    cells.push_back(spread_text(line.ratio, 2));
    cells.push_back(fmt::format("{:.1f}", line.sides[0].gb_per_s));
    cells.push_back(share_text(line.sides[0].read_share));
    cells.push_back(fmt::format("{:.1e}", line.logits_difference));
    table.add_row(std::move(cells));
  }
  return table;
}

std::string setup_text(const ConcurrencyReport& report) {
  std::string text = fmt::format(
      "{}: {} of weights, {} of K/V a token, {} threads\neach session: {} system tokens, the same for all, {} of its "
      "own, "
      "then {} decoded a round\n{} blocks seen by all sessions, {} in the pool\n",
      report.model, bytes_text(static_cast<double>(report.weight_bytes)), bytes_text(report.kv_bytes_per_token),
      report.n_threads, report.n_system, report.n_own, report.n_decode, report.n_seen_blocks, report.n_pool_blocks);
  for (const std::string& setup : report.setups) text += "  " + setup + "\n";
  return text;
}

nlohmann::json line_json(const ConcurrencyLine& line) {
  nlohmann::json json = {{"n_sessions", line.n_sessions},
                         {"ratio", spread_json(line.ratio)},
                         {"logits_difference", line.logits_difference}};
  for (std::size_t s = 0; s < kConcurrencySides; ++s) {
    const ConcurrencyFigure& figure = line.sides[s];
    json[std::string(kKeys[s])] = {{"tokens_per_s", spread_json(figure.tokens_per_s)},
                                   {"speedup", spread_json(figure.speedup)},
                                   {"gb_per_s", figure.gb_per_s}};
    if (figure.read_share)
      json[std::string(kKeys[s])]["share_of_read_bandwidth"] = spread_json(figure.read_share->share);
  }
  return json;
}

}  // namespace

std::string concurrency_text(const ConcurrencyReport& report) {
  return machine_text(report.machine, report.peak, report.beaten) + "\n" + setup_text(report) + "\n" +
         table_of(report).render() + "\n" + std::string(kHowToReadConcurrency);
}

Status write_concurrency_json(const std::filesystem::path& path, const ConcurrencyReport& report) {
  nlohmann::json lines = nlohmann::json::array();
  for (const ConcurrencyLine& line : report.lines) lines.push_back(line_json(line));
  return write_json(path, {{"bench", "concurrency"},
                           {"machine", machine_json(report.machine, report.peak, report.beaten)},
                           {"model", report.model},
                           {"n_threads", report.n_threads},
                           {"n_system", report.n_system},
                           {"n_own", report.n_own},
                           {"n_decode", report.n_decode},
                           {"weight_bytes", report.weight_bytes},
                           {"kv_bytes_per_token", report.kv_bytes_per_token},
                           {"n_seen_blocks", report.n_seen_blocks},
                           {"n_pool_blocks", report.n_pool_blocks},
                           {"setups", report.setups},
                           {"lines", std::move(lines)}});
}

Status write_concurrency_html(const std::filesystem::path& path, const ConcurrencyReport& report) {
  HtmlPage page("ebb bench concurrency: sessions that decode together");
  page.add_paragraph(machine_text(report.machine, report.peak, report.beaten));
  LinePlot plot{.title = fmt::format("{}, all sessions together", report.model),
                .x = {.label = "sessions", .is_log = true},
                .y = {.label = "tokens per second"}};
  for (std::size_t s = 0; s < kConcurrencySides; ++s) {
    LinePlot::Series series{.name = std::string(kNames[s])};
    for (const ConcurrencyLine& line : report.lines) {
      series.points.push_back({static_cast<double>(line.n_sessions), line.sides[s].tokens_per_s.median});
    }
    plot.series.push_back(std::move(series));
  }
  page.add_plot(plot);
  page.add_preformatted(table_of(report).render());
  page.add_preformatted(setup_text(report));
  page.add_paragraph(kHowToReadConcurrency);
  return page.write(path);
}

}  // namespace ebb
