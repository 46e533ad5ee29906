// The concurrency bench: sessions that decode together, one row each in one graph, beside libllama's batch of as many
// sequences, in one run.
//
// All begin with the same system prompt, whose frames ebb's sessions share, and go on with a short history of their
// own. libllama runs twice, with one KV buffer for each sequence and with one for all; the faster is what ebb is held
// against. A round measures every number of sessions on every side, since machines drift: what is held against each
// other is of one round.
// Thread rule: one run at a time.
#pragma once

#include <array>
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
#include "policy/policy.h"

namespace ebb {

struct ConcurrencyOptions {
  std::filesystem::path model;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  // Put in order and made unique; 1 is added, since the others are held against it.
  std::vector<std::int32_t> counts = {1, 2, 4, 8, 16};
  std::int32_t n_rounds = 9;
  // Tokens of the system prompt, of each session's own history, and decoded by each session in a round.
  std::int32_t n_system = 256;
  std::int32_t n_own = 64;
  std::int32_t n_decode = 128;
  RowType kv_type = RowType::kF16;
  // What would choose if anything had to leave; what it asks for is noted.
  std::string policy{kDefaultPolicy};
  std::int32_t block_size = 64;
  PeakSizes peak_sizes;
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

enum class ConcurrencySide : std::uint8_t { kEbb, kSplit, kUnified };
inline constexpr std::size_t kConcurrencySides = 3;

struct ConcurrencyFigure {
  Spread tokens_per_s;                  // of all sessions together
  Spread speedup;                       // over one session of the same round
  double gb_per_s = 0.0;                // of the bytes that a step must read, at the median
  std::optional<PeakShare> read_share;  // of what the probe of the same round read
};

struct ConcurrencyLine {
  std::int32_t n_sessions = 0;
  std::array<ConcurrencyFigure, kConcurrencySides> sides;
  // ebb's speed over that of the faster libllama, round by round.
  Spread ratio;
  // The largest difference of the logits of every session's last token, as a share of their range: all did the same
  // work.
  double logits_difference = 0.0;
};

struct ConcurrencyReport {
  Machine machine;
  Peak peak;
  PeakBeaten beaten;
  std::string model;
  std::int32_t n_threads = 0;
  std::int32_t n_system = 0;
  std::int32_t n_own = 0;
  std::int32_t n_decode = 0;
  std::size_t weight_bytes = 0;
  double kv_bytes_per_token = 0.0;
  // Blocks of all sessions before the first round: what each sees, added up, and what the pool holds for them.
  std::int32_t n_seen_blocks = 0;
  std::int32_t n_pool_blocks = 0;
  std::array<std::string, kConcurrencySides> setups;
  std::vector<ConcurrencyLine> lines;
};

Result<ConcurrencyReport> run_concurrency(const ConcurrencyOptions& options);

[[nodiscard]] std::string concurrency_text(const ConcurrencyReport& report);
Status write_concurrency_json(const std::filesystem::path& path, const ConcurrencyReport& report);
Status write_concurrency_html(const std::filesystem::path& path, const ConcurrencyReport& report);

}  // namespace ebb
