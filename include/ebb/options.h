// What can be set: of an engine once, of each session, of each reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ebb::api {

struct EngineOptions {
  // A GGUF file.
  std::string model;
  // "cpu", or a device as ggml names it ("CUDA0").
  std::string device = "cpu";
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  // Type of K and V in frames: f16, bf16, f32, q8_0 or kivi4 (4 bits, and f16 for the block that is written to; on the
  // CPU only).
  std::string kv_type = "f16";
  // Tokens of a block, 1 to 128 (kivi4: 8 to 128): the unit that is named, evicted and recalled. 0: 64, and of KV budgets below 640
  // tokens 32, below 320 16.
  std::int32_t block_size = 0;
  // An embedding model's GGUF file (bge, MiniLM), for the selector "embedding"; empty: there is none.
  std::string embedding_model;
  // Memory for what is kept of evicted blocks' keys, and of their sentences where there is an embedding model, of all sessions together:
  // recall finds by it what shares no word with a question.
  // Blocks beyond it, and with 0 all, are found by words alone.
  std::size_t digest_bytes = std::size_t{256} << 20;
  // Tokens that may be hot, of all sessions together. A law: never more. 0: the trained context, as far as memory
  // allows.
  std::int32_t kv_budget_tokens = 0;
  // As many while a prompt is computed; frames are reserved for them. What is beyond the budget leaves before the reply's first
  // token is computed. 0: as between prompts; else no less than the budget.
  std::int32_t kv_prompt_budget_tokens = 0;
  // How layers or heads share the budget, one of them: a budget file (docs/budget_file.md), or a weight for each layer. Both
  // empty: as the policy says.
  std::string kv_budgets_file;
  std::vector<double> kv_layer_shares;
  // With kivi4, sessions that may be in the midst of a block at once, each with that block in f16 on top of the budget.
  std::int32_t n_open_blocks = 16;
  // Which blocks leave first: a policy's name, with parameters if it takes any ("snapkv:window=16").
  std::string eviction = "layer_defensivekv";
  // Where evicted blocks go. Without RAM and disk they are computed again when they are recalled.
  std::size_t ram_bytes = std::size_t{1} << 30;
  // A folder of this process alone; empty: no disk. Records in it outlive the process.
  std::string disk_folder;
  std::uint64_t disk_max_bytes = std::uint64_t{16} << 30;
  // The share of the model that is loaded, 0..1, from the thread that opens. False cancels.
  std::function<bool(float)> progress;
};

// What remains of an evicted block.
enum class Remains { kNothing, kTokens, kBytes };

// Which rotary positions recalled blocks carry. All but kOriginal move blocks, which is approximate and counted so.
enum class RecallPlace { kOriginal, kCompacted, kTail };

// What survivors of an eviction do: stay where they are, or close up as shifting caches do, in each head by what left that head
// (approximate, for comparison).
enum class Removal { kSparse, kCompact };

struct SessionOptions {
  // Tokens that may be hot; 0: the engine's whole budget, shared by the sessions that live at once.
  std::int32_t kv_budget_tokens = 0;
  // While a prompt is computed; 0: the engine's. The session's own budget: none beside it.
  std::int32_t kv_prompt_budget_tokens = 0;
  // As those of EngineOptions; both empty: the engine's.
  std::string kv_budgets_file;
  std::vector<double> kv_layer_shares;
  // Which blocks leave first, as EngineOptions::eviction; empty: as the engine's.
  std::string eviction;
  // Shares of the budget: evict at `high`, down to `low`. Both 1: only what is needed, when it is.
  double high_watermark = 1.0;
  double low_watermark = 1.0;
  // First tokens that leave last, last tokens that leave last, first tokens that never leave.
  std::int32_t sink_tokens = 4;
  std::int32_t recent_tokens = 64;
  std::int32_t pinned_tokens = 0;
  Remains remains = Remains::kBytes;
  RecallPlace recall_place = RecallPlace::kOriginal;
  // Of each recalled block so many first tokens are computed again where it lies, with what is hot before it in sight; 0 to 1024.
  // Approximate; what is saved of the block stays as it was.
  std::int32_t renewed_tokens = 0;
  Removal removal = Removal::kSparse;
  // What rows of a prompt need not look at, which is faster and approximate: "none", "tri_shape:start=128,recent=1920" or
  // "xattention:threshold=0.8" (`ebb run --help` has their parameters). Empty: none.
  std::string sparse_prompt;
  // Go on past the trained context, with approximate positions. False: the turn is refused.
  bool rebases = true;
  // Take blocks that other sessions of this engine, or earlier ones over the same disk, computed for the same tokens.
  bool adopts = true;
};

struct ReplyOptions {
  // Negative: until the model ends.
  std::int32_t max_tokens = -1;
  // 0: greedy.
  float temperature = 0.8F;
  std::int32_t top_k = 40;
  float top_p = 0.95F;
  float min_p = 0.05F;
  std::optional<std::uint32_t> seed;
  std::vector<std::string> stop;
  // GBNF; empty: none.
  std::string grammar;
  // Evicted blocks to recall at most before the prompt is computed, and of a long one again before its last tokens and behind them; none: as
  // many as hold 512 tokens, eight of 64.
  std::optional<std::int32_t> max_recalled_blocks;
  // Milliseconds that a turn waits for them: no read is begun that would end later, as fast as the first eight came; 0: as long as it takes. kInvalidArgument below 0.
  double max_recall_ms = 2000.0;
  // Who chooses them, as `ebb run --selectors` has it: "fused", "lexical+embedding", "none". kInvalidArgument for others.
  std::string selectors = "fused";
};

}  // namespace ebb::api
