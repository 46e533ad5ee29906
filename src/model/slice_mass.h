// SliceMass: the attention mass of one step by slice, of the sequences that ask for slices.
//
// A slice is a run of a block's slots, all of one length; a block has SequenceRows::n_slices of them. Rows of masses by slice
// would be as large as all scores of a layer, so what rows give is added up while the layer attends, by any thread and in any
// order, in integers, whose sums have no order:
//
//   mass of a row and slice    f32: over slots in order, of the sum over the group's heads of p * 2^(m of the block - final m) * (1 / l)
//   added                      as int64 of units of 2^-42: a row's mass is rounded to one, which is 2.3e-13
//   result                     float of the sum, rounded once
//
//   this layer    [sequence][kv head][entry][slice]          int64 sums; the layer's end turns them into floats and 0 again
//   the step      [sequence][layer][kv head][entry][slice]   floats, 16 bytes a slice and head
//
// So neither threads, nor tiles, nor company in the batch change its bits. It knows steps and tables, no policy. Thread rule:
// add() by all threads of attend(); end_layer() by all threads of an op behind it; the rest by one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "model/attention.h"

namespace ebb {

// Of one head: slice j of entry e of its table is at [e * n_slices + j].
struct HeadSlices {
  std::int32_t n_slices = 0;
  std::span<const float> sum;
  std::span<const float> window_sum;
  std::span<const float> window_max;
  std::span<const float> last;
};

class SliceMass {
 public:
  void clear();
  // Room for the sums of a step, all 0.
  void begin(const AttentionStep& step);

  // What the rows of one tile gave an entry of a head, n_slices of each.
  struct Gift {
    std::size_t sequence = 0;
    LayerIndex layer;
    HeadIndex head;
    std::size_t entry = 0;
    std::span<const std::int64_t> sum;
    std::span<const std::int64_t> window_sum;
    std::span<const float> window_max;
    // Empty unless the last row of the sequence is one of them.
    std::span<const float> last;
    // No other tile has rows of the sequence that ask.
    bool is_alone = false;
  };
  void add(const Gift& gift);
  void end_layer(const AttentionStep& step, LayerIndex layer, std::int32_t ith, std::int32_t n_threads);
  // Sums that were computed elsewhere, as StepMass::set() takes them.
  void set(std::size_t sequence, LayerIndex layer, HeadIndex head, std::span<const float> sums);

  // Empty where nobody asked.
  [[nodiscard]] HeadSlices head(const AttentionStep& step, std::size_t sequence, LayerIndex layer,
                                HeadIndex head) const;
  [[nodiscard]] std::size_t bytes() const;

  // A mass below 2^9 in units of 2^-42: the lower bits of a sum whose last bit is such a unit, as doubles from 2^10 to 2^11 have.
  [[nodiscard]] static std::int64_t to_units(float mass) {
    constexpr double kUnitAtLastBit = 0x1.8p10;
    return std::bit_cast<std::int64_t>(double{mass} + kUnitAtLastBit) - std::bit_cast<std::int64_t>(kUnitAtLastBit);
  }

 private:
  [[nodiscard]] std::size_t slot(std::size_t sequence, LayerIndex layer, HeadIndex head) const;
  [[nodiscard]] std::size_t n_of(std::size_t slot) const { return begins_[slot + 1] - begins_[slot]; }

  std::int32_t n_layers_ = 0;
  std::int32_t n_kv_heads_ = 0;
  std::vector<float> sums_;
  std::vector<float> window_sums_;
  std::vector<float> window_maxima_;
  std::vector<float> last_;
  std::vector<std::int64_t> layer_sums_;
  std::vector<std::int64_t> layer_window_sums_;
  std::vector<std::size_t> begins_;        // [sequence][layer][head] and the end: where a head's slices begin
  std::vector<std::size_t> layer_begins_;  // [sequence][layer][head]: ... among those of its layer
};

}  // namespace ebb
