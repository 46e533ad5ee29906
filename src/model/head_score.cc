#include "model/head_score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/to_size.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

// Blocks whose bounds are computed side by side. More: their planes leave the processor's first cache.
constexpr std::size_t kBoundTogether = 64;

// Below any logit: slots that hold no key.
constexpr float kNoKey = -1e30F;

std::size_t padded(std::size_t n, std::size_t to = kScoreLanes) { return (n + to - 1) / to * to; }

// Memory is asked for what is read a few blocks later: digests lie far apart.
void ask_for(std::span<const std::byte> bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes.size(); i += kLine) __builtin_prefetch(bytes.data() + i);
}

// So many blocks before they are read.
constexpr std::size_t kAhead = 4;

}  // namespace

HeadScore::HeadScore(const KeyDigestLayout& layout, std::size_t head, std::span<const KeyScorer::Block> blocks,
                     KeyEstimate estimate, std::size_t most_sketched)
    : layout_(layout),
      head_(head),
      blocks_(blocks),
      sketches_(estimate == KeyEstimate::kSketch),
      is_box_(estimate == KeyEstimate::kBox),
      most_sketched_(most_sketched),
      least_(to_size(layout.n_dims)),
      step_(to_size(layout.n_dims)) {}

void HeadScore::add_queries(std::int32_t n_turned, GroupRows rows) {
  of_query_head_ = std::move(rows.of_query_head);
  of_row_ = std::move(rows.of_row);
  n_rows_ = of_query_head_.size();
  const std::size_t n_dims = to_size(layout_.n_dims);
  n_lanes_ = padded(n_rows_, kRowLanes);
  Turned& own = queries_[n_turned];
  if (needs_bounds()) own.by_row.resize(n_rows_ * 2 * n_dims);
  if (sketches_) own.by_channel.assign(n_dims * n_lanes_, 0.0F);
  for (std::size_t row = 0; row < n_rows_; ++row) {
    for (std::size_t d = 0; d < n_dims; ++d) {
      const float x = rows.queries[row * n_dims + d];
      if (sketches_) own.by_channel[d * n_lanes_ + row] = x;
      if (!needs_bounds()) continue;
      own.by_row[row * 2 * n_dims + d] = x;
      own.by_row[(row * 2 + 1) * n_dims + d] = std::abs(x);
    }
  }
}

std::vector<float> HeadScore::find_scores() {
  if (n_rows_ == 0) return std::vector<float>(blocks_.size(), 0.0F);
  if (needs_bounds()) bound_all();
  if (sketches_ && needs_bounds()) {
    scored_ = best_blocks();
  } else {
    scored_.resize(blocks_.size());
    std::iota(scored_.begin(), scored_.end(), std::size_t{0});
  }
  most_.assign(scored_.size() * n_lanes_, kNoKey);
  sums_.assign(scored_.size() * n_lanes_, 0.0F);
  if (sketches_) sketch_all();
  if (!sketches_) take_bounds();
  return share();
}

// --- bounds ---

// By runs of blocks that were turned alike.
void HeadScore::bound_all() {
  // A run's last lanes may lie behind its last block, where the next run's then go.
  bound_stride_ = padded(blocks_.size()) + kScoreLanes;
  bounds_.assign(n_rows_ * bound_stride_, kNoKey);
  for (std::size_t first = 0; first < blocks_.size();) {
    std::size_t end = first + 1;
    while (end < blocks_.size() && end - first < kBoundTogether && blocks_[end].n_turned == blocks_[first].n_turned) {
      ++end;
    }
    bound(first, end);
    first = end;
  }
  for (std::size_t row = 0; row < n_rows_; ++row) {
    const auto own = std::span(bounds_).subspan(row * bound_stride_, bound_stride_);
    std::ranges::fill(own.subspan(blocks_.size()), kNoKey);
  }
}

// max(q lo, q hi) is q middle + |q| radius, channel by channel: blocks side by side, as keys are.
void HeadScore::bound(std::size_t first, std::size_t end) {
  const std::size_t n_dims = to_size(layout_.n_dims);
  const std::size_t n_lanes = padded(end - first);
  planes_.assign(2 * n_dims * n_lanes, 0.0F);
  for (std::size_t block = first; block < end; ++block) {
    if (block + kAhead < blocks_.size()) ask_for(digest(block + kAhead).first(layout_.sketch_offset()));
    read_middle(block);
    float* const middle = planes_.data() + block - first;
    for (std::size_t d = 0; d < n_dims; ++d) {
      middle[d * n_lanes] = least_[d];
      middle[(n_dims + d) * n_lanes] = step_[d];
    }
  }
  score_kernels().find_logits(turned(first).by_row.data(), n_rows_, 2 * n_dims, planes_.data(), n_lanes,
                              bounds_.data() + first, bound_stride_);
}

// Into least_ and step_: the middle and the radius.
void HeadScore::read_middle(std::size_t block) {
  if (!is_box_) return read_cuboid(layout_, digest(block), {.middle = least_, .radius = step_});
  read_box(layout_, digest(block), {.least = least_, .greatest = step_});
  for (std::size_t d = 0; d < least_.size(); ++d) {
    step_[d] = 0.5F * (step_[d] - least_[d]);
    least_[d] += step_[d];
  }
}

std::vector<std::size_t> HeadScore::best_blocks() {
  std::vector<float> behind(blocks_.size(), std::numeric_limits<float>::infinity());
  for (std::size_t row = 0; row < n_rows_; ++row) {
    const float* const own = bounds_.data() + row * bound_stride_;
    const float most = score_kernels().find_most(own, bound_stride_);
    for (std::size_t block = 0; block < behind.size(); ++block) {
      const float x = most - own[block];
      behind[block] = x < behind[block] ? x : behind[block];
    }
  }
  std::vector<std::size_t> blocks(blocks_.size());
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  std::ranges::nth_element(blocks, blocks.begin() + static_cast<std::ptrdiff_t>(most_sketched_), {},
                           [&](std::size_t block) { return std::pair(behind[block], block); });
  blocks.resize(most_sketched_);
  std::ranges::sort(blocks);
  return blocks;
}

// Of each block as if it were one key.
void HeadScore::take_bounds() {
  for (std::size_t i = 0; i < scored_.size(); ++i) {
    for (std::size_t row = 0; row < n_rows_; ++row) {
      most_[i * n_lanes_ + row] = bounds_[row * bound_stride_ + i];
      sums_[i * n_lanes_ + row] = 1.0F;
    }
  }
}

// --- sketches ---

void HeadScore::sketch_all() {
  const std::size_t n_pairs = (to_size(layout_.n_dims) + 1) / 2;
  const std::size_t n_slots = to_size(layout_.n_slots);
  scratch_.resize(n_slots * 2 * kScoreLanes);
  steps_.resize(n_pairs * n_lanes_);
  codes_.resize(n_pairs * n_slots);
  base_.resize(n_lanes_);
  unit_.resize(n_lanes_);
  for (std::size_t i = 0; i < scored_.size(); ++i) {
    if (i + kAhead < scored_.size()) ask_for(digest(scored_[i + kAhead]));
    sketch(i);
  }
}

void HeadScore::sketch(std::size_t i) {
  const ScoreKernels& kernels = score_kernels();
  const std::size_t n_dims = to_size(layout_.n_dims);
  const std::size_t n_slots = to_size(layout_.n_slots);
  const std::span<const std::byte> own = digest(scored_[i]);
  const SketchRows rows{.steps = steps_.data(), .base = base_.data(), .unit = unit_.data()};
  const SketchCodes codes{
      .pairs = codes_.data(), .n_keys = to_size(layout_.n_keys), .n_slots = n_slots, .scratch = scratch_.data()};
  read_steps(layout_, own, {.least = least_, .step = step_});
  kernels.spread_codes(reinterpret_cast<const unsigned char*>(own.data()) + layout_.sketch_offset(), n_dims, n_slots,
                       codes_.data());
  kernels.weigh_steps(turned(scored_[i]).by_channel.data(), n_lanes_, n_dims, least_.data(), step_.data(), rows);
  kernels.weigh_codes(rows, n_lanes_, n_dims, codes, &most_[i * n_lanes_], &sums_[i * n_lanes_]);
}

// --- shares ---

// For each query head the largest share of a block in any row that counts, times how rarely the head looks at cold ones.
std::vector<float> HeadScore::share() {
  const std::size_t n_query_heads = *std::ranges::max_element(of_query_head_) + 1;
  std::vector<float> totals(n_lanes_);
  std::vector<float>& weights = most_;
  score_kernels().weigh(most_.data(), sums_.data(), scored_.size(), n_lanes_, weights.data(), totals.data());
  std::vector<float> shares(scored_.size() * n_query_heads, 0.0F);
  std::vector<float> most_cold(n_rows_, 0.0F);
  for (std::size_t i = 0; i < scored_.size(); ++i) {
    const KeyScorer::Block& block = blocks_[scored_[i]];
    for (std::size_t row = 0; row < n_rows_; ++row) {
      if (of_row_[row] < block.first_row) continue;
      const float own = weights[i * n_lanes_ + row] / totals[row];
      float& share = shares[i * n_query_heads + of_query_head_[row]];
      share = std::max(share, own);
      if (block.is_cold) most_cold[row] = std::max(most_cold[row], own);
    }
  }
  std::vector<double> cold(n_query_heads, 0.0);
  std::vector<double> n_own(n_query_heads, 0.0);
  for (std::size_t row = 0; row < n_rows_; ++row) {
    cold[of_query_head_[row]] += double{most_cold[row]};
    ++n_own[of_query_head_[row]];
  }
  std::vector<float> scores(blocks_.size(), 0.0F);
  for (std::size_t i = 0; i < scored_.size(); ++i) {
    for (std::size_t g = 0; g < n_query_heads; ++g) {
      const double rarely = 1.0 - (n_own[g] > 0.0 ? cold[g] / n_own[g] : 0.0);
      float& score = scores[scored_[i]];
      score = std::max(score, static_cast<float>(rarely * double{shares[i * n_query_heads + g]}));
    }
  }
  return scores;
}

}  // namespace ebb
