// AreasSequence: one sequence's cache under the areas scheme: which blocks leave, layer by layer, pass by pass.
//
// After each pass, prefill included: register its scores, register diversity where it was asked for, evict. It sees scores and
// counts, never tensors; it moves no block, and takes each layer's table to be without the victims once it has named them.
// The pass that ends the prompt never evicts; every later one leaves at most config.max_tokens_after_eviction().
//
//   EBB_ASSIGN_OR_RETURN(AreasSequence sequence, AreasSequence::make(config, {.block_size = 16, .n_layers = 2}, n_prompt));
//   EBB_RETURN_IF_ERROR(sequence.register_scores({.n_scheduled = 1, .scores = scores_by_layer}));
//   EBB_ASSIGN_OR_RETURN(std::vector<AreasEviction> by_layer, sequence.evict());
//
// An error leaves the sequence as it was, but for diversity, which is forgotten. A copy is a sequence of its own: one who may
// take tokens back (drafts) copies before the pass and goes on from the copy. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/ids.h"
#include "policy/areas_config.h"
#include "policy/areas_scores.h"

namespace ebb {

struct AreasShape {
  std::int32_t block_size = 16;
  std::int32_t n_layers = 1;
};

struct AreasPass {
  std::int32_t n_scheduled = 1;  // tokens that the pass computed; at least 1
  // By layer, for each token in the cache after the pass: the attention that the last count_queries() queries gave it, summed
  // over heads; 0 everywhere where none of them count.
  std::span<const std::vector<float>> scores;
  // Blocks that a sparse pass did not look at, ascending; the scores leave their tokens out.
  std::span<const std::int32_t> skipped = {};
};

// Of one layer; numbers in the table as it was before, the start area included, ascending.
struct AreasEviction {
  std::vector<std::int32_t> victims;
  std::vector<std::int32_t> rescued;  // would have left, but for KVCrush

  friend bool operator==(const AreasEviction&, const AreasEviction&) = default;
};

class AreasSequence {
 public:
  // kInvalidArgument for what config.validate() refuses, and for a prompt of fewer than 1 token.
  static Result<AreasSequence> make(const AreasConfig& config, const AreasShape& shape, std::int32_t n_prompt);

  // The queries that the scores of the next pass should be the sum of.
  [[nodiscard]] std::int32_t count_next_queries(std::int32_t n_scheduled) const;
  // kInvalidArgument for scores of the wrong number, for those that are no numbers, and at first use for what
  // config.check_first_use() refuses.
  Status register_scores(const AreasPass& pass);

  // With ADAPTIVE_RKV: of how many tokens behind the start area the pass to come has to bring diversity, 0 for none. A layer's
  // is [n / block_size, n].
  [[nodiscard]] std::int32_t wanted_diversity(std::int32_t n_scheduled) const;
  // Once for each layer and call of evict(), which forgets it; only ADAPTIVE_RKV looks at it.
  Status register_diversity(LayerIndex layer, std::span<const float> diversity);

  // By layer; empty ones where nothing leaves, which is equally many blocks in all.
  Result<std::vector<AreasEviction>> evict();

  // The sequence was preempted: its cache is empty, and it is computed again from a prompt of n_prompt tokens, those among them
  // that it had generated. KVCrush's generator goes on, since it belongs to the sequence.
  Status reset(std::int32_t n_prompt);

  [[nodiscard]] const AreasConfig& config() const { return config_; }
  [[nodiscard]] const AreasShape& shape() const { return shape_; }
  // By all passes so far, and of those tokens the ones that left.
  [[nodiscard]] std::int32_t n_processed() const { return n_processed_; }
  [[nodiscard]] std::int32_t n_evicted() const { return n_evicted_; }
  [[nodiscard]] std::int32_t n_cached() const { return n_processed_ - n_evicted_; }
  [[nodiscard]] const LayerScores& layer(LayerIndex layer) const { return layers_[layer.index()]; }

 private:
  AreasSequence(const AreasConfig& config, const AreasShape& shape, std::int32_t n_prompt);

  [[nodiscard]] Result<CountedQueries> count_pass(const AreasPass& pass) const;
  [[nodiscard]] Status check_pass(const AreasPass& pass, const CountedQueries& queries) const;
  [[nodiscard]] std::int32_t n_start_blocks() const { return config_.start_tokens / shape_.block_size; }
  [[nodiscard]] std::vector<std::int32_t> rank_victims(std::span<const double> values) const;
  [[nodiscard]] AreasEviction choose_by_value(std::size_t layer, const BlockRange& range, std::mt19937& random) const;
  [[nodiscard]] Result<AreasEviction> choose_by_diversity(std::size_t layer, const BlockRange& range,
                                                          std::span<const float> diversity) const;

  AreasConfig config_;
  AreasShape shape_;
  std::int32_t n_prompt_;
  std::int32_t n_processed_ = 0;
  std::int32_t n_evicted_ = 0;
  std::int32_t n_window_queries_ = 0;  // that are counted so far, at most config_.n_window_queries
  bool could_generate_ = false;        // before the last pass
  std::vector<LayerScores> layers_;
  std::vector<std::optional<std::vector<float>>> diversity_;  // by layer
  std::mt19937 random_;
};

}  // namespace ebb
