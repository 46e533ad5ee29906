// StepReliances: which earlier slices the rows of one sequence's steps rely on.
//
// A slice is a run of n_slice_tokens positions. A row relies on an earlier slice when one of its query heads, in any layer but the
// last, gives it more than kReliance of its attention: then the row's K and V in later layers hold something of that slice, and are
// not what they would be beside another. The last layer's attention makes no K and V. The first token is not counted: heads that
// look for nothing rest on it, whatever it says.
//
// What is known is a set: neither threads, nor tiles, nor the cut into steps changes it. It knows steps and tables, no session.
// Thread rule: add() by all threads of an op; else one thread at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/ids.h"

namespace ebb {

// More: what a row took little from is forgotten, and its K and V are believed though that has changed. Less: rows rely on
// what they merely see, and much is computed again for nothing (docs/decisions/0033-fresh-edits.md).
inline constexpr float kReliance = 0.4F;

// Slice `of` has rows that rely on slice `on`; counted from the session's first position.
struct SliceReliance {
  std::int32_t of = 0;
  std::int32_t on = 0;

  friend auto operator<=>(const SliceReliance&, const SliceReliance&) = default;
};

class StepReliances {
 public:
  explicit StepReliances(std::int32_t block_size) : n_slice_tokens_(slice_tokens(block_size)) {}
  // Of blocks of so many tokens: 16, else 8, where that divides them; else they are one slice each.
  [[nodiscard]] static std::int32_t slice_tokens(std::int32_t block_size);

  [[nodiscard]] std::int32_t n_slice_tokens() const { return n_slice_tokens_; }
  [[nodiscard]] std::int32_t slice_at(Position position) const { return position.value() / n_slice_tokens_; }

  // Forgets what steps gave: those that ended with an error too.
  void begin() { found_.clear(); }
  void add(SliceReliance found);
  // Of the steps since begin(), ascending, each once.
  [[nodiscard]] std::vector<SliceReliance> take();

 private:
  std::int32_t n_slice_tokens_;
  std::mutex mutex_;
  std::vector<SliceReliance> found_;
};

}  // namespace ebb
