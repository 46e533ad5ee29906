#include "model/attention_cohorts.h"

#include <algorithm>
#include <numeric>

#include "model/attention.h"

namespace ebb {
namespace {

// Any head would do: a block that a session uses of another is so in most of its heads.
BlockTable table_of(const AttentionStep& step, std::size_t sequence) {
  return step.table(sequence, LayerIndex(step.n_layers - 1), HeadIndex(0));
}

}  // namespace

std::size_t count_common(BlockTable a, BlockTable b) {
  const auto is_same = [](const TableEntry& x, const TableEntry& y) {
    return x.frame == y.frame && x.begin == y.begin && x.n_tokens == y.n_tokens;
  };
  return static_cast<std::size_t>(std::ranges::mismatch(a, b, is_same).in1 - a.begin());
}

void Cohorts::find(const AttentionStep& step, std::int32_t most) {
  sequences_.resize(step.sequences.size());
  std::iota(sequences_.begin(), sequences_.end(), std::size_t{0});
  const auto singles =
      std::ranges::partition(sequences_, [&step](std::size_t s) { return step.sequences[s].n_rows > 1; });
  // The more two tables have in common, the closer they come.
  std::ranges::sort(singles, [&step](std::size_t a, std::size_t b) {
    return std::ranges::lexicographical_compare(table_of(step, a), table_of(step, b), {}, &TableEntry::frame,
                                                &TableEntry::frame);
  });
  ends_.clear();
  for (std::size_t begin = 0; begin < sequences_.size(); begin = ends_.back()) {
    ends_.push_back(find_end(step, begin, static_cast<std::size_t>(most)));
  }
}

std::size_t Cohorts::find_end(const AttentionStep& step, std::size_t begin, std::size_t most) const {
  std::size_t end = begin + 1;
  if (step.sequences[sequences_[begin]].n_rows > 1) return end;
  std::size_t n_common = table_of(step, sequences_[begin]).size();
  for (; end < sequences_.size() && end - begin < most; ++end) {
    const std::size_t n_members = end - begin;
    const std::size_t n_left =
        std::min(n_common, count_common(table_of(step, sequences_[end - 1]), table_of(step, sequences_[end])));
    // One more member must save more reads than what the others lose.
    if (n_left == 0 || n_left * n_members < n_common * (n_members - 1)) break;
    n_common = n_left;
  }
  return end;
}

}  // namespace ebb
