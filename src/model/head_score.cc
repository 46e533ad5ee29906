#include "model/head_score.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/to_size.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

// Blocks of a run at most. More: their digests leave the processor's second cache until they are read again.
constexpr std::size_t kMostOfRun = 256;

// Below any logit: slots that hold no key.
constexpr float kNoKey = -1e30F;

std::size_t padded(std::size_t n, std::size_t to = kScoreLanes) { return (n + to - 1) / to * to; }

// Memory is asked for what is read a few blocks later: digests lie far apart.
void ask_for(std::span<const std::byte> bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes.size(); i += kLine) __builtin_prefetch(bytes.data() + i);
}

// So many blocks before they are read.
constexpr std::size_t kAhead = 16;

}  // namespace

HeadScore::HeadScore(const KeyDigestLayout& layout, std::span<const KeyScorer::Block> blocks, const By& by)
    : layout_(layout),
      blocks_(blocks),
      by_(by),
      n_dims_(padded_dims(layout)),
      levels_{.step = std::vector<float>(n_dims_), .per_step = std::vector<float>(n_dims_)},
      box_(layout),
      least_(n_dims_),
      greatest_(n_dims_) {}

void HeadScore::begin(std::size_t head) {
  head_ = head;
  n_rows_ = 0;
  queries_.clear();
}

void HeadScore::add_queries(std::int32_t n_turned, GroupRows rows) {
  of_query_head_ = std::move(rows.of_query_head);
  of_row_ = std::move(rows.of_row);
  n_rows_ = of_query_head_.size();
  n_lanes_ = padded(n_rows_, kRowLanes);
  Turned& own = queries_[n_turned];
  own.by_channel.assign(2 * n_dims_ * n_lanes_, 0.0F);
  own.sizes.assign(n_dims_, 0.0F);
  const std::size_t n_dims = to_size(layout_.n_dims);
  for (std::size_t row = 0; row < n_rows_; ++row) {
    for (std::size_t d = 0; d < n_dims; ++d) {
      const float x = rows.queries[row * n_dims + d];
      own.by_channel[d * n_lanes_ + row] = x;
      own.by_channel[(n_dims_ + d) * n_lanes_ + row] = std::abs(x);
      own.sizes[d] += std::abs(x);
    }
  }
}

std::vector<float> HeadScore::find_scores() {
  if (n_rows_ == 0) return std::vector<float>(blocks_.size(), 0.0F);
  row_quads_.resize(2 * n_dims_ / 4 * n_lanes_);
  base_.resize(n_lanes_);
  unit_.resize(n_lanes_);
  rows_ = {.quads = row_quads_.data(), .base = base_.data(), .unit = unit_.data()};
  scored_.resize(blocks_.size());
  std::iota(scored_.begin(), scored_.end(), std::size_t{0});
  if (by_.bounds != nullptr) bound_all();
  if (by_.n_sketched > 0) {
    if (by_.bounds != nullptr) scored_ = best_blocks();
    sketch_all();
  } else {
    // Of each block as if it were one key.
    std::swap(most_, bounds_);
    sums_.assign(most_.size(), 1.0F);
  }
  return share();
}

// --- runs ---

std::size_t HeadScore::begin_run(std::span<const std::size_t> blocks) {
  const std::int32_t n_turned = blocks_[blocks.front()].n_turned;
  levels_.queries = &queries_.at(n_turned);
  box_.begin(levels_.queries->sizes.data());
  std::size_t n = 0;
  for (; n < std::min(blocks.size(), kMostOfRun) && blocks_[blocks[n]].n_turned == n_turned; ++n) {
    if (n + kAhead < blocks.size()) ask_for(digest(blocks[n + kAhead]).first(layout_.sketch_offset()));
    if (!box_.add(digest(blocks[n]))) break;
  }
  for (std::size_t d = 0; d < n_dims_; ++d) {
    levels_.step[d] = box_.step(d);
    levels_.per_step[d] = levels_.step[d] > 0.0F ? 1.0F / levels_.step[d] : 0.0F;
  }
  return n;
}

// --- bounds ---

// max(q lo, q hi) is q middle + |q| radius, channel by channel.
void HeadScore::bound_all() {
  const ScoreKernels& kernels = score_kernels();
  const KeyBounds::Head& of_head = by_.bounds->head(head_);
  const std::size_t n_quads = 2 * n_dims_ / 4;
  // As KeyBounds has room for what is read beyond a run.
  bounds_.resize((blocks_.size() + kKeysTogether) * n_lanes_);
  most_bound_.assign(n_lanes_, kNoKey);
  for (const KeyBounds::Run& run : of_head.runs) {
    kernels.weigh_steps(queries_.at(run.n_turned).by_channel.data(), n_lanes_, 2 * n_dims_, run.least.data(),
                        run.step.data(), rows_);
    const ByteKeys keys{.quads = of_head.quads.data() + run.first * n_quads,
                        .key_stride = n_quads,
                        .quad_stride = 1,
                        .n_keys = padded(run.n, kKeysTogether)};
    float* out = bounds_.data() + run.first * n_lanes_;
    kernels.multiply_bytes(rows_, n_lanes_, 2 * n_dims_, keys, out);
    kernels.find_most(out, run.n, n_lanes_, most_bound_.data());
  }
}

std::vector<std::size_t> HeadScore::best_blocks() {
  // Lanes without a row are behind everything.
  std::ranges::fill(std::span(most_bound_).subspan(n_rows_), -kNoKey);
  std::vector<float> behind(blocks_.size());
  score_kernels().find_behind(bounds_.data(), most_bound_.data(), blocks_.size(), n_lanes_, behind.data());
  // Numbers from 0 on are ordered as their bits are (-0 is not), and equal ones by their places.
  std::vector<std::uint64_t> order(blocks_.size());
  for (std::size_t block = 0; block < order.size(); ++block) {
    order[block] =
        std::uint64_t{std::bit_cast<std::uint32_t>(behind[block] > 0.0F ? behind[block] : 0.0F)} << 32 | block;
  }
  std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(by_.n_sketched));
  std::vector<std::size_t> blocks(by_.n_sketched);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::uint32_t>(order[i]);
  std::ranges::sort(blocks);
  return blocks;
}

// --- sketches ---

void HeadScore::sketch_all() {
  const std::size_t n_slots = to_size(layout_.n_slots);
  most_.assign(scored_.size() * n_lanes_, kNoKey);
  sums_.assign(scored_.size() * n_lanes_, 0.0F);
  scratch_.resize(n_slots * 2 * kScoreLanes);
  code_levels_.resize(4 * n_dims_);
  key_quads_.resize(n_dims_ / 4 * n_slots);
  for (std::size_t first = 0; first < scored_.size();) {
    const std::size_t n = begin_run(std::span(scored_).subspan(first));
    score_kernels().weigh_steps(levels_.queries->by_channel.data(), n_lanes_, n_dims_, box_.least().data(),
                                levels_.step.data(), rows_);
    for (std::size_t i = first; i < first + n; ++i) {
      if (i + kAhead < first + n) ask_for(digest(scored_[i + kAhead]));
      sketch(i);
    }
    first += n;
  }
}

void HeadScore::sketch(std::size_t i) {
  const ScoreKernels& kernels = score_kernels();
  const std::size_t n_dims = to_size(layout_.n_dims);
  const std::size_t n_slots = to_size(layout_.n_slots);
  const std::size_t n_keys = to_size(layout_.n_keys);
  const std::span<const std::byte> own = digest(scored_[i]);
  read_steps(layout_, own, {.least = std::span(least_).first(n_dims), .step = std::span(greatest_).first(n_dims)});
  kernels.find_code_levels(least_.data(), greatest_.data(), box_.least().data(), levels_.per_step.data(), n_dims_,
                           code_levels_.data());
  std::span<const std::byte> codes = own.subspan(layout_.sketch_offset());
  if (n_dims % 4 != 0) {
    // Channels that there are none of have one level, whatever their codes.
    sketch_.assign(n_dims_ * n_slots / 4, std::byte{0});
    std::ranges::copy(codes, sketch_.begin());
    codes = sketch_;
  }
  kernels.spread_codes(reinterpret_cast<const unsigned char*>(codes.data()), code_levels_.data(), padded(n_dims, 4),
                       n_slots, key_quads_.data());
  const ByteKeys keys{
      .quads = key_quads_.data(), .key_stride = 1, .quad_stride = n_slots, .n_keys = padded(n_keys, kKeysTogether)};
  kernels.weigh_keys(rows_, n_lanes_, n_dims_, keys, n_keys, scratch_.data(), &most_[i * n_lanes_],
                     &sums_[i * n_lanes_]);
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
      if (of_row_[row] + by_.n_left_out < block.first_row) continue;
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
