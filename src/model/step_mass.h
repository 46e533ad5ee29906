// StepMass: the attention mass of one step, of the rows that ask for it.
//
// Attention gives mass per row (AttentionTensors::mass); what policies want is what the rows of a sequence give together. So
// each layer's rows are reduced as soon as the layer has attended, and only that stays:
//
//   rows              [row][kv head][mass_stride]            of one layer at a time; the kernels write it
//   HeadMass          [sequence][layer][kv head][entry]      only of sequences that ask; an entry is one of the head's table
//   HeadSlices        the same by slice                      only of those that ask for slices (model/slice_mass.h)
//
// A sum adds rows in order, in float64, and is rounded once: neither the number of threads nor company in the batch
// changes its bits. It knows steps and tables, no policy. Thread rule: filled as AttentionStep is; add_rows() by all
// threads of an op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "model/attention.h"
#include "model/slice_mass.h"

namespace ebb {

// Of one head: [e] is that of entry e of its block table.
struct HeadMass {
  BlockTable table;
  // The sum over the rows that asked.
  std::span<const float> sum;
  // Over those of them that lie in the window: their sum and the largest.
  std::span<const float> window_sum;
  std::span<const float> window_max;
  // Of the last row.
  std::span<const float> last;
  // Of all these, by slice; empty where nobody asked.
  HeadSlices slices;
};

// Of a step.
struct HeadPlace {
  std::size_t sequence = 0;
  LayerIndex layer;
  HeadIndex head;
};

class StepMass {
 public:
  // Forgets everything.
  void clear();
  // Room for the sums of a step, all 0; the sequences' n_mass_rows say who asks.
  void begin(const AttentionStep& step);
  // Room for the rows of one layer, for AttentionTensors::mass. Grows and never shrinks.
  void reserve_rows(const AttentionStep& step);
  [[nodiscard]] float* rows() { return rows_.data(); }
  // For AttentionTensors::slices.
  [[nodiscard]] SliceMass* slices(const AttentionStep& step) { return step.asks_slices() ? &slices_ : nullptr; }

  // Sums the rows of a layer. Call from threads ith = 0..n_threads-1 of one op, after attend() of the layer.
  void add_rows(const AttentionStep& step, LayerIndex layer, std::int32_t ith, std::int32_t n_threads);
  // Sums that were computed elsewhere, n_parts of each entry of the table, or of more entries. All four of
  // HeadMass are that: whoever wants other than sums of composed attention asks for a single row. The slices that
  // were asked for are as many as n_parts, or a part of them.
  void set(const AttentionStep& step, const HeadPlace& place, std::span<const float> sums, std::int32_t n_parts);

  // Empty where nobody asked.
  [[nodiscard]] HeadMass head(const AttentionStep& step, std::size_t sequence, LayerIndex layer, HeadIndex head) const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  [[nodiscard]] std::size_t slot(std::size_t sequence, LayerIndex layer, HeadIndex head) const;
  [[nodiscard]] std::span<const float> part(const std::vector<float>& all, std::size_t slot) const;

  std::int32_t n_layers_ = 0;
  std::int32_t n_kv_heads_ = 0;
  std::vector<float> rows_;
  std::vector<float> sums_;
  std::vector<float> window_sums_;
  std::vector<float> window_maxima_;
  std::vector<float> last_;
  SliceMass slices_;
  std::vector<std::size_t> begins_;  // [sequence][layer][head] and the end: where a head's sums begin
};

// What a sequence's step gave, for whoever notes it; while the step's tables stand.
class SequenceMass {
 public:
  SequenceMass(const StepMass& mass, const AttentionStep& step, std::size_t sequence)
      : mass_(mass), step_(step), sequence_(sequence) {}

  [[nodiscard]] std::int32_t n_layers() const { return step_.n_layers; }
  [[nodiscard]] std::int32_t n_kv_heads() const { return step_.n_kv_heads; }
  // The positions of the rows that asked.
  [[nodiscard]] Span queries() const {
    const SequenceRows& rows = step_.sequences[sequence_];
    const Position end = rows.first + rows.n_rows;
    return {end - rows.n_mass_rows, end};
  }
  // How many of them, the last, lie in the window.
  [[nodiscard]] std::int32_t n_window_rows() const { return step_.sequences[sequence_].n_window_rows; }
  [[nodiscard]] HeadMass head(LayerIndex layer, HeadIndex head) const {
    return mass_.head(step_, sequence_, layer, head);
  }

 private:
  const StepMass& mass_;
  const AttentionStep& step_;
  std::size_t sequence_;
};

}  // namespace ebb
