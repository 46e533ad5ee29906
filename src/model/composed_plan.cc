#include "model/composed_plan.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace ebb {
namespace {

// The part of the table that queries at `first` and later see through the window.
BlockTable inside_window(BlockTable table, Position first, std::int32_t window) {
  if (window == 0) return table;
  const auto begin = std::partition_point(
      table.begin(), table.end(), [&](const TableEntry& entry) { return entry.span().end <= first - window + 1; });
  return table.subspan(static_cast<std::size_t>(begin - table.begin()));
}

// What of the tables is compared and gathered.
struct Reach {
  std::int32_t window = 0;
  // Heads that speak for all: 1 where they are alike.
  std::int32_t n_heads = 0;
};

BlockTable reached(const AttentionStep& step, std::size_t sequence, LayerIndex layer, HeadIndex head,
                   std::int32_t window) {
  return inside_window(step.table(sequence, layer, head), step.sequences[sequence].first, window);
}

bool same_positions(BlockTable a, BlockTable b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TableEntry& x, const TableEntry& y) { return x.span() == y.span(); });
}

// Whether all KV heads of the layer hold the same positions, in every sequence.
bool heads_alike(const AttentionStep& step, LayerIndex layer, std::int32_t window) {
  for (std::size_t sequence = 0; sequence < step.sequences.size(); ++sequence) {
    const BlockTable first = reached(step, sequence, layer, HeadIndex(0), window);
    for (std::int32_t head = 1; head < step.n_kv_heads; ++head) {
      if (!same_positions(first, reached(step, sequence, layer, HeadIndex(head), window))) return false;
    }
  }
  return true;
}

// Whether both layers hold the same positions, head by head.
bool layers_alike(const AttentionStep& step, LayerIndex a, LayerIndex b, Reach reach) {
  for (std::size_t sequence = 0; sequence < step.sequences.size(); ++sequence) {
    for (std::int32_t h = 0; h < reach.n_heads; ++h) {
      const HeadIndex head(h);
      if (!same_positions(reached(step, sequence, a, head, reach.window),
                          reached(step, sequence, b, head, reach.window))) {
        return false;
      }
    }
  }
  return true;
}

std::vector<ComposedPlan::Bundle> bundles_of(const AttentionStep& step) {
  std::vector<ComposedPlan::Bundle> bundles;
  std::int32_t next_row = 0;
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    const SequenceRows& rows = step.sequences[s];
    EBB_CHECK(rows.row_begin == next_row && rows.n_rows > 0, "sequence {}: {} rows from {}, expected from {}", s,
              rows.n_rows, rows.row_begin, next_row);
    next_row += rows.n_rows;
    if (bundles.empty() || bundles.back().n_rows != rows.n_rows) {
      bundles.push_back({.first_sequence = static_cast<std::int32_t>(s),
                         .n_sequences = 0,
                         .first_row = rows.row_begin,
                         .n_rows = rows.n_rows});
    }
    ++bundles.back().n_sequences;
  }
  return bundles;
}

std::int32_t longest_table(const AttentionStep& step, const ComposedPlan::Bundle& bundle, LayerIndex layer,
                           Reach reach) {
  std::size_t longest = 0;
  for (std::int32_t s = bundle.first_sequence; s < bundle.first_sequence + bundle.n_sequences; ++s) {
    for (std::int32_t head = 0; head < reach.n_heads; ++head) {
      const BlockTable entries = reached(step, static_cast<std::size_t>(s), layer, HeadIndex(head), reach.window);
      EBB_CHECK(!entries.empty(), "sequence {} has rows, and layer {} head {} no entry that holds them", s,
                layer.value(), head);
      longest = std::max(longest, entries.size());
    }
  }
  return static_cast<std::int32_t>(longest);
}

std::int32_t pad_entries(std::int32_t n_entries, std::int32_t block_size) {
  const std::int32_t multiple = kColumnGroup / std::gcd(kColumnGroup, block_size);
  return (n_entries + multiple - 1) / multiple * multiple;
}

// With mass asked for, what a window hides is gathered too, so that entries keep their numbers; masks still hide it.
std::int32_t gather_window(std::int32_t window, bool with_mass) { return with_mass ? 0 : window; }

}  // namespace

BlockTable ComposedPlan::gathered(const AttentionStep& step, std::size_t sequence, LayerIndex layer,
                                  HeadIndex head) const {
  return reached(step, sequence, layer, head, gather_window(mask(layer).window, with_mass));
}

bool ComposedPlan::serves(const AttentionStep& step, std::span<const AttentionShape> layers) const {
  if (mask_of_layer.size() != layers.size() || bundles != bundles_of(step)) return false;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerIndex layer(static_cast<std::int32_t>(l));
    const Mask& own = mask(layer);
    if (own.window != layers[l].window) return false;
    const Reach reach{.window = gather_window(own.window, with_mass), .n_heads = own.heads_alike ? 1 : step.n_kv_heads};
    if (own.heads_alike && !heads_alike(step, layer, reach.window)) return false;
    if (!layers_alike(step, own.first_layer, layer, reach)) return false;
    if (layer != own.first_layer) continue;
    for (std::size_t bundle = 0; bundle < bundles.size(); ++bundle) {
      if (longest_table(step, bundles[bundle], layer, reach) > own.n_entries[bundle]) return false;
    }
  }
  return true;
}

ComposedPlan plan_composed(const AttentionStep& step, std::span<const AttentionShape> layers, bool with_mass) {
  EBB_CHECK(static_cast<std::size_t>(step.n_layers) == layers.size(), "{} layers, {} shapes", step.n_layers,
            layers.size());
  ComposedPlan plan{.bundles = bundles_of(step), .masks = {}, .mask_of_layer = {}, .with_mass = with_mass};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerIndex layer(static_cast<std::int32_t>(l));
    const std::int32_t window = gather_window(layers[l].window, with_mass);
    const bool alike = heads_alike(step, layer, window);
    const Reach reach{.window = window, .n_heads = alike ? 1 : step.n_kv_heads};
    const auto shared = std::find_if(plan.masks.begin(), plan.masks.end(), [&](const ComposedPlan::Mask& mask) {
      return mask.window == layers[l].window && mask.heads_alike == alike &&
             layers_alike(step, mask.first_layer, layer, reach);
    });
    plan.mask_of_layer.push_back(static_cast<std::int32_t>(shared - plan.masks.begin()));
    if (shared != plan.masks.end()) continue;
    ComposedPlan::Mask own{.first_layer = layer, .window = layers[l].window, .heads_alike = alike, .n_entries = {}};
    for (const ComposedPlan::Bundle& bundle : plan.bundles) {
      own.n_entries.push_back(pad_entries(longest_table(step, bundle, layer, reach), layers[l].layout.block_size));
    }
    // Mass of several bundles is one tensor.
    if (with_mass) std::fill(own.n_entries.begin(), own.n_entries.end(), std::ranges::max(own.n_entries));
    plan.masks.push_back(std::move(own));
  }
  return plan;
}

}  // namespace ebb
