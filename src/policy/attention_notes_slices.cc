// What attention gave slices of blocks, as AttentionNotes keeps it beside what it gave blocks.
#include <algorithm>

#include "base/check.h"
#include "base/to_size.h"
#include "policy/attention_notes.h"
#include "policy/noted_values.h"

namespace ebb {
namespace {

// More slices than any block has.
constexpr std::int32_t kMostSlices = 1024;
// They are counted in 32 bits.
constexpr float kMostSliceQueries = 0x1p31F;

std::ptrdiff_t to_offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

template <class T>
void append(std::span<const T> from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Position AttentionNotes::begin_of(BlockIndex block, std::size_t slice) const {
  const std::int32_t n_tokens = n_slices_ == 0 ? 0 : block_size_ / static_cast<std::int32_t>(n_slices_);
  return Position(block.value() * block_size_ + static_cast<std::int32_t>(slice) * n_tokens);
}

// --- noting ---

void AttentionNotes::add_slice_totals(std::size_t head, const HeadStep& step) {
  if (step.blocks.empty()) return;
  SliceTotals& totals = slice_totals_[head];
  const std::size_t n = (step.blocks.back().index() + 1) * n_slices_;
  if (totals.sum.size() < n) {
    totals.sum.resize(n);
    totals.n_queries.resize(n);
  }
  for (std::size_t i = 0; i < step.blocks.size(); ++i) {
    const std::size_t to = step.blocks[i].index() * n_slices_;
    for (std::size_t j = 0; j < n_slices_; ++j) {
      totals.sum[to + j] += static_cast<double>(step.slices.sum[i * n_slices_ + j]);
      const Position begin = std::max(queries_.begin, begin_of(step.blocks[i], j));  // earlier ones do not see it
      totals.n_queries[to + j] += std::max(0, queries_.end - begin);
    }
  }
}

void AttentionNotes::add_slices_to(Step& kept, const HeadStep& step) const {
  append(step.slices.window_sum, kept.slice_sum);
  if (kept.is_single) return;
  if (ask_.window > 0) append(step.slices.window_max, kept.slice_max);
  if (ask_.last) append(step.slices.last, kept.slice_last);
}

// --- telling ---

AttentionNotes::NotedSlices AttentionNotes::noted_slices(std::size_t head, std::span<const BlockIndex> blocks) const {
  const std::size_t n = blocks.size() * n_slices_;
  NotedSlices noted;
  noted.n_in_window.resize(n);
  for (auto* column : {&noted.total, &noted.n_queries, &noted.window_sum, &noted.window_max, &noted.last}) {
    column->resize(n);
  }
  for (std::size_t i = 0; ask_.totals && i < blocks.size(); ++i) {
    const SliceTotals& totals = slice_totals_[head];
    const std::size_t from = blocks[i].index() * n_slices_;
    if (from >= totals.sum.size()) break;
    std::copy_n(totals.sum.begin() + to_offset(from), n_slices_, noted.total.begin() + to_offset(i * n_slices_));
    std::copy_n(totals.n_queries.begin() + to_offset(from), n_slices_,
                noted.n_queries.begin() + to_offset(i * n_slices_));
  }
  for (const Step& step : steps_) add_slice_window(step, head, blocks, noted);
  return noted;
}

void AttentionNotes::add_slice_window(const Step& step, std::size_t head, std::span<const BlockIndex> blocks,
                                      NotedSlices& noted) const {
  if (step.begins.size() <= head + 1) return;
  const bool is_newest = &step == &steps_.back();
  std::size_t at = step.begins[head];
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    while (at < step.begins[head + 1] && step.blocks[at] < blocks[i]) ++at;
    if (at == step.begins[head + 1]) return;
    if (step.blocks[at] != blocks[i]) continue;
    for (std::size_t j = 0; j < n_slices_ && begin_of(blocks[i], j) < step.end; ++j) {
      const std::size_t to = i * n_slices_ + j;
      const std::size_t from = at * n_slices_ + j;
      noted.n_in_window[to] += step.n_queries;
      noted.window_sum[to] += static_cast<double>(step.slice_sum[from]);
      if (ask_.window > 0) {
        noted.window_max[to] = std::max(noted.window_max[to], static_cast<double>(step.max_of_slices()[from]));
      }
      if (ask_.last && is_newest) noted.last[to] = static_cast<double>(step.last_of_slices()[from]);
    }
  }
}

void AttentionNotes::fill_slices(const Ask& ask, std::size_t first, std::size_t n_heads,
                                 std::span<const BlockIndex> blocks, SliceColumns& columns) const {
  if (n_slices_ == 0) return;
  columns.n_slices = n_slices_;
  columns.n_tokens = block_size_ / static_cast<std::int32_t>(n_slices_);
  const std::size_t n = blocks.size() * n_slices_;
  const auto begin = [&](bool is_asked, std::vector<double>& column) { column.assign(is_asked ? n : 0, 0.0); };
  begin(ask.totals, columns.total);
  begin(ask.totals, columns.n_queries);
  begin(ask.window > 0, columns.window_mean);
  begin(ask.window > 0, columns.window_max);
  begin(ask.last, columns.last);
  std::vector<std::int32_t> n_in_window(n, 0);
  for (std::size_t head = first; head < first + n_heads; ++head) {
    const NotedSlices noted = noted_slices(head, blocks);
    for (std::size_t i = 0; i < n; ++i) {
      if (ask.totals) {
        columns.total[i] += noted.total[i];
        columns.n_queries[i] = std::max(columns.n_queries[i], noted.n_queries[i]);
      }
      if (noted.n_in_window[i] == 0) continue;
      n_in_window[i] = std::max(n_in_window[i], noted.n_in_window[i]);
      if (ask.last) columns.last[i] += noted.last[i];
      if (ask.window == 0) continue;
      columns.window_mean[i] += noted.window_sum[i] / noted.n_in_window[i];
      columns.window_max[i] = std::max(columns.window_max[i], noted.window_max[i]);
    }
  }
  for (auto* column : {&columns.window_mean, &columns.window_max, &columns.last}) fill_unseen(n_in_window, *column);
}

// --- forgetting ---

void AttentionNotes::forget_slice_totals(BlockIndex from, std::size_t n_kept) {
  const std::size_t n = from.index() * n_slices_;
  for (std::size_t head = 0; head < slice_totals_.size(); ++head) {
    SliceTotals& totals = slice_totals_[head];
    if (totals.sum.size() <= n) continue;
    totals.sum.resize(n + n_kept);
    totals.n_queries.resize(n + n_kept);
    if (n_kept == 0) continue;
    double sum = 0.0;
    for (std::size_t j = 0; j < n_kept; ++j) sum += totals.sum[n + j];
    totals_[head][from.index()].sum = sum;
    totals.sum.resize(n + n_slices_);
    totals.n_queries.resize(n + n_slices_);
  }
}

// Of the block at `at`; where not all of its slices stay, the block too has what those have.
void AttentionNotes::keep_slices(const Step& from, std::size_t at, std::size_t n_kept, Step& to) const {
  const auto keep = [&](const std::vector<float>& slices, std::vector<float>& kept) {
    if (slices.empty()) return;
    append(std::span(slices).subspan(at * n_slices_, n_kept), kept);
    kept.resize(kept.size() + n_slices_ - n_kept, 0.0F);
  };
  keep(from.slice_sum, to.slice_sum);
  keep(from.slice_max, to.slice_max);
  keep(from.slice_last, to.slice_last);
  if (n_kept == n_slices_) return;
  const auto part = [&](const std::vector<float>& slices) {
    return slices.empty() ? std::span<const float>() : std::span(slices).subspan(at * n_slices_, n_kept);
  };
  float sum = 0.0F;
  float most = 0.0F;
  float last = 0.0F;
  for (const float x : part(from.slice_sum)) sum += x;
  for (const float x : part(from.max_of_slices())) most = std::max(most, x);
  for (const float x : part(from.last_of_slices())) last += x;
  to.add(from.blocks[at], sum, most, last);
}

// --- images ---

void AttentionNotes::put_slices(AttentionImage& image) const {
  AttentionImage::Slices& slices = image.slices;
  slices.n_slices = static_cast<std::int32_t>(n_slices_);
  slices.end = steps_.empty() ? 0 : steps_.back().end.value();
  const auto put = [](bool is_asked, std::span<const double> from, std::vector<float>& to) {
    for (std::size_t i = 0; is_asked && i < from.size(); ++i) to.push_back(static_cast<float>(from[i]));
  };
  for (const AttentionImage::Entry& e : image.entries) {
    const BlockIndex block(e.block);
    const NotedSlices noted = noted_slices(to_size(e.head), std::span(&block, 1));
    put(ask_.totals, noted.total, slices.total);
    put(ask_.totals, noted.n_queries, slices.n_queries);
    put(keeps_steps(), noted.window_sum, slices.window_sum);
    put(ask_.window > 0, noted.window_max, slices.window_max);
    put(ask_.last, noted.last, slices.last);
  }
}

Status AttentionNotes::check_slices(const AttentionImage& image, std::int32_t n_blocks) const {
  const AttentionImage::Slices& slices = image.slices;
  const bool is_cut = slices.n_slices >= 0 && slices.n_slices <= kMostSlices && slices.end >= 0 &&
                      (n_slices_ == 0 || slices.end / block_size_ <= n_blocks);
  const std::size_t n = is_cut ? image.entries.size() * to_size(slices.n_slices) : 0;
  const auto is_sound = [&](auto column) {
    const std::vector<float>& values = slices.*column;
    return (values.empty() || values.size() == n) &&
           std::ranges::all_of(values, [](float x) { return is_mass(x) && x < kMostQueries; });
  };
  const bool pairs = slices.total.size() == slices.n_queries.size() &&
                     std::ranges::all_of(slices.n_queries, [](float x) { return x < kMostSliceQueries; });
  if (is_cut && pairs && std::ranges::all_of(AttentionImage::columns(), is_sound)) return {};
  return error(Code::kDamaged, "notes on {} slices of each of {} blocks up to position {} that no session writes",
               slices.n_slices, image.entries.size(), slices.end);
}

// Of slices that are cut otherwise nothing is known: those of the window are as if they had come since.
void AttentionNotes::restore_slices(const AttentionImage& image, Step& window) {
  const AttentionImage::Slices& slices = image.slices;
  const bool fits = to_size(slices.n_slices) == n_slices_;
  window.end = Position(fits && !slices.window_sum.empty() ? slices.end : 0);
  for (std::size_t i = 0; i < image.entries.size(); ++i) {
    const AttentionImage::Entry& e = image.entries[i];
    const auto part = [&](const std::vector<float>& all) {
      return fits && !all.empty() ? std::vector<float>(all.begin() + to_offset(i * n_slices_),
                                                       all.begin() + to_offset((i + 1) * n_slices_))
                                  : std::vector<float>(n_slices_, 0.0F);
    };
    if (ask_.totals && (ask_.pool_ahead > 0 || !image.is_pooled)) {
      SliceTotals& totals = slice_totals_[to_size(e.head)];
      totals.sum.resize(to_size(e.block) * n_slices_);
      totals.n_queries.resize(totals.sum.size());
      for (const float x : part(slices.total)) totals.sum.push_back(double{x});
      for (const float x : part(slices.n_queries)) totals.n_queries.push_back(static_cast<std::int32_t>(x));
    }
    if (!keeps_steps() || e.n_in_window == 0) continue;
    append(std::span<const float>(part(slices.window_sum)), window.slice_sum);
    if (ask_.window > 0) append(std::span<const float>(part(slices.window_max)), window.slice_max);
    if (ask_.last) append(std::span<const float>(part(slices.last)), window.slice_last);
  }
}

}  // namespace ebb
