#include "model/step_mass.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

// Entries that one thread sums at a time. Fewer: more pieces to share; more: longer runs of neighbours.
constexpr std::size_t kPieceEntries = 64;

// What is made of rows of floats, `stride` apart; the window is the last of them.
struct Reduced {
  std::span<float> sum;
  std::span<float> window_sum;
  std::span<float> window_max;
  std::span<float> last;
};

void reduce_rows(const float* rows, const SequenceRows& asked, std::size_t stride, const Reduced& out) {
  std::array<double, kPieceEntries> sums{};
  std::array<double, kPieceEntries> window{};
  std::array<float, kPieceEntries> most{};
  const std::size_t n = out.sum.size();
  for (std::int32_t row = 0; row < asked.n_mass_rows; ++row) {
    const float* const from = rows + to_size(row) * stride;
    for (std::size_t e = 0; e < n; ++e) sums[e] += static_cast<double>(from[e]);
    if (row < asked.n_mass_rows - asked.n_window_rows) continue;
    for (std::size_t e = 0; e < n; ++e) {
      window[e] += static_cast<double>(from[e]);
      most[e] = std::max(most[e], from[e]);
    }
  }
  const auto to_float = [](double value) { return static_cast<float>(value); };
  std::transform(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(n), out.sum.begin(), to_float);
  std::transform(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(n), out.window_sum.begin(), to_float);
  std::copy_n(most.begin(), n, out.window_max.begin());
  std::copy_n(rows + to_size(asked.n_mass_rows - 1) * stride, n, out.last.begin());
}

// Sums of runs of so many numbers.
std::vector<float> add_runs(std::span<const float> numbers, std::size_t n_in_run) {
  std::vector<float> sums;
  for (std::size_t i = 0; i < numbers.size(); i += n_in_run) {
    double sum = 0.0;
    for (const float x : numbers.subspan(i, n_in_run)) sum += static_cast<double>(x);
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

}  // namespace

void StepMass::clear() {
  begins_.clear();
  for (std::vector<float>* all : {&sums_, &window_sums_, &window_maxima_, &last_}) all->clear();
  slices_.clear();
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
  for (std::vector<float>* all : {&sums_, &window_sums_, &window_maxima_, &last_}) all->assign(begins_.back(), 0.0F);
  if (step.asks_slices()) slices_.begin(step);
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
  if (step.asks_slices()) slices_.end_layer(step, layer, ith, n_threads);
  const std::size_t row_stride = to_size(step.n_kv_heads) * to_size(step.mass_stride);
  std::int32_t piece = 0;
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    const SequenceRows& rows = step.sequences[s];
    if (rows.n_mass_rows == 0) continue;
    const float* const first = rows_.data() + to_size(rows.row_begin + rows.n_rows - rows.n_mass_rows) * row_stride;
    for (std::int32_t h = 0; h < step.n_kv_heads; ++h) {
      const std::size_t at = slot(s, layer, HeadIndex(h));
      for (std::size_t e = begins_[at]; e < begins_[at + 1]; e += kPieceEntries) {
        if (piece++ % n_threads != ith) continue;
        const std::size_t n = std::min(kPieceEntries, begins_[at + 1] - e);
        const auto piece_of = [&](std::vector<float>& all) { return std::span(all).subspan(e, n); };
        reduce_rows(first + to_size(h) * to_size(step.mass_stride) + (e - begins_[at]), rows, row_stride,
                    {.sum = piece_of(sums_),
                     .window_sum = piece_of(window_sums_),
                     .window_max = piece_of(window_maxima_),
                     .last = piece_of(last_)});
      }
    }
  }
}

void StepMass::set(const AttentionStep& step, const HeadPlace& place, std::span<const float> sums,
                   std::int32_t n_parts) {
  const std::size_t at = slot(place.sequence, place.layer, place.head);
  const std::size_t n = begins_[at + 1] - begins_[at];
  EBB_CHECK(n_parts > 0 && sums.size() >= n * to_size(n_parts), "{} sums for {} parts of each of {} entries",
            sums.size(), n_parts, n);
  const std::vector<float> of_entries = add_runs(sums.first(n * to_size(n_parts)), to_size(n_parts));
  for (std::vector<float>* all : {&sums_, &window_sums_, &window_maxima_, &last_}) {
    std::ranges::copy(of_entries, all->begin() + static_cast<std::ptrdiff_t>(begins_[at]));
  }
  const SequenceRows& rows = step.sequences[place.sequence];
  if (!rows.asks_slices()) return;
  EBB_CHECK(n_parts % rows.n_slices == 0, "{} slices of {} parts", rows.n_slices, n_parts);
  slices_.set(place.sequence, place.layer, place.head,
              add_runs(sums.first(n * to_size(n_parts)), to_size(n_parts / rows.n_slices)));
}

std::size_t StepMass::slot(std::size_t sequence, LayerIndex layer, HeadIndex head) const {
  const std::size_t slot = (sequence * to_size(n_layers_) + layer.index()) * to_size(n_kv_heads_) + head.index();
  EBB_CHECK(slot + 1 < begins_.size(), "no mass of sequence {}, layer {}, head {}: the last step had none", sequence,
            layer.value(), head.value());
  return slot;
}

std::span<const float> StepMass::part(const std::vector<float>& all, std::size_t slot) const {
  return std::span(all).subspan(begins_[slot], begins_[slot + 1] - begins_[slot]);
}

HeadMass StepMass::head(const AttentionStep& step, std::size_t sequence, LayerIndex layer, HeadIndex head) const {
  const std::size_t at = slot(sequence, layer, head);
  if (begins_[at] == begins_[at + 1]) return {};
  return {.table = step.table(sequence, layer, head),
          .sum = part(sums_, at),
          .window_sum = part(window_sums_, at),
          .window_max = part(window_maxima_, at),
          .last = part(last_, at),
          .slices = slices_.head(step, sequence, layer, head)};
}

std::size_t StepMass::bytes() const {
  return (rows_.size() + 4 * sums_.size()) * sizeof(float) + begins_.size() * sizeof(begins_[0]) + slices_.bytes();
}

}  // namespace ebb
