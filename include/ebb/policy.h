// Areas: which blocks of a KV cache leave, layer by layer and pass by pass, from plain arrays; for caches of any runtime.
//
// A layer's table is a start area that never leaves, an evictable area whose blocks compete by what attention gives them, and
// a recent area that is safe until it ages (the cache eviction of OpenVINO GenAI, with KVCrush, Adaptive R-KV and rotation).
// No engine and no model is needed, and nothing is moved: victims are named.
//
//   auto areas = ebb::api::Areas::make({.max_tokens = 672}, {.block_size = 32, .n_layers = 28}, n_prompt);
//   if (!areas.ok()) { ... areas.error().message ... }
//   auto registered = areas.value().register_scores(n_scheduled, scores_by_layer);   // after every pass, prefill included
//   auto evicted = areas.value().evict();                                           // and then this
//   for (const ebb::api::AreasEviction& of_layer : evicted.value()) { ... of_layer.victims ... }
//
// Thread rule: one thread at a time for an Areas; the functions from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "ebb/result.h"

namespace ebb::api {

// How the scores of several passes become one value for each token.
enum class Aggregation {
  kSum,          // added up
  kNormSum,      // added up, and divided by how many queries could see the token
  kAdaptiveRkv,  // the mean of the last passes; what is diverse stays beside what is looked at
};

// The pattern that KVCrush measures blocks against.
enum class CrushAnchor { kRandom, kZeros, kOnes, kMean, kAlternating };

struct CrushOptions {
  std::int32_t budget_blocks = 0;  // that are rescued at each eviction, within max_tokens; 0: none
  CrushAnchor anchor = CrushAnchor::kRandom;
  std::uint32_t rng_seed = 0;
};

struct AdaptiveRkvOptions {
  double attention_mass = 0.9;  // the share that the blocks chosen by score have together; 0..1
  std::int32_t n_passes = 8;    // whose mean is a token's value; at least 1
};

// Sizes are tokens, multiples of the block size.
struct AreasOptions {
  std::int32_t start_tokens = 32;
  std::int32_t recent_tokens = 128;
  std::int32_t max_tokens = 672;
  Aggregation aggregation = Aggregation::kNormSum;
  // The last queries of the prompt that give the first scores; 0: all of them.
  std::int32_t n_window_queries = 8;
  CrushOptions crush;
  AdaptiveRkvOptions adaptive;
  // What the original does where that differs from what it means to do, for comparisons: docs/policy_replay.md.
  bool upstream = false;
};

struct AreasShape {
  std::int32_t block_size = 32;
  std::int32_t n_layers = 1;
};

// Of one layer; numbers of blocks in its table as it was before, the start area included, ascending.
struct AreasEviction {
  std::vector<std::int32_t> victims;
  std::vector<std::int32_t> rescued;  // would have left, but for KVCrush
};

// One sequence. An error leaves it as it was, but for diversity, which each evict() forgets.
class Areas {
 public:
  struct State;
  // kInvalidArgument for areas of nothing, a max_tokens that leaves nothing to choose from, and a prompt of fewer than 1.
  static Result<Areas> make(const AreasOptions& options, const AreasShape& shape, std::int32_t n_prompt);
  ~Areas();
  Areas(Areas&&) noexcept;
  Areas& operator=(Areas&&) noexcept;
  // A sequence of its own: one who may take tokens back copies before the pass and goes on from the copy.
  [[nodiscard]] Result<Areas> copy() const;

  // The last queries of a pass of n_scheduled tokens that its scores should be the sum of.
  [[nodiscard]] std::int32_t count_queries(std::int32_t n_scheduled) const;
  // After each pass of n_scheduled tokens. By layer, for each token then in the cache: the attention that those queries gave it,
  // summed over heads. `skipped`: blocks that a sparse pass did not look at, ascending, whose tokens the scores leave out. With
  // the first scores kInvalidArgument for sizes that are no multiples of the block size too.
  Result<Done> register_scores(std::int32_t n_scheduled, std::span<const std::vector<float>> scores,
                               std::span<const std::int32_t> skipped = {});
  // With kAdaptiveRkv: of how many tokens n behind the start area the pass to come has to bring diversity; 0: of none.
  [[nodiscard]] std::int32_t wanted_diversity(std::int32_t n_scheduled) const;
  // Once for each layer before evict(): [n / block_size, n], how unlike each block's tokens are to each token.
  Result<Done> register_diversity(std::int32_t layer, std::span<const float> diversity);
  // By layer; as many blocks in each, mostly none. The pass that ends the prompt never evicts; later ones leave at most
  // max_tokens_after_eviction().
  Result<std::vector<AreasEviction>> evict();
  // The sequence was preempted, and all of its n_prompt tokens are computed again.
  Result<Done> reset(std::int32_t n_prompt);

  // Of all passes, and those of them that are still cached.
  [[nodiscard]] std::int32_t n_processed() const;
  [[nodiscard]] std::int32_t n_cached() const;
  [[nodiscard]] std::int32_t max_tokens_after_eviction() const;

 private:
  explicit Areas(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// KVCrush's choice alone: which of `victims` (ascending numbers of blocks) stay. `sums`: what attention gave each token of all
// blocks that compete. kRandom takes block_size outputs of the generator, which belongs to the sequence. kInvalidArgument for
// victims that are no blocks and sums that are no whole blocks or no numbers.
Result<std::vector<std::int32_t>> rescue_blocks(std::span<const double> sums, std::int32_t block_size,
                                                std::span<const std::int32_t> victims, const CrushOptions& options,
                                                std::mt19937& random);

// A block that outlives an eviction behind a hole: its keys are turned back by n_tokens = (from - to) * block_size positions.
struct BlockShift {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t n_tokens = 0;
};

// Of a table of n_blocks, a partly filled last one included, without `victims` (ascending). kInvalidArgument for victims that
// are no blocks, and for a shift beyond a rotation table of n_rows. The next token then stands at the number of cached tokens.
Result<std::vector<BlockShift>> find_shifts(std::int32_t n_blocks, std::span<const std::int32_t> victims,
                                            std::int32_t block_size, std::int32_t n_rows);

// Turns (x, y) = (key[j], key[j + half_dim]) back by i blocks: (x * cos - y * negative_sin, x * negative_sin + y * cos).
struct RotationTable {
  std::int32_t n_rows = 0;
  std::int32_t half_dim = 0;
  std::vector<float> cos;           // [n_rows, half_dim]
  std::vector<float> negative_sin;  // [n_rows, half_dim]
};

// For plain rotary embeddings of whole heads in halves. kInvalidArgument unless theta is positive and head_dim even.
Result<RotationTable> make_rotation_table(std::int32_t n_rows, std::int32_t block_size, std::int32_t head_dim,
                                          double theta = 10000.0);

}  // namespace ebb::api
