#include "model/slice_mass.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

constexpr double kUnit = 0x1p-42;

void raise(float& place, float value) {
  std::atomic_ref<float> most(place);
  float before = most.load(std::memory_order_relaxed);
  while (before < value && !most.compare_exchange_weak(before, value, std::memory_order_relaxed)) {}
}

void add_units(std::int64_t& place, std::int64_t units) {
  if (units != 0) std::atomic_ref<std::int64_t>(place).fetch_add(units, std::memory_order_relaxed);
}

}  // namespace

void SliceMass::clear() {
  begins_.clear();
  for (std::vector<float>* all : {&sums_, &window_sums_, &window_maxima_, &last_}) all->clear();
}

void SliceMass::begin(const AttentionStep& step) {
  n_layers_ = step.n_layers;
  n_kv_heads_ = step.n_kv_heads;
  begins_.assign(1, 0);
  layer_begins_.clear();
  std::vector<std::size_t> ends(to_size(n_layers_), 0);
  const std::size_t n_tables = to_size(n_layers_) * to_size(n_kv_heads_);
  for (std::size_t i = 0; i < step.tables.size(); ++i) {
    const SequenceRows& rows = step.sequences[i / n_tables];
    const std::size_t n = rows.asks_slices() ? step.tables[i].size() * to_size(rows.n_slices) : 0;
    std::size_t& end = ends[i % n_tables / to_size(n_kv_heads_)];
    begins_.push_back(begins_.back() + n);
    layer_begins_.push_back(end);
    end += n;
  }
  for (std::vector<float>* all : {&sums_, &window_sums_, &window_maxima_, &last_}) all->assign(begins_.back(), 0.0F);
  const std::size_t n_most = ends.empty() ? 0 : std::ranges::max(ends);
  for (std::vector<std::int64_t>* all : {&layer_sums_, &layer_window_sums_}) all->assign(n_most, 0);
}

void SliceMass::add(const Gift& gift) {
  const std::size_t at = slot(gift.sequence, gift.layer, gift.head);
  const std::size_t from = gift.entry * gift.sum.size();
  std::int64_t* const sum = layer_sums_.data() + layer_begins_[at] + from;
  std::int64_t* const window_sum = layer_window_sums_.data() + layer_begins_[at] + from;
  float* const most = window_maxima_.data() + begins_[at] + from;
  if (gift.is_alone) {
    std::ranges::copy(gift.sum, sum);
    std::ranges::copy(gift.window_sum, window_sum);
    std::ranges::copy(gift.window_max, most);
  } else {
    for (std::size_t j = 0; j < gift.sum.size(); ++j) {
      add_units(sum[j], gift.sum[j]);
      add_units(window_sum[j], gift.window_sum[j]);
      raise(most[j], gift.window_max[j]);
    }
  }
  std::ranges::copy(gift.last, last_.data() + begins_[at] + from);
}

void SliceMass::end_layer(const AttentionStep& step, LayerIndex layer, std::int32_t ith, std::int32_t n_threads) {
  std::int32_t turn = 0;
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    if (!step.sequences[s].asks_slices()) continue;
    for (std::int32_t h = 0; h < n_kv_heads_; ++h) {
      if (turn++ % n_threads != ith) continue;
      const std::size_t at = slot(s, layer, HeadIndex(h));
      const auto settle = [&](std::vector<std::int64_t>& units, std::vector<float>& floats) {
        std::int64_t* const from = units.data() + layer_begins_[at];
        float* const to = floats.data() + begins_[at];
        for (std::size_t i = 0; i < n_of(at); ++i) {
          to[i] = static_cast<float>(static_cast<double>(from[i]) * kUnit);
          from[i] = 0;
        }
      };
      settle(layer_sums_, sums_);
      settle(layer_window_sums_, window_sums_);
    }
  }
}

void SliceMass::set(std::size_t sequence, LayerIndex layer, HeadIndex head, std::span<const float> sums) {
  const std::size_t at = slot(sequence, layer, head);
  EBB_CHECK(sums.size() >= n_of(at), "{} sums for {} slices", sums.size(), n_of(at));
  for (std::vector<float>* all : {&sums_, &window_sums_, &window_maxima_, &last_}) {
    std::copy_n(sums.begin(), n_of(at), all->begin() + static_cast<std::ptrdiff_t>(begins_[at]));
  }
}

std::size_t SliceMass::slot(std::size_t sequence, LayerIndex layer, HeadIndex head) const {
  const std::size_t slot = (sequence * to_size(n_layers_) + layer.index()) * to_size(n_kv_heads_) + head.index();
  EBB_CHECK(slot + 1 < begins_.size(), "no slices of sequence {}, layer {}, head {}: the last step had none", sequence,
            layer.value(), head.value());
  return slot;
}

HeadSlices SliceMass::head(const AttentionStep& step, std::size_t sequence, LayerIndex layer, HeadIndex head) const {
  if (!step.sequences[sequence].asks_slices()) return {};
  const std::size_t at = slot(sequence, layer, head);
  const auto part = [&](const std::vector<float>& all) { return std::span(all).subspan(begins_[at], n_of(at)); };
  return {.n_slices = step.sequences[sequence].n_slices,
          .sum = part(sums_),
          .window_sum = part(window_sums_),
          .window_max = part(window_maxima_),
          .last = part(last_)};
}

std::size_t SliceMass::bytes() const {
  return 4 * sums_.size() * sizeof(float) + 2 * layer_sums_.size() * sizeof(std::int64_t) +
         (begins_.size() + layer_begins_.size()) * sizeof(begins_[0]);
}

}  // namespace ebb
