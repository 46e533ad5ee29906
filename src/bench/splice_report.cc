// How a splice report looks: the table, the JSON and the page of bench/splice.h.
#include <array>

#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/splice.h"
#include "bench/svg_plot.h"

namespace ebb {
namespace {

struct MoveName {
  std::string_view key;
  std::string_view text;
};

// By SpliceMove.
constexpr std::array<MoveName, kSpliceMoves> kMoveNames = {
    MoveName{"save_eager", "save, eager"},
    MoveName{"save_behind", "save behind: computing thread"},
    MoveName{"save_kept", "save behind: until kept"},
    MoveName{"recall_ram", "recall from RAM"},
    MoveName{"recall_ram_moved", "recall from RAM, moved"},
    MoveName{"recall_disk", "recall from disk (page cache)"},
    MoveName{"save_and_recall", "save, eager + recall from RAM"},
    MoveName{"save_behind_and_recall", "save behind + recall from RAM"},
    MoveName{"prefill", "re-prefill"},
};

constexpr std::string_view kHowToReadSplice =
    "Median (least-most) of the rounds. GB/s: bytes of the span's frames over the median; of copy: of the measured "
    "copy\n"
    "bandwidth of all threads. re-prefill / it: how many times as long a forward pass over the same tokens takes, "
    "behind\n"
    "the same context. Caches are swept before each move. Recall verifies every byte; moved: keys turned to another "
    "anchor.\n"
    "Disk: files were just written and lie in the page cache; no device is waited for.\n";

std::string number(double value, int n_decimals) {
  return value > 0.0 ? fmt::format("{:.{}f}", value, n_decimals) : std::string("-");
}

std::string span_text(const SpliceLine& line) {
  std::string text = fmt::format("{} tokens", line.n_tokens);
  if (line.n_asked != line.n_tokens) text += fmt::format(" (for {})", line.n_asked);
  return fmt::format("{}, {} block{}, {}", text, line.n_blocks, line.n_blocks == 1 ? "" : "s",
                     bytes_text(static_cast<double>(line.n_bytes)));
}

TextTable table_of(const KvSplice& kv) {
  TextTable table({{"span", TextTable::Align::kLeft},
                   {"move", TextTable::Align::kLeft},
                   {"ms"},
                   {"GB/s"},
                   {"of copy"},
                   {"re-prefill / it"}});
  for (std::size_t l = 0; l < kv.lines.size(); ++l) {
    const SpliceLine& line = kv.lines[l];
    if (l > 0) table.add_gap();
    for (std::size_t i = 0; i < kSpliceMoves; ++i) {
      const SpliceFigure& figure = line.figures[i];
      table.add_row({i == 0 ? span_text(line) : "", std::string(kMoveNames[i].text), spread_text(figure.ms, 3),
                     number(figure.gb_per_s, 2), share_text(figure.copy_share),
                     fmt::format("{:.{}f}", figure.prefill_ratio, figure.prefill_ratio < 10.0 ? 1 : 0)});
    }
  }
  return table;
}

std::string stall_text(const DecodeStall& stall) {
  return fmt::format(
      "decoding {} tokens: {} tok/s saving behind, {} tok/s saving nothing; saving costs {:.1f} % ({:.1f} to {:.1f})\n",
      stall.n_tokens, spread_text(stall.saving_tokens_per_s), spread_text(stall.plain_tokens_per_s),
      100.0 * stall.slowdown.median, 100.0 * stall.slowdown.min, 100.0 * stall.slowdown.max);
}

std::string kv_text(const KvSplice& kv) {
  return fmt::format("K and V in {}, {} a token", row_type_name(kv.kv_type), bytes_text(kv.kv_bytes_per_token));
}

nlohmann::json line_json(const SpliceLine& line) {
  nlohmann::json moves = nlohmann::json::object();
  for (std::size_t i = 0; i < kSpliceMoves; ++i) {
    const SpliceFigure& figure = line.figures[i];
    nlohmann::json move = {{"ms", spread_json(figure.ms)}, {"prefill_ratio", figure.prefill_ratio}};
    if (figure.gb_per_s > 0.0) {
      move["gb_per_s"] = figure.gb_per_s;
      if (figure.copy_share) move["share_of_copy_bandwidth"] = spread_json(figure.copy_share->share);
    }
    moves[kMoveNames[i].key] = std::move(move);
  }
  return {{"n_tokens_asked", line.n_asked},
          {"n_tokens", line.n_tokens},
          {"n_blocks", line.n_blocks},
          {"n_bytes", line.n_bytes},
          {"moves", std::move(moves)}};
}

nlohmann::json kv_json(const KvSplice& kv) {
  nlohmann::json lines = nlohmann::json::array();
  for (const SpliceLine& line : kv.lines) lines.push_back(line_json(line));
  nlohmann::json json = {{"kv_type", row_type_name(kv.kv_type)},
                         {"kv_bytes_per_token", kv.kv_bytes_per_token},
                         {"spans", std::move(lines)}};
  if (kv.stall) {
    json["decode_stall"] = {{"n_tokens", kv.stall->n_tokens},
                            {"saving_tokens_per_s", spread_json(kv.stall->saving_tokens_per_s)},
                            {"plain_tokens_per_s", spread_json(kv.stall->plain_tokens_per_s)},
                            {"slowdown", spread_json(kv.stall->slowdown)}};
  }
  return json;
}

// One curve per move, over the spans.
LinePlot plot_of(const KvSplice& kv, std::string title, std::string y_label, std::span<const SpliceMove> moves,
                 double (*value)(const SpliceFigure&)) {
  LinePlot plot{.title = std::move(title),
                .x = {.label = "span, tokens", .is_log = true},
                .y = {.label = std::move(y_label), .is_log = true}};
  for (const SpliceMove move : moves) {
    LinePlot::Series series{.name = std::string(splice_move_text(move)), .points = {}};
    for (const SpliceLine& line : kv.lines) {
      series.points.push_back({static_cast<double>(line.n_tokens), value(line.figure(move))});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

void add_plots(HtmlPage& page, const KvSplice& kv) {
  constexpr std::array kTimes = {SpliceMove::kSaveEager,      SpliceMove::kSaveBehind, SpliceMove::kRecallRam,
                                 SpliceMove::kRecallRamMoved, SpliceMove::kRecallDisk, SpliceMove::kPrefill};
  constexpr std::array kRatios = {SpliceMove::kRecallRam, SpliceMove::kRecallRamMoved, SpliceMove::kRecallDisk,
                                  SpliceMove::kSaveAndRecall, SpliceMove::kBehindAndRecall};
  constexpr std::array kRates = {SpliceMove::kSaveEager, SpliceMove::kSaveKept, SpliceMove::kRecallRam,
                                 SpliceMove::kRecallRamMoved, SpliceMove::kRecallDisk};
  const std::string type = fmt::format("K and V in {}", row_type_name(kv.kv_type));
  page.add_plot(plot_of(kv, fmt::format("Save, recall and re-prefill ({})", type), "time, ms", kTimes,
                        [](const SpliceFigure& figure) { return figure.ms.median; }));
  page.add_plot(plot_of(kv, fmt::format("How many times as long re-prefill takes ({})", type), "times as long", kRatios,
                        [](const SpliceFigure& figure) { return figure.prefill_ratio; }));
  page.add_plot(plot_of(kv, fmt::format("Bytes moved per second ({})", type), "GB/s", kRates,
                        [](const SpliceFigure& figure) { return figure.gb_per_s; }));
}

}  // namespace

std::string_view splice_move_key(SpliceMove move) { return kMoveNames[static_cast<std::size_t>(move)].key; }
std::string_view splice_move_text(SpliceMove move) { return kMoveNames[static_cast<std::size_t>(move)].text; }

std::string splice_text(const SpliceReport& report) {
  std::string text = machine_text(report.machine, report.peak, report.beaten);
  text += fmt::format("{}, {} threads, blocks of {} tokens, spans behind {} tokens\n", report.model, report.n_threads,
                      report.block_size, report.n_context);
  for (const KvSplice& kv : report.kv_types) {
    text += fmt::format("\n{}\n\n{}", kv_text(kv), table_of(kv).render());
    if (kv.stall) text += "\n" + stall_text(*kv.stall);
  }
  return text + "\n" + std::string(kHowToReadSplice);
}

Status write_splice_json(const std::filesystem::path& path, const SpliceReport& report) {
  nlohmann::json kv_types = nlohmann::json::array();
  for (const KvSplice& kv : report.kv_types) kv_types.push_back(kv_json(kv));
  return write_json(path, {{"bench", "splice"},
                           {"machine", machine_json(report.machine, report.peak, report.beaten)},
                           {"model", report.model},
                           {"n_threads", report.n_threads},
                           {"n_context", report.n_context},
                           {"block_size", report.block_size},
                           {"kv_types", std::move(kv_types)}});
}

Status write_splice_html(const std::filesystem::path& path, const SpliceReport& report) {
  HtmlPage page("ebb bench splice: save, recall and re-prefill");
  page.add_paragraph(fmt::format("{}, {} threads, blocks of {} tokens, spans behind {} tokens.", report.model,
                                 report.n_threads, report.block_size, report.n_context));
  page.add_paragraph(machine_text(report.machine, report.peak, report.beaten));
  for (const KvSplice& kv : report.kv_types) {
    page.add_heading(kv_text(kv));
    add_plots(page, kv);
    if (kv.stall) page.add_paragraph(stall_text(*kv.stall));
    page.add_preformatted(table_of(kv).render());
  }
  page.add_paragraph(kHowToReadSplice);
  return page.write(path);
}

}  // namespace ebb
