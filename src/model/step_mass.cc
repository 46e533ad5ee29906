#include "model/step_mass.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

// Entries that one thread sums at a time. Fewer: more pieces to share; more: longer runs of neighbours.
constexpr std::size_t kPieceEntries = 64;

// Rows of floats, `stride` apart, summed one after the other.
void sum_rows(const float* rows, std::int32_t n_rows, std::size_t stride, std::span<float> out) {
  std::array<double, kPieceEntries> sums{};
  for (std::int32_t row = 0; row < n_rows; ++row) {
    const float* const from = rows + to_size(row) * stride;
    for (std::size_t e = 0; e < out.size(); ++e) sums[e] += static_cast<double>(from[e]);
  }
  for (std::size_t e = 0; e < out.size(); ++e) out[e] = static_cast<float>(sums[e]);
}

// Those of a table too; both rise, and each is there once.
void add_begins(BlockTable table, std::vector<Position>& begins) {
  if (std::ranges::includes(begins, table, {}, {}, &TableEntry::begin)) return;
  std::vector<Position> more;
  std::ranges::transform(table, std::back_inserter(more), &TableEntry::begin);
  std::vector<Position> all;
  std::ranges::set_union(begins, more, std::back_inserter(all));
  begins = std::move(all);
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

std::vector<BlockMass> sum_by_block(const StepMass& mass, const AttentionStep& step, std::size_t sequence) {
  const auto table = [&](std::int32_t layer, std::int32_t head) {
    return step.table(sequence, LayerIndex(layer), HeadIndex(head));
  };
  const auto for_each_head = [&](const auto& act) {
    for (std::int32_t l = 0; l < step.n_layers; ++l) {
      for (std::int32_t h = 0; h < step.n_kv_heads; ++h) act(l, h);
    }
  };
  // Most often a head holds no block that those before it do not.
  std::vector<Position> begins;
  for_each_head([&](std::int32_t l, std::int32_t h) { add_begins(table(l, h), begins); });

  std::vector<double> totals(begins.size(), 0.0);
  for_each_head([&](std::int32_t l, std::int32_t h) {
    const std::span<const float> sums = mass.sums(sequence, LayerIndex(l), HeadIndex(h));
    const BlockTable entries = table(l, h);
    std::size_t at = 0;
    for (std::size_t e = 0; e < sums.size(); ++e) {
      while (begins[at] < entries[e].begin) ++at;
      totals[at] += static_cast<double>(sums[e]);
    }
  });
  std::vector<BlockMass> result;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    result.push_back({.begin = begins[i], .mass = static_cast<float>(totals[i])});
  }
  return result;
}

}  // namespace ebb
