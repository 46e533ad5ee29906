#include "model/key_bounds.h"

#include <algorithm>
#include <utility>

#include "base/to_size.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

// Blocks of a run at most. More: what a new block adds to its run is reckoned again for more. Fewer: queries are brought to levels more often.
constexpr std::size_t kMostBounded = 128;

}  // namespace

std::size_t KeyBounds::bytes_of(std::size_t n_blocks, std::size_t n_heads, const KeyDigestLayout& layout) {
  return n_blocks * n_heads * 2 * padded_dims(layout);
}

void KeyBounds::clear() {
  known_ = {};
  heads_ = {};
}

void KeyBounds::begin(std::span<const KeyScorer::Block> blocks, const KeyDigestLayout& layout, std::size_t n_heads,
                      bool is_box) {
  if (heads_.size() != n_heads || is_box != is_box_) clear();
  blocks_ = blocks;
  layout_ = layout;
  is_box_ = is_box;
  n_dims_ = padded_dims(layout);
  heads_.resize(n_heads);
  std::vector<Known> known;
  known.reserve(blocks.size());
  for (const KeyScorer::Block& block : blocks) {
    known.push_back({.digest_id = block.digest_id, .n_turned = block.n_turned});
  }
  const auto n_same = static_cast<std::size_t>(std::ranges::mismatch(known, known_).in1 - known.begin());
  known_ = std::move(known);
  for (Head& head : heads_) {
    std::vector<Run>& runs = head.runs;
    while (!runs.empty() && (!runs.back().is_closed || runs.back().first + runs.back().n > n_same)) runs.pop_back();
  }
}

const KeyBounds::Head& KeyBounds::head(std::size_t head) {
  Head& own = heads_[head];
  // A run's last keys may lie behind its last block, where the next run's then go.
  own.quads.resize((blocks_.size() + kKeysTogether) * 2 * n_dims_ / 4);
  std::size_t n = own.runs.empty() ? 0 : own.runs.back().first + own.runs.back().n;
  for (; n < blocks_.size(); n += own.runs.back().n) add_run(head, n);
  return own;
}

// The widths of channels count alike: who asks is not known.
void KeyBounds::add_run(std::size_t head, std::size_t first) {
  const std::vector<float> weights(n_dims_, 1.0F);
  BoxRun box(layout_);
  box.begin(weights.data());
  Run run{.first = first,
          .n_turned = blocks_[first].n_turned,
          .least = std::vector<float>(2 * n_dims_),
          .step = std::vector<float>(2 * n_dims_)};
  for (std::size_t b = first; b < blocks_.size() && !run.is_closed; ++b) {
    run.is_closed =
        run.n == kMostBounded || blocks_[b].n_turned != run.n_turned || !box.add(digest_of(blocks_[b], layout_, head));
    if (!run.is_closed) ++run.n;
  }
  // A distance from the middle of a box is half its width at most.
  for (std::size_t d = 0; d < n_dims_; ++d) {
    run.least[d] = box.least()[d];
    run.step[d] = box.step(d);
    run.step[n_dims_ + d] = 0.5F * run.step[d];
  }
  put_levels(head, run);
  heads_[head].runs.push_back(std::move(run));
}

void KeyBounds::put_levels(std::size_t head, const Run& run) {
  const std::size_t n_dims = to_size(layout_.n_dims);
  std::vector<float> per_step(2 * n_dims_), middle(n_dims_), radius(n_dims_);
  for (std::size_t d = 0; d < per_step.size(); ++d) per_step[d] = run.step[d] > 0.0F ? 1.0F / run.step[d] : 0.0F;
  auto* out = reinterpret_cast<unsigned char*>(heads_[head].quads.data()) + run.first * 2 * n_dims_;
  for (std::size_t b = run.first; b < run.first + run.n; ++b, out += 2 * n_dims_) {
    const KeyCuboid cuboid{.middle = std::span(middle).first(n_dims), .radius = std::span(radius).first(n_dims)};
    const std::span<const std::byte> digest = digest_of(blocks_[b], layout_, head);
    if (is_box_) {
      read_half_box(layout_, digest, cuboid);
    } else {
      read_cuboid(layout_, digest, cuboid);
    }
    const auto put = [&](const std::vector<float>& x, std::size_t at) {
      score_kernels().find_levels(x.data(), run.least.data() + at, per_step.data() + at, n_dims_, out + at);
    };
    put(middle, 0);
    put(radius, n_dims_);
  }
}

}  // namespace ebb
