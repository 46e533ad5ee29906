// The areas scheme's configuration: a cache as start, evictable and recent areas (OpenVINO GenAI's cache eviction).
//
//   tokens of one layer's table, n in all, in blocks of B
//   [0, S)                      start area: never leaves
//   [S, (n/B)*B - R)            evictable area: whole blocks compete by their scores
//   [(n/B)*B - R, (n/B)*B)      recent area: safe while there, and ages into the evictable one
//   [(n/B)*B, n)                the block that is being written, if any
//
// Sizes are tokens. What has no meaning at all is refused when a configuration is checked, and what depends on the model's
// blocks and layers when the first scores arrive, as the original does. Thread rule: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ebb {

// How the scores of several passes become one value for each token.
enum class Aggregation : std::uint8_t {
  kSum,          // added up
  kNormSum,      // added up, and divided by how many queries saw the token
  kAdaptiveRkv,  // the mean of the last passes; blocks stay by their share of it, then by how unlike the others they are
};

// The pattern that KVCrush measures blocks against.
enum class CrushAnchor : std::uint8_t { kRandom, kZeros, kOnes, kMean, kAlternating };

// kNotFound names those that there are. ALTERNATE, the older name, is taken for ALTERNATING.
Result<Aggregation> find_aggregation(std::string_view name);
Result<CrushAnchor> find_crush_anchor(std::string_view name);
// As files name them: "NORM_SUM", "ALTERNATING".
[[nodiscard]] std::string_view aggregation_name(Aggregation aggregation);
[[nodiscard]] std::string_view crush_anchor_name(CrushAnchor anchor);

struct CrushConfig {
  std::int32_t budget_blocks = 0;  // that are rescued at each eviction; 0: none
  CrushAnchor anchor = CrushAnchor::kRandom;
  std::uint32_t rng_seed = 0;
};

struct AdaptiveRkvConfig {
  double attention_mass = 0.9;  // the share that the blocks chosen by score have together; 0..1
  std::int32_t n_passes = 8;    // whose mean is a token's value; at least 1
};

struct AreasConfig {
  std::int32_t start_tokens = 32;
  std::int32_t recent_tokens = 128;
  std::int32_t max_tokens = 672;
  Aggregation aggregation = Aggregation::kNormSum;
  bool applies_rotation = false;
  // The last queries of the prompt that give the first scores; 0: all of them.
  std::int32_t n_window_queries = 8;
  CrushConfig crush;
  AdaptiveRkvConfig adaptive;
  // What the original does, where it differs from what it means to do: rescued blocks stand outside the limit and are chosen
  // anew by every pass, short prompts end NORM_SUM with a window, and Adaptive R-KV is asked for diversity when no eviction
  // is due. For comparisons; a sequence may then stay above the limit, or end in an error.
  bool upstream = false;

  // What the original refuses at construction.
  [[nodiscard]] Status validate() const;
  // What it refuses when the first scores arrive. Only for what validate() has passed.
  [[nodiscard]] Status check_first_use(std::int32_t block_size, std::int32_t n_layers) const;
  // What is asked for and has no effect, in words for people.
  [[nodiscard]] std::vector<std::string> notes() const;

  [[nodiscard]] std::int32_t evictable_tokens() const { return max_tokens - start_tokens - recent_tokens; }
  // The most tokens that an eviction leaves: max_tokens and a block that is not full. `upstream` leaves crush.budget_blocks
  // blocks more, which the original's own answer does not say either.
  [[nodiscard]] std::int32_t max_tokens_after_eviction(std::int32_t block_size) const {
    return max_tokens + block_size - 1;
  }
};

// Numbers [begin, end) of blocks in a layer's table.
struct BlockRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  [[nodiscard]] std::int32_t n_blocks() const { return end - begin; }
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

// The evictable area of a cache of n_tokens, empty while n_tokens < max_tokens + block_size: nothing leaves before.
[[nodiscard]] BlockRange find_evictable(const AreasConfig& config, std::int32_t block_size, std::int32_t n_tokens);

}  // namespace ebb
