// Totals of a layer whose heads are noted together, pooled step by step (Ask::pool_ahead).
#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/to_size.h"
#include "policy/attention_notes.h"

namespace ebb {

// Heads of a layer may have different blocks; what one does not have it gives nothing.
void AttentionNotes::add_to_pass(std::size_t head, const HeadStep& step) {
  const std::size_t width = std::max<std::size_t>(1, n_slices_);
  const std::span<const float> sums = n_slices_ > 0 ? step.slices.sum : step.sum;
  if (head % n_in_layer_ == 0) pass_ = {};
  if (!std::ranges::includes(pass_.blocks, step.blocks)) {
    Pass wider;
    std::ranges::set_union(pass_.blocks, step.blocks, std::back_inserter(wider.blocks));
    wider.sums.resize(wider.blocks.size() * width);
    std::size_t at = 0;
    for (std::size_t i = 0; i < pass_.blocks.size(); ++i) {
      while (wider.blocks[at] < pass_.blocks[i]) ++at;
      std::copy_n(&pass_.sums[i * width], width, &wider.sums[at * width]);
    }
    pass_ = std::move(wider);
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < step.blocks.size(); ++i) {
    while (pass_.blocks[at] < step.blocks[i]) ++at;
    for (std::size_t j = 0; j < width; ++j) pass_.sums[at * width + j] += static_cast<double>(sums[i * width + j]);
  }
  if ((head + 1) % n_in_layer_ == 0) note_pass(head + 1 - n_in_layer_);
}

// Over the table as it is: what has left between two tokens is not there.
std::vector<double> AttentionNotes::pool(const Pass& pass) const {
  const std::size_t n_tokens = to_size(block_size_) / std::max<std::size_t>(1, n_slices_);
  const std::size_t reach = std::max<std::size_t>(1, to_size(ask_.pool_ahead) / n_tokens);
  std::vector<double> pooled;
  for (auto from = pass.sums.begin(); from != pass.sums.end(); ++from) {
    const auto n = std::min<std::ptrdiff_t>(pass.sums.end() - from, static_cast<std::ptrdiff_t>(reach));
    pooled.push_back(*std::max_element(from, from + n));
  }
  return pooled;
}

void AttentionNotes::note_pass(std::size_t first_head) {
  const std::size_t width = std::max<std::size_t>(1, n_slices_);
  const std::vector<double> all = pool(pass_);
  const std::vector<float> pooled(all.begin(), all.end());
  if (n_slices_ == 0) return add_totals(first_head, {.blocks = pass_.blocks, .sum = pooled});
  std::vector<float> of_blocks;
  for (std::size_t i = 0; i < pooled.size(); i += width) {
    float sum = 0.0F;
    for (std::size_t j = i; j < i + width; ++j) sum += pooled[j];
    of_blocks.push_back(sum);
  }
  add_totals(first_head, {.blocks = pass_.blocks, .sum = of_blocks, .slices = {.sum = pooled}});
}

// Totals by head become those of layers, of all blocks that any of its heads has looked at.
void AttentionNotes::pool_totals() {
  const std::size_t width = std::max<std::size_t>(1, n_slices_);
  for (std::size_t first = 0; first < n_heads_; first += n_in_layer_) {
    std::vector<Total> of_blocks;
    SliceTotals of_slices;
    for (std::size_t head = first; head < first + n_in_layer_; ++head) {
      of_blocks.resize(std::max(of_blocks.size(), totals_[head].size()));
      of_slices.sum.resize(of_blocks.size() * n_slices_);
      of_slices.n_queries.resize(of_slices.sum.size());
      for (std::size_t b = 0; b < totals_[head].size(); ++b) {
        of_blocks[b].sum += totals_[head][b].sum;
        of_blocks[b].n_queries = std::max(of_blocks[b].n_queries, totals_[head][b].n_queries);
      }
      totals_[head].clear();
      if (n_slices_ == 0) continue;
      SliceTotals& slices = slice_totals_[head];
      for (std::size_t i = 0; i < slices.sum.size(); ++i) {
        of_slices.sum[i] += slices.sum[i];
        of_slices.n_queries[i] = std::max(of_slices.n_queries[i], slices.n_queries[i]);
      }
      slices = {};
    }
    Pass pass;
    for (std::size_t b = 0; n_slices_ == 0 && b < of_blocks.size(); ++b) pass.sums.push_back(of_blocks[b].sum);
    if (n_slices_ > 0) pass.sums = of_slices.sum;
    const std::vector<double> pooled = pool(pass);
    for (std::size_t b = 0; b < of_blocks.size(); ++b) {
      of_blocks[b].sum = std::accumulate(pooled.begin() + static_cast<std::ptrdiff_t>(b * width),
                                         pooled.begin() + static_cast<std::ptrdiff_t>((b + 1) * width), 0.0);
    }
    totals_[first] = std::move(of_blocks);
    if (n_slices_ == 0) continue;
    of_slices.sum = pooled;
    slice_totals_[first] = std::move(of_slices);
  }
}

}  // namespace ebb
