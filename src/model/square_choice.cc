#include "model/square_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "base/keep_share.h"
#include "base/to_size.h"
#include "model/attention_forms.h"
#include "model/attention_work.h"

namespace ebb {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

std::size_t round_to(std::size_t n, std::size_t step) { return (n + step - 1) / step * step; }

// One thread's room, for one query head of one block of rows.
struct SquareRoom {
  SquareRoom(const AttentionShape& shape, std::int32_t stride, std::size_t n_entries)
      : n_groups(to_size(shape.layout.block_size / stride)),
        n_padded(round_to(n_groups, kDiagonalRows)),
        score_stride(round_to(n_entries * n_groups, kVectorKeys)),
        query_floats(n_padded * to_size(shape.layout.head_dim_k) * kVectorKeys),
        n_floats(query_floats + n_padded * kScoreStride + n_groups * score_stride) {}

  std::size_t n_groups;  // of rows, and of a block's keys
  std::size_t n_padded;
  std::size_t score_stride;
  std::size_t query_floats;
  std::size_t n_floats;
};

// The weights of the squares of one block of rows in one KV head.
class SquareWork {
 public:
  SquareWork(const AttentionShape& shape, const AttentionStep& step, const AttentionTensors& tensors,
             AttentionScratch& scratch, std::int32_t stride, std::size_t n_entries, float* at)
      : shape_(shape),
        step_(step),
        tensors_(tensors),
        forms_(shape, step, scratch),
        room_(shape, stride, n_entries),
        stride_(stride),
        queries_(at),
        sums_(queries_ + room_.query_floats),
        scores_(sums_ + room_.n_padded * kScoreStride) {
    rows_.n_rows = static_cast<std::int32_t>(room_.n_padded);
    rows_.head_dim_k = shape.layout.head_dim_k;
    rows_.head_dim_v = shape.layout.head_dim_v;
    rows_.key_stride = shape.layout.key_stride();
    rows_.value_stride = static_cast<std::int32_t>(round_to(to_size(shape.layout.head_dim_v), kVectorKeys));
    rows_.scale = shape.scale / static_cast<float>(stride) * std::numbers::log2e_v<float>;
    rows_.q = queries_;
  }

  // `seen` ends with the rows' own block.
  std::vector<double> weigh(std::size_t sequence, HeadIndex kv_head, BlockTable seen) {
    std::vector<double> weights(seen.size(), 0.0);
    const std::int32_t group = shape_.n_heads / shape_.n_kv_heads;
    const std::int32_t first_row = seen.back().begin - step_.sequences[sequence].first;
    for (std::int32_t h = 0; h < group; ++h) {
      load_queries(to_size(step_.sequences[sequence].row_begin + first_row), to_size(kv_head.value() * group + h));
      for (std::size_t e = 0; e < seen.size(); ++e) score_entry(sequence, kv_head, seen, e);
      for (std::size_t g = 0; g < room_.n_groups; ++g) add_weights(g, seen.size(), weights);
    }
    return weights;
  }

 private:
  // Slot s of a row group's pattern meets the key of slot s: the group's rows from last to first, again and again.
  void load_queries(std::size_t batch_row, std::size_t head) {
    const std::size_t n_dims = to_size(rows_.head_dim_k);
    const std::size_t stride = to_size(stride_);
    for (std::size_t g = 0; g < room_.n_padded; ++g) {
      float* const to = queries_ + (g / kDiagonalRows * kDiagonalRows * n_dims + g % kDiagonalRows) * kVectorKeys;
      for (std::size_t s = 0; s < kVectorKeys; ++s) {
        const std::size_t row = std::min(g, room_.n_groups - 1) * stride + stride - 1 - s % stride;
        const float* const q = tensors_.q + (batch_row + row) * tensors_.q_row_stride + head * tensors_.q_head_stride;
        for (std::size_t d = 0; d < n_dims; ++d) to[d * kDiagonalRows * kVectorKeys + s] = q[d];
      }
    }
  }

  // The scores of an entry's small squares with all row groups.
  void score_entry(std::size_t sequence, HeadIndex kv_head, BlockTable seen, std::size_t e) {
    const TableEntry& entry = seen[e];
    FrameLayout layout = shape_.layout;
    const std::byte* frame = step_.frames + entry.frame.index() * layout.frame_bytes();
    const bool is_own = e + 1 == seen.size();
    if (is_own && layout.seals()) {
      frame = forms_.open_rows(sequence, kv_head, entry);
      EBB_CHECK(frame != nullptr, "the block at {} is of this step and has no open rows", entry.begin.value());
      layout = layout.open_layout();
    }
    BlockView block = view_frame(layout, frame);
    block.begin = entry.begin.value();
    block.n_tokens = entry.n_tokens;
    // The rows' own block may lie elsewhere.
    if (e + 2 < seen.size()) {
      block.next_frame = bytes_between(entry.frame, seen[e + 1].frame, layout.frame_bytes());
    }
    current_kernels().score_diagonals[static_cast<std::size_t>(layout.row_type)](rows_, block, sums_);
    for (std::size_t g = 0; g < room_.n_groups; ++g) {
      float* const scores = scores_ + g * room_.score_stride + e * room_.n_groups;
      for (std::size_t j = 0; j < room_.n_groups; ++j) {
        scores[j] = is_own && j > g ? kNoScore : add_up(sums_ + g * kScoreStride, j, entry.n_tokens);
      }
    }
  }

  // Keys that are not there add nothing; what is no number has no weight.
  [[nodiscard]] float add_up(const float* slots, std::size_t small, std::int32_t n_tokens) const {
    float sum = 0.0F;
    const std::size_t begin = small * to_size(stride_);
    const std::size_t end = std::min(begin + to_size(stride_), to_size(n_tokens));
    if (begin >= end) return kNoScore;
    for (std::size_t s = begin; s < end; ++s) sum += slots[s];
    return std::isfinite(sum) ? sum : kNoScore;
  }

  void add_weights(std::size_t g, std::size_t n_entries, std::vector<double>& weights) {
    float* const scores = scores_ + g * room_.score_stride;
    const std::size_t n = n_entries * room_.n_groups;
    const float largest = *std::max_element(scores, scores + n);
    if (largest == kNoScore) return;
    for (std::size_t i = 0; i < n; ++i) scores[i] -= largest;
    std::fill(scores + n, scores + round_to(n, kVectorKeys), kNoScore);
    current_kernels().exp2_in_place(scores, static_cast<std::int32_t>(round_to(n, kVectorKeys)));
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) total += scores[i];
    for (std::size_t e = 0; e < n_entries; ++e) {
      double sum = 0.0;
      for (std::size_t j = 0; j < room_.n_groups; ++j) sum += scores[e * room_.n_groups + j];
      weights[e] += sum / total;
    }
  }

  const AttentionShape& shape_;
  const AttentionStep& step_;
  const AttentionTensors& tensors_;
  const BlockForms forms_;
  const SquareRoom room_;
  const std::int32_t stride_;
  float* const queries_;  // [n_padded / kDiagonalRows][head_dim_k][kDiagonalRows][kVectorKeys]
  float* const sums_;     // of one entry, by slot: [n_padded][kScoreStride]
  float* const scores_;   // of all small squares: [n_groups][score_stride]
  TileRows rows_;
};

}  // namespace

SquareChoice::Asked SquareChoice::find_asked(const SequenceRows& rows) const {
  Asked asked;
  if (!rows.sight.squares.is_set()) return asked;
  const Span in_step = {rows.first, rows.first + rows.n_rows};
  const Span span = intersect(in_step, rows.sight.where);
  const std::int32_t begin = (span.begin.value() + block_size_ - 1) / block_size_;
  asked.first = Position(begin * block_size_);
  asked.n_blocks = std::max(0, span.end.value() / block_size_ - begin);
  return asked;
}

void SquareChoice::begin(const AttentionShape& shape, const AttentionStep& step, std::int32_t n_threads) {
  block_size_ = shape.layout.block_size;
  n_kv_heads_ = step.n_kv_heads;
  sequences_.clear();
  n_entries_ = 0;
  for (const BlockTable& table : step.tables) n_entries_ = std::max(n_entries_, table.size());
  std::size_t n_looks = 0;
  thread_floats_ = 0;
  for (const SequenceRows& rows : step.sequences) {
    Asked& asked = sequences_.emplace_back(find_asked(rows));
    asked.begin = n_looks;
    if (asked.n_blocks == 0) continue;
    n_looks += to_size(asked.n_blocks) * to_size(n_kv_heads_) * n_entries_;
    thread_floats_ = std::max(thread_floats_, SquareRoom(shape, rows.sight.squares.stride, n_entries_).n_floats);
  }
  if (looks_.size() < n_looks) looks_.resize(n_looks);
  if (floats_.size() < thread_floats_ * to_size(n_threads)) floats_.resize(thread_floats_ * to_size(n_threads));
}

void SquareChoice::choose(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer,
                          const AttentionTensors& tensors, AttentionScratch& scratch, std::int32_t ith,
                          std::int32_t n_threads) {
  std::int32_t item = 0;
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    const Asked& asked = sequences_[s];
    if (asked.n_blocks == 0) continue;
    const Squares& squares = step.sequences[s].sight.squares;
    SquareWork work(shape, step, tensors, scratch, squares.stride, n_entries_,
                    floats_.data() + to_size(ith) * thread_floats_);
    // Later blocks of rows see more: dealt in turn, threads get alike.
    for (std::int32_t i = 0; i < asked.n_blocks * n_kv_heads_; ++i) {
      if (item++ % n_threads != ith) continue;
      const HeadIndex head(i % n_kv_heads_);
      const std::int32_t block = i / n_kv_heads_;
      const Position own = asked.first + block * block_size_;
      const BlockTable table = step.table(s, layer, head);
      const auto end = std::ranges::partition_point(table, [own](const TableEntry& e) { return e.begin <= own; });
      const BlockTable seen = table.first(static_cast<std::size_t>(end - table.begin()));
      EBB_CHECK(!seen.empty() && seen.back().begin == own, "rows at {} have no block of their own", own.value());
      std::uint8_t* const looks = looks_.data() + place(asked, head, block);
      std::fill_n(looks, n_entries_, std::uint8_t{0});
      for (const std::int32_t e : keep_share(work.weigh(s, head, seen), squares.threshold)) looks[e] = 1;
    }
  }
}

std::size_t SquareChoice::place(const Asked& asked, HeadIndex head, std::int32_t block) const {
  return asked.begin + (head.index() * to_size(asked.n_blocks) + to_size(block)) * n_entries_;
}

bool SquareChoice::looks_at(std::size_t sequence, HeadIndex head, Position row, std::int32_t entry) const {
  const Asked& asked = sequences_[sequence];
  const std::int32_t block = row < asked.first ? -1 : (row - asked.first) / block_size_;
  if (block < 0 || block >= asked.n_blocks) return true;
  return looks_[place(asked, head, block) + to_size(entry)] != 0;
}

}  // namespace ebb
