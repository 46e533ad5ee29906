// The splice bench: what it costs to save a span, to recall it and to compute it again, on the same session.
//
// It drives the real path: a session of the engine, its turns and its cold store; every recall is verified as in any
// turn (law 2), and in the first round its bytes are held against those that were evicted. Before each move of bytes
// the processor's caches are swept, since what is recalled was not used for long. Bytes are held against what the
// machine copied in the same round, times against a forward pass over the same tokens at the same place. Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/machine.h"
#include "bench/peak.h"
#include "bench/statistics.h"
#include "cache/frame_layout.h"

namespace ebb {

struct SpliceOptions {
  // A GGUF file; empty: the random one of 1B parameters in `quant`.
  std::filesystem::path model;
  std::string quant = "q4_k";
  std::filesystem::path cache_folder;
  // Where the disk tier's files lie while it runs, in a folder of their own; empty: cache_folder.
  std::filesystem::path disk_folder;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  // Tokens; each is rounded up to whole blocks, since blocks are what is evicted. EVOKE's sizes.
  std::vector<std::int32_t> spans = {20, 64, 320, 640, 1280};
  std::vector<RowType> kv_types = {RowType::kF16, RowType::kQ8_0};
  // Hot tokens before the span; rounded up to whole blocks too.
  std::int32_t n_context = 512;
  std::int32_t n_rounds = 9;
  // Passes take thousands of times as long as recalls, and spread less.
  std::int32_t n_prefills = 3;
  // Tokens of one round of the decode stall; 0: it is not measured.
  std::int32_t n_decode = 192;
  std::int32_t n_decode_rounds = 5;
  std::int32_t block_size = 64;
  // Without: what was moved before is partly still in the processor's caches, and recalls look faster than they are.
  bool sweeps_caches = true;
  PeakSizes peak_sizes;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// In the order of the report.
enum class SpliceMove : std::uint8_t {
  kSaveEager,        // frames -> sealed record -> RAM tier, waited for
  kSaveBehind,       // the same, behind: what the computing thread spends
  kSaveKept,         // the same, behind: until the RAM tier has it
  kRecallRam,        // to the original position
  kRecallRamMoved,   // to the tail: keys turned to another anchor
  kRecallDisk,       // read from files that are in the page cache
  kSaveAndRecall,    // eager save, and recall from RAM
  kBehindAndRecall,  // what the computing thread spends on saving behind, and recall from RAM
  kPrefill,          // a forward pass over the same tokens at the same place
};
inline constexpr std::size_t kSpliceMoves = 9;
// "save_eager", and as a person reads it.
[[nodiscard]] std::string_view splice_move_key(SpliceMove move);
[[nodiscard]] std::string_view splice_move_text(SpliceMove move);

struct SpliceFigure {
  Spread ms;
  double gb_per_s = 0.0;                // of the span's frames, at the median; 0 where none are moved
  std::optional<PeakShare> copy_share;  // of what the probe of the same round copied; nothing where none are moved
  double prefill_ratio = 0.0;           // how many times as long re-prefill takes
};

struct SpliceLine {
  std::int32_t n_asked = 0;   // tokens
  std::int32_t n_tokens = 0;  // in whole blocks
  std::int32_t n_blocks = 0;
  std::size_t n_bytes = 0;            // of its frames
  std::vector<SpliceFigure> figures;  // by SpliceMove

  [[nodiscard]] const SpliceFigure& figure(SpliceMove move) const { return figures[static_cast<std::size_t>(move)]; }
};

// Decoding with what it computes saved behind, and with nothing saved, in rounds that alternate.
struct DecodeStall {
  std::int32_t n_tokens = 0;
  Spread saving_tokens_per_s;
  Spread plain_tokens_per_s;
  // How much longer it takes with saving, round by round: 0.02 is 2 %.
  Spread slowdown;
};

struct KvSplice {
  RowType kv_type = RowType::kF16;
  double kv_bytes_per_token = 0.0;  // with the frames' padding
  std::vector<SpliceLine> lines;
  std::optional<DecodeStall> stall;
};

struct SpliceReport {
  Machine machine;
  Peak peak;
  PeakBeaten beaten;
  std::string model;
  std::int32_t n_threads = 0;
  std::int32_t n_context = 0;
  std::int32_t block_size = 0;
  std::vector<KvSplice> kv_types;
};

// kOutOfBudget when the model was trained for fewer tokens than the context and twice the largest span.
Result<SpliceReport> run_splice(const SpliceOptions& options);

[[nodiscard]] std::string splice_text(const SpliceReport& report);
Status write_splice_json(const std::filesystem::path& path, const SpliceReport& report);
Status write_splice_html(const std::filesystem::path& path, const SpliceReport& report);

}  // namespace ebb
