// BlockForms: where the f16 rows of an open block lie in a step, of frames that seal.
//
//   open before or after the step       its open frame (TableEntry::open)
//   begins and ends within the step     the step's own memory in AttentionScratch, [block][KV head], of one layer at a time
//   sealed before the step              nowhere: there is only its frame
//
// It knows one step and its tables; it neither writes nor attends. Thread rule: a value; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/attention.h"

namespace ebb {

class BlockForms {
 public:
  BlockForms(const AttentionShape& shape, const AttentionStep& step, AttentionScratch& scratch);

  // Room for the step's own memory; grows and never shrinks.
  static void reserve(AttentionScratch& scratch, const AttentionShape& shape, const AttentionStep& step);

  // The f16 rows of an entry; null if it was sealed before the step.
  [[nodiscard]] std::byte* open_rows(std::size_t sequence, HeadIndex head, const TableEntry& entry) const;
  // Whether the step writes the last slot of a block of this size.
  [[nodiscard]] bool is_filled(std::size_t sequence, const TableEntry& entry) const;

 private:
  const AttentionStep& step_;
  std::int32_t block_size_;
  std::int32_t n_kv_heads_;
  std::size_t open_frame_bytes_;
  std::byte* step_rows_;
  std::size_t n_step_bytes_;
};

}  // namespace ebb
