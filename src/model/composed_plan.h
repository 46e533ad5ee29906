// ComposedPlan: the shape of a step as far as a graph of composed attention depends on it.
//
// A graph built for a plan computes every step that the plan serves, so that decoding rebuilds a graph only when a table
// outgrows its padding. Plain values; it knows block tables, no tensors. Words, as in model/composed_attention.h:
//
//   bundle    neighbouring sequences with equally many rows, computed by one call
//   mask    which positions a query sees; shared by layers whose tables hold the same positions under the same window
//   column  slot `c % block_size` of entry `c / block_size` of a table; padded to a multiple of kColumnGroup
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "model/attention.h"

namespace ebb {

// CUDA's kernels that share work among the heads of a group need this multiple. Larger: more padding is computed.
// Smaller: slower kernels, and graphs are rebuilt more often as a session grows.
inline constexpr std::int32_t kColumnGroup = 256;

struct ComposedPlan {
  struct Bundle {
    std::int32_t first_sequence = 0;
    std::int32_t n_sequences = 0;
    std::int32_t first_row = 0;
    std::int32_t n_rows = 0;  // of each sequence

    friend bool operator==(const Bundle&, const Bundle&) = default;
  };
  struct Mask {
    LayerIndex first_layer;
    std::int32_t window = 0;
    bool heads_alike = true;              // all KV heads hold the same positions
    std::vector<std::int32_t> n_entries;  // [bundle], padded

    friend bool operator==(const Mask&, const Mask&) = default;
  };

  std::vector<Bundle> bundles;
  std::vector<Mask> masks;
  std::vector<std::int32_t> mask_of_layer;
  // Attention mass can be asked for: tables are then gathered whole, not only what lies in the window.
  bool with_mass = false;
  // Into how many parts a block's mass is cut; 1: it is not.
  std::int32_t n_parts = 1;

  [[nodiscard]] const Mask& mask(LayerIndex layer) const {
    return masks[static_cast<std::size_t>(mask_of_layer[layer.index()])];
  }
  // The entries that are gathered for one KV head: those that some row of the sequence may see.
  [[nodiscard]] BlockTable gathered(const AttentionStep& step, std::size_t sequence, LayerIndex layer,
                                    HeadIndex head) const;
  // Whether a graph of this plan computes this step; `layers` as the plan was made with.
  [[nodiscard]] bool serves(const AttentionStep& step, std::span<const AttentionShape> layers) const;

  friend bool operator==(const ComposedPlan&, const ComposedPlan&) = default;
};

// `layers`: one shape per layer, all of one layout. The sequences' rows must follow each other without gaps from row 0,
// and each table must hold its sequence's rows. The plan serves `step`.
[[nodiscard]] ComposedPlan plan_composed(const AttentionStep& step, std::span<const AttentionShape> layers,
                                         bool with_mass);

}  // namespace ebb
