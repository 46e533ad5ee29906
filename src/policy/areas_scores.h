// LayerScores: what one layer's attention gave each token behind the start area, over all passes so far.
//
//   tracked token i is the (S + i)-th token of the layer's table; it moves down when blocks before it leave
//
// A value is the accumulated sum, the sum divided by the token's counter, or the mean of the last passes. Counters say how
// many of the counted queries stood at or behind the token: those that could look at it. It knows no blocks' meaning and
// chooses nothing. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/adaptive_rkv.h"
#include "policy/areas_config.h"

namespace ebb {

// Where a pass stands in its sequence; tokens that were evicted count.
struct PassPlace {
  std::int32_t n_prompt = 0;
  std::int32_t n_processed = 0;  // before the pass
  std::int32_t n_scheduled = 0;  // by the pass
};

// How many of the pass's last queries its scores are the sum of, with a window of n_window queries before the prompt's end.
[[nodiscard]] std::int32_t count_queries(const PassPlace& place, std::int32_t n_window);

// How far a value reaches backwards: tokens before a looked-at one are kept with it. The original has it fixed.
inline constexpr std::size_t kPoolTokens = 7;

// The largest of each token's and the next six scores; at the end of as many as there are.
[[nodiscard]] std::vector<double> pool_ahead(std::span<const double> scores);

// What registering one pass needs to know besides its scores.
struct CountedQueries {
  std::int32_t n_window = 0;   // the configuration's
  std::int32_t n_in_pass = 0;  // that this pass counted
  std::int32_t n_total = 0;    // that the window has by now, this pass included
};

class LayerScores {
 public:
  explicit LayerScores(const AreasConfig& config);

  [[nodiscard]] std::int32_t n_tokens() const { return static_cast<std::int32_t>(sums_.size()); }
  // Accumulated, or, of ADAPTIVE_RKV, the pooled mean of the last passes.
  [[nodiscard]] const std::vector<double>& sums() const { return sums_; }
  // Zeros with ADAPTIVE_RKV, which has none.
  [[nodiscard]] const std::vector<std::int64_t>& counters() const { return counters_; }

  // Whether add() may follow: the vector is not shorter than what is tracked, and, where the configuration is `upstream`,
  // does not have fewer tokens than the window has queries.
  [[nodiscard]] Status check(std::size_t n_scores, const CountedQueries& queries) const;
  // Scores behind the start area; finite, at least one. Only for what check() has passed.
  void add(std::span<const float> scores, const CountedQueries& queries);

  // The sum of the values of each block of the range; the first tracked token is the first of block `n_start_blocks`.
  [[nodiscard]] std::vector<double> block_values(const BlockRange& range, std::int32_t n_start_blocks,
                                                 std::int32_t block_size) const;
  // Forgets the tokens of these blocks (ascending, behind the start area); all others keep their order.
  void remove(std::span<const std::int32_t> victims, std::int32_t n_start_blocks, std::int32_t block_size);

 private:
  void add_counters(std::size_t n_before, const CountedQueries& queries);

  Aggregation aggregation_;
  bool upstream_;
  std::vector<double> sums_;
  std::vector<std::int64_t> counters_;
  RecentPasses recent_;
};

}  // namespace ebb
