#include "model/step_mass.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace ebb {
namespace {

// Entries that one thread sums at a time. Fewer: more pieces to share; more: longer runs of neighbours.
constexpr std::size_t kPieceEntries = 64;

constexpr std::size_t to_size(std::int32_t n) { return static_cast<std::size_t>(n); }

// Rows of floats, `stride` apart, summed one after the other.
void sum_rows(const float* rows, std::int32_t n_rows, std::size_t stride, std::span<float> out) {
  std::array<double, kPieceEntries> sums{};
  for (std::int32_t row = 0; row < n_rows; ++row) {
    const float* const from = rows + to_size(row) * stride;
    for (std::size_t e = 0; e < out.size(); ++e) sums[e] += static_cast<double>(from[e]);
  }
  for (std::size_t e = 0; e < out.size(); ++e) out[e] = static_cast<float>(sums[e]);
}

// The last block that begins at or before the position.
BlockIndex find_block(const Residency& residency, Position begin) {
  std::int32_t low = 0;
  std::int32_t high = residency.n_blocks();
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    (residency.span(BlockIndex(middle)).begin <= begin ? low : high) = middle;
  }
  return BlockIndex(low);
}

bool same_blocks(BlockTable a, BlockTable b) {
  return std::ranges::equal(a, b, {}, &TableEntry::begin, &TableEntry::begin);
}

}  // namespace

void StepMass::clear() {
  begins_.clear();
  sums_.clear();
}

void StepMass::begin(const AttentionStep& step) {
  n_layers_ = step.n_layers;
  n_kv_heads_ = step.n_kv_heads;
  begins_.assign(1, 0);
  const std::size_t n_tables = to_size(n_layers_) * to_size(n_kv_heads_);
  for (std::size_t i = 0; i < step.tables.size(); ++i) {
    const bool asks = step.sequences[i / n_tables].n_mass_rows > 0;
    begins_.push_back(begins_.back() + (asks ? step.tables[i].size() : 0));
  }
  sums_.assign(begins_.back(), 0.0F);
}

void StepMass::reserve_rows(const AttentionStep& step) {
  std::size_t n_rows = 0;
  for (const SequenceRows& rows : step.sequences) n_rows += to_size(rows.n_rows);
  const std::size_t n = n_rows * to_size(step.n_kv_heads) * to_size(step.mass_stride);
  if (rows_.size() >= n) return;
  rows_ = {};  // nothing in it outlives a layer: do not copy
  rows_.resize(n);
}

void StepMass::add_rows(const AttentionStep& step, LayerIndex layer, std::int32_t ith, std::int32_t n_threads) {
  const std::size_t row_stride = to_size(step.n_kv_heads) * to_size(step.mass_stride);
  std::int32_t piece = 0;
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    const SequenceRows& rows = step.sequences[s];
    if (rows.n_mass_rows == 0) continue;
    const float* const first = rows_.data() + to_size(rows.row_begin + rows.n_rows - rows.n_mass_rows) * row_stride;
    for (std::int32_t h = 0; h < step.n_kv_heads; ++h) {
      const std::span<float> out = mutable_sums(s, layer, HeadIndex(h));
      for (std::size_t e = 0; e < out.size(); e += kPieceEntries) {
        if (piece++ % n_threads != ith) continue;
        sum_rows(first + to_size(h) * to_size(step.mass_stride) + e, rows.n_mass_rows, row_stride,
                 out.subspan(e, std::min(kPieceEntries, out.size() - e)));
      }
    }
  }
}

void StepMass::set(std::size_t sequence, LayerIndex layer, HeadIndex head, std::span<const float> sums) {
  const std::span<float> out = mutable_sums(sequence, layer, head);
  EBB_CHECK(sums.size() >= out.size(), "{} sums for {} entries", sums.size(), out.size());
  std::copy_n(sums.begin(), out.size(), out.begin());
}

std::size_t StepMass::slot(std::size_t sequence, LayerIndex layer, HeadIndex head) const {
  const std::size_t slot = (sequence * to_size(n_layers_) + layer.index()) * to_size(n_kv_heads_) + head.index();
  EBB_CHECK(slot + 1 < begins_.size(), "no mass of sequence {}, layer {}, head {}: the last step had none", sequence,
            layer.value(), head.value());
  return slot;
}

std::span<float> StepMass::mutable_sums(std::size_t sequence, LayerIndex layer, HeadIndex head) {
  const std::size_t at = slot(sequence, layer, head);
  return std::span(sums_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
}

std::span<const float> StepMass::sums(std::size_t sequence, LayerIndex layer, HeadIndex head) const {
  const std::size_t at = slot(sequence, layer, head);
  return std::span(sums_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
}

std::size_t StepMass::bytes() const {
  return (rows_.size() + sums_.size()) * sizeof(float) + begins_.size() * sizeof(begins_[0]);
}

std::vector<BlockMass> sum_by_block(const StepMass& mass, const AttentionStep& step, std::size_t sequence,
                                    const Residency& residency) {
  constexpr double kNotHot = -1.0;
  std::vector<double> totals(to_size(residency.n_blocks()), kNotHot);
  // Most often all heads hold the same blocks, which are then looked up once.
  BlockTable known;
  std::vector<BlockIndex> blocks;
  for (std::int32_t l = 0; l < step.n_layers; ++l) {
    for (std::int32_t h = 0; h < step.n_kv_heads; ++h) {
      const BlockTable table = step.table(sequence, LayerIndex(l), HeadIndex(h));
      if (!same_blocks(table, known)) {
        blocks.clear();
        for (const TableEntry& entry : table) blocks.push_back(find_block(residency, entry.begin));
        known = table;
      }
      const std::span<const float> sums = mass.sums(sequence, LayerIndex(l), HeadIndex(h));
      for (std::size_t e = 0; e < sums.size(); ++e) {
        double& total = totals[blocks[e].index()];
        total = std::max(total, 0.0) + static_cast<double>(sums[e]);
      }
    }
  }
  std::vector<BlockMass> result;
  for (std::size_t b = 0; b < totals.size(); ++b) {
    if (totals[b] == kNotHot) continue;
    result.push_back({.block = BlockIndex(static_cast<std::int32_t>(b)), .mass = static_cast<float>(totals[b])});
  }
  return result;
}

}  // namespace ebb
