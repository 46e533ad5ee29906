// Cohorts: which sequences of a step attend together, because their block tables begin in the same frames.
//
// A tile holds the rows of one cohort (attention_plan.h), so that a block that several sessions use the frames of is read
// and unpacked once for all of them (Hydragen, arXiv 2402.05099; ChunkAttention, arXiv 2402.15220). Only sequences of one
// row, which decode, come together: more rows fill tiles of their own. Cohorts are found once per step, in the tables of
// one head; what members have in common in another is counted there (count_common). They know no session and no name, and
// change no bit of any result.
//
// Thread rule: found by the thread that fills the step, then read by all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_table.h"

namespace ebb {

struct AttentionStep;

class Cohorts {
 public:
  // `most`: members of a cohort.
  void find(const AttentionStep& step, std::int32_t most);

  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  // Indices into AttentionStep::sequences; every sequence is in one cohort.
  [[nodiscard]] std::span<const std::size_t> operator[](std::size_t cohort) const {
    const std::size_t begin = cohort == 0 ? 0 : ends_[cohort - 1];
    return std::span(sequences_).subspan(begin, ends_[cohort] - begin);
  }
  [[nodiscard]] std::size_t n_sequences() const { return sequences_.size(); }

 private:
  [[nodiscard]] std::size_t find_end(const AttentionStep& step, std::size_t begin, std::size_t most) const;

  std::vector<std::size_t> sequences_;
  std::vector<std::size_t> ends_;  // of each cohort, in sequences_
};

// The leading entries that are the same block in the same frame.
[[nodiscard]] std::size_t count_common(BlockTable a, BlockTable b);

}  // namespace ebb
