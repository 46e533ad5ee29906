// The sparse bench: what it costs and saves to decode under a small budget, by how blocks leave.
//
// Three ways, on the same tokens: nothing is evicted; survivors stay where they are (sparse: no work); survivors close
// up and are turned, as shifting caches do (compact). Speed is measured behind a long history, in rounds that alternate
// between the arms; what the eviction does to text is measured on another model, which can read. Blocks are saved
// behind in every arm, as sessions do. Thread rule: one run at a time.
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

struct SparseOptions {
  // A GGUF file whose speed is measured; empty: the random one of 1B parameters in `quant`.
  std::filesystem::path model;
  std::string quant = "q4_k";
  std::filesystem::path cache_folder;
  // A GGUF file that reads text; empty: perplexity and overlap are left out.
  std::filesystem::path text_model;
  // What it reads; empty: a text made of simple sentences.
  std::filesystem::path text_file;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  // Tokens that the session has when decoding begins; rounded up to whole blocks, put in order and made unique.
  std::vector<std::int32_t> depths = {2048, 8192};
  // Tokens that may be hot where something is evicted; those that are not below the depth are left out there.
  std::vector<std::int32_t> budgets = {128, 256, 512, 1024};
  std::int32_t n_rounds = 3;
  // Tokens that one arm decodes in a round.
  std::int32_t n_decode = 64;
  // Tokens of the text: read first, then scored one by one, then generated greedily.
  std::int32_t n_text_context = 2048;
  std::int32_t n_text_scored = 256;
  std::int32_t n_text_generated = 128;
  RowType kv_type = RowType::kF16;
  // Small: the smallest budget must hold at least four blocks.
  std::int32_t block_size = 16;
  PeakSizes peak_sizes;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

enum class SparseWay : std::uint8_t { kNothing, kSparse, kCompact };
// "no eviction", "sparse", "compact"
[[nodiscard]] std::string_view sparse_way_name(SparseWay way);

struct SparseArm {
  SparseWay way = SparseWay::kNothing;
  std::int32_t budget_tokens = 0;  // 0: no limit that matters

  // "sparse 128"
  [[nodiscard]] std::string name() const;
  friend bool operator==(const SparseArm&, const SparseArm&) = default;
};

struct SparseSpeed {
  SparseArm arm;
  Spread tokens_per_s;
  Spread over_nothing;                // its speed over that of no eviction, round by round
  std::optional<Spread> over_sparse;  // of compact: over sparse of the same budget
  std::int32_t peak_hot_tokens = 0;
  std::int64_t n_evicted_blocks = 0;  // in the rounds
  std::int64_t n_moved_blocks = 0;    // turned to other anchors in the rounds
  double kv_bytes = 0.0;              // of K and V that one token reads, mean
};

struct SparseDepth {
  std::int32_t n_tokens = 0;
  std::vector<SparseSpeed> arms;
};

struct SparseQuality {
  SparseArm arm;
  double perplexity = 0.0;  // per token
  double overlap = 0.0;     // of the words generated: Jaccard index with those of no eviction
  std::int32_t peak_hot_tokens = 0;
  std::int64_t n_evicted_blocks = 0;
};

struct SparseText {
  std::string model;
  std::string text;  // the file's name, or what was read instead
  std::int32_t n_context = 0;
  std::int32_t n_scored = 0;
  std::int32_t n_generated = 0;
  std::vector<SparseQuality> arms;
};

struct SparseReport {
  Machine machine;
  Peak peak;
  std::string model;
  std::int32_t n_threads = 0;
  std::int32_t block_size = 0;
  std::int32_t n_decode = 0;
  RowType kv_type = RowType::kF16;
  std::vector<SparseDepth> depths;
  std::optional<SparseText> text;
};

Result<SparseReport> run_sparse(const SparseOptions& options);
// The part on text alone.
Result<SparseText> read_sparse_text(const SparseOptions& options);

// No eviction, and both ways for each budget below n_tokens.
[[nodiscard]] std::vector<SparseArm> sparse_arms(const SparseOptions& options, std::int32_t n_tokens);
// Words that both texts have over words that either has; 1 where neither has any.
[[nodiscard]] double word_overlap(std::string_view a, std::string_view b);

[[nodiscard]] std::string sparse_text(const SparseReport& report);
Status write_sparse_json(const std::filesystem::path& path, const SparseReport& report);
Status write_sparse_html(const std::filesystem::path& path, const SparseReport& report);

}  // namespace ebb
