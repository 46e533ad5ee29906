// FrameTables: the block tables of one sequence, one for each (layer, KV head), as attention walks them.
//
// It is what the model sees of a sequence: no blocks, no names, no reasons. Whoever owns the frames derives it (HotSet).
// Thread rule: as its owner's; it does not change while a step runs.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "cache/block_table.h"

namespace ebb {

class FrameTables {
 public:
  FrameTables(std::int32_t n_layers, std::int32_t n_kv_heads)
      : n_kv_heads_(static_cast<std::size_t>(n_kv_heads)),
        tables_(static_cast<std::size_t>(n_layers) * static_cast<std::size_t>(n_kv_heads)) {}

  // Entries in position order; valid until the tables change.
  [[nodiscard]] BlockTable table(LayerIndex layer, HeadIndex head) const {
    return tables_[layer.index() * n_kv_heads_ + head.index()];
  }
  // Behind the last token that has a place, hot or not.
  [[nodiscard]] Position end() const { return end_; }

  // For whoever derives them: the entries of a head, [layer][KV head].
  [[nodiscard]] std::vector<TableEntry>& entries(std::size_t head) { return tables_[head]; }
  [[nodiscard]] const std::vector<TableEntry>& entries(std::size_t head) const { return tables_[head]; }
  [[nodiscard]] std::size_t n_heads() const { return tables_.size(); }
  void set_end(Position end) { end_ = end; }

 private:
  std::size_t n_kv_heads_;
  std::vector<std::vector<TableEntry>> tables_;
  Position end_;
};

}  // namespace ebb
