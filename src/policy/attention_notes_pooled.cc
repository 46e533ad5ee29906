// Totals of a layer whose heads are noted together, pooled step by step (Ask::pool_ahead).
#include <algorithm>

#include "base/check.h"
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
void AttentionNotes::note_pass(std::size_t first_head) {
  const std::size_t width = std::max<std::size_t>(1, n_slices_);
  const std::size_t n_tokens = to_size(block_size_) / width;
  const std::size_t reach = std::max<std::size_t>(1, to_size(ask_.pool_ahead) / n_tokens);
  std::vector<float> pooled;
  for (auto from = pass_.sums.begin(); from != pass_.sums.end(); ++from) {
    const auto n = std::min<std::ptrdiff_t>(pass_.sums.end() - from, static_cast<std::ptrdiff_t>(reach));
    pooled.push_back(static_cast<float>(*std::max_element(from, from + n)));
  }
  if (n_slices_ == 0) return add_totals(first_head, {.blocks = pass_.blocks, .sum = pooled});
  std::vector<float> of_blocks;
  for (std::size_t i = 0; i < pooled.size(); i += width) {
    float sum = 0.0F;
    for (std::size_t j = i; j < i + width; ++j) sum += pooled[j];
    of_blocks.push_back(sum);
  }
  add_totals(first_head, {.blocks = pass_.blocks, .sum = of_blocks, .slices = {.sum = pooled}});
}

}  // namespace ebb
