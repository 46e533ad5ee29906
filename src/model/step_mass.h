// StepMass: the attention mass of one step, summed over the rows that ask for it.
//
// Attention gives mass per row (AttentionTensors::mass); what policies want is mass per block. So each layer's rows are
// summed as soon as the layer has attended, and only the sums stay:
//
//   rows    [row][kv head][mass_stride]            of one layer at a time; the kernels write it
//   sums    [sequence][layer][kv head][entry]      only of sequences that ask; an entry is one of the head's table
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

namespace ebb {

// Attention mass that the block at a position received in one step.
struct BlockMass {
  Position begin;
  float mass = 0.0F;

  friend bool operator==(const BlockMass&, const BlockMass&) = default;
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

  // Sums the rows of a layer. Call from threads ith = 0..n_threads-1 of one op, after attend() of the layer.
  void add_rows(const AttentionStep& step, LayerIndex layer, std::int32_t ith, std::int32_t n_threads);
  // Sums that were computed elsewhere; at least as many as the table has entries.
  void set(std::size_t sequence, LayerIndex layer, HeadIndex head, std::span<const float> sums);

  // One sum for each entry of the head's table; empty where nobody asked.
  [[nodiscard]] std::span<const float> sums(std::size_t sequence, LayerIndex layer, HeadIndex head) const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  [[nodiscard]] std::size_t slot(std::size_t sequence, LayerIndex layer, HeadIndex head) const;
  [[nodiscard]] std::span<float> mutable_sums(std::size_t sequence, LayerIndex layer, HeadIndex head);

  std::int32_t n_layers_ = 0;
  std::int32_t n_kv_heads_ = 0;
  std::vector<float> rows_;
  std::vector<float> sums_;
  std::vector<std::size_t> begins_;  // [sequence][layer][head] and the end: where a head's sums begin
};

// The sums of a sequence added up over layers and KV heads, by block: every block that is hot anywhere, by rising position.
[[nodiscard]] std::vector<BlockMass> sum_by_block(const StepMass& mass, const AttentionStep& step,
                                                  std::size_t sequence);

}  // namespace ebb
