// The speed bench: prompt and decode speed of ebb and libllama on the same model, at several depths, in one run; and of other runtimes'
// llama-bench, where some are given, in the same rounds.
//
// Every figure is held against its limit: the bytes that a pass must read, as GB/s and as a share of what this machine's memory gave in
// the same round, its operations as a share of the multiply-adds that the processor did then (bench/peak.h), and against the peer. It
// evicts nothing.
// Thread rule: one run at a time.
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

struct SpeedOptions {
  // A GGUF file to measure; empty: random ones, one per shape and quant (bench/speed_model.h).
  std::filesystem::path model;
  std::vector<std::string> quants = {"q4_k", "q8_0"};
  std::vector<std::string> shapes = {"1b"};
  std::filesystem::path cache_folder;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  // Resident tokens before what is measured; put in order and made unique.
  std::vector<std::int32_t> depths = {0, 2048, 8192};
  std::int32_t n_rounds = 5;
  std::int32_t n_prompt = 512;
  // Fewer: a round is short and noisy. More: the depth that is measured drifts.
  std::int32_t n_decode = 32;
  RowType kv_type = RowType::kF16;
  std::int32_t block_size = 64;
  bool use_repacked = true;
  // As bench/peer_bench.h takes them: PROGRAM or NAME=PROGRAM.
  std::vector<std::string> peer_benches;
  // Cores that other processes want all the time, during the rounds (bench/busy_cores.h).
  std::int32_t n_busy = 0;
  PeakSizes peak_sizes;
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// One side's figures of one line.
struct SpeedSide {
  Spread tokens_per_s;
  double gb_per_s = 0.0;  // of the bytes that a pass must read, at the median
  double gflop_per_s = 0.0;
  // Of what the probe of the same round read, and multiplied in numbers of the weights' kind.
  std::optional<PeakShare> read_share;
  std::optional<PeakShare> multiply_share;
};

struct SpeedLine {
  std::string test;  // "prompt" or "decode"
  std::int32_t n_tokens = 0;
  std::int32_t depth = 0;
  SpeedSide ebb;
  SpeedSide llama;
  // ebb's speed over libllama's, round by round.
  Spread ratio;
  // By ModelSpeed::peers; nothing where that peer cannot go to this depth.
  std::vector<std::optional<SpeedSide>> peers;
  // Who of libllama and the peers is the quickest, and ebb's speed over its, round by round.
  std::string best_peer;
  Spread best_ratio;
  // The largest difference of the logits of the last token, as a share of their range: both did the same work.
  double logits_difference = 0.0;
};

struct SpeedPeer {
  std::string name;
  std::string program;
  std::string build;  // "3fb1a5c (build 4201)"; empty where it measured nothing
};

struct ModelSpeed {
  std::string model;
  std::int64_t n_parameters = 0;
  std::size_t weight_bytes = 0;
  double kv_bytes_per_token = 0.0;
  MultiplyType multiply_type = MultiplyType::kF32;
  std::string ebb;  // how each side was set up
  std::string llama;
  std::vector<SpeedPeer> peers;
  std::vector<SpeedLine> lines;
};

struct SpeedReport {
  Machine machine;
  Peak peak;
  PeakBeaten beaten;
  std::int32_t n_threads = 0;
  std::int32_t n_busy = 0;
  std::vector<ModelSpeed> models;
};

Result<SpeedReport> run_speed(const SpeedOptions& options);

[[nodiscard]] std::string speed_text(const SpeedReport& report);
Status write_speed_json(const std::filesystem::path& path, const SpeedReport& report);
Status write_speed_html(const std::filesystem::path& path, const SpeedReport& report);

}  // namespace ebb
