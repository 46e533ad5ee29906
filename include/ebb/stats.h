// Counters. Honest ones: every token of a turn is counted once, by where its K and V came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ebb::api {

// Tokens of one turn, as they stood when its first token was sampled; the first eight are disjoint and are all there
// are.
struct TurnStats {
  std::int32_t n_hot_already = 0;
  std::int32_t n_partly_hot = 0;            // hot already, in some heads only: where a policy chooses by head or layer
  std::int32_t n_shared = 0;                // in frames of another session, without a copy
  std::int32_t n_recalled_exact = 0;        // byte for byte, without a forward pass
  std::int32_t n_recalled_approximate = 0;  // the same, turned to other rotary positions
  std::int32_t n_recomputed = 0;
  std::int32_t n_holes = 0;  // evicted, and seen by this turn in no head
  std::int32_t n_new = 0;    // of the prompt
  std::int32_t n_generated = 0;
  std::int32_t n_evicted_blocks = 0;
  // The budget that was in force while the prompt was computed and from then on, and the most that was hot at once.
  std::int32_t prompt_budget_tokens = 0;
  std::int32_t prompt_peak_tokens = 0;
  std::int32_t reply_budget_tokens = 0;
  std::int32_t reply_peak_tokens = 0;
  double recall_ms = 0.0;
  double prefill_ms = 0.0;
  double decode_ms = 0.0;
};

// Since the session began.
struct SessionStats {
  std::int32_t n_tokens = 0;
  std::int32_t n_hot_tokens = 0;
  std::int32_t budget_tokens = 0;
  std::int32_t peak_hot_tokens = 0;
  std::int64_t n_evicted_blocks = 0;
  std::int64_t n_recalled_blocks = 0;
  std::int64_t n_recomputed_blocks = 0;
  std::int64_t n_missed_recalls = 0;  // saved once, and no longer to be had
  std::int64_t n_moved_blocks = 0;
  // Moved blocks whose keys were quantised again (q8_0, kivi4), which loses more than f16 does.
  std::int64_t n_requantised_blocks = 0;
  std::int64_t n_rebases = 0;
};

// One place of the cold store: "ram", "disk".
struct TierStats {
  std::string name;
  std::int64_t n_records = 0;
  std::size_t bytes = 0;
  std::size_t max_bytes = 0;
};

struct EngineStats {
  std::size_t weight_bytes = 0;
  std::size_t frame_bytes = 0;  // reserved for the KV budget and, with kivi4, for open blocks
  std::size_t compute_bytes = 0;
  std::vector<TierStats> tiers;  // of the cold store, the fastest first
  // What went wrong with the cold store, in words for people; empty when nothing did. Answers are right all the same.
  std::string store_error;
};

}  // namespace ebb::api
