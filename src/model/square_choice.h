// SquareChoice: which blocks of keys each block of a sparse prompt's rows looks at, by head (XAttention, Xu et al. 2025).
//
// A square is a block of rows by a block of keys. What its attention would be is told by the antidiagonals of its small squares
// of `stride` rows by `stride` keys: the last row with the first key, and so on, added up. For a block of rows at b:
//
//   small    s[g][j] = scale / stride * the sum over i < stride of q[b + (g + 1) stride - 1 - i] . k[j stride + i]
//   weight   softmax of s[g] over the small squares at or before row group g
//   square   the sum of its weights, over the query heads of a KV head
//   looks at the first block of the table and its own, then the best until they have `threshold` of the sum (base/keep_share.h)
//
// The query heads of a KV head look at the same, since attention reads a block of keys once for all of them; where each has its
// own this is the published scheme. A block of rows is sparse where all of it is rows of one step and its sight says so
// (cache/sight.h); layers with a window look at all of it. Every sum has one order: threads, placement, company and the cut into
// steps change no choice.
//
// Cost: 1 / (2 stride) of the attention of all squares, and 4 / stride^2 of its exponentials.
//
// It knows steps, tables and frames, no policy. Thread rule: begin() by one thread; choose() by all threads of an op behind
// write_kv(); looks_at() by any thread once they have returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "model/attention.h"

namespace ebb {

class SquareChoice {
 public:
  // Room for the choices of a step, one layer at a time, of n_threads threads. Grows and never shrinks.
  void begin(const AttentionShape& shape, const AttentionStep& step, std::int32_t n_threads);
  void choose(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer, const AttentionTensors& tensors,
              AttentionScratch& scratch, std::int32_t ith, std::int32_t n_threads);

  // Whether rows of any sequence, or of this one, leave anything out.
  [[nodiscard]] bool is_asked() const { return thread_floats_ > 0; }
  [[nodiscard]] bool asks(std::size_t sequence) const { return sequences_[sequence].n_blocks > 0; }
  // Whether the row at this position looks at entry `entry` of its table, of the layer that was chosen for last.
  [[nodiscard]] bool looks_at(std::size_t sequence, HeadIndex head, Position row, std::int32_t entry) const;
  [[nodiscard]] std::size_t bytes() const { return looks_.size() + floats_.size() * sizeof(float); }

 private:
  // The blocks of a sequence's rows that are sparse: they follow one another.
  struct Asked {
    Position first;
    std::int32_t n_blocks = 0;
    std::size_t begin = 0;  // in looks_, [head][block][n_entries_]
  };

  [[nodiscard]] Asked find_asked(const SequenceRows& rows) const;
  [[nodiscard]] std::size_t place(const Asked& asked, HeadIndex head, std::int32_t block) const;

  std::int32_t block_size_ = 0;
  std::int32_t n_kv_heads_ = 0;
  std::size_t n_entries_ = 0;  // of the longest table
  std::size_t thread_floats_ = 0;
  std::vector<Asked> sequences_;
  std::vector<std::uint8_t> looks_;
  std::vector<float> floats_;
};

}  // namespace ebb
