#include "model/representative_keys.h"

#include <algorithm>
#include <cmath>

#include "base/for_each_parallel.h"
#include "base/to_size.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

// The mean over the rows of what each query head of a KV head's group asks, [g][n_dims], not turned yet.
std::vector<float> mean_queries(const QuerySetup& setup, const TailQueries& queries, Span rows, std::size_t head) {
  const std::size_t n_dims = to_size(setup.shape.n_dims);
  std::vector<float> means(setup.group_size() * n_dims, 0.0F);
  for (std::size_t g = 0; g < setup.group_size(); ++g) {
    for (Position row = rows.begin; row < rows.end; row = row + 1) {
      const std::span<const float> query = queries.query(setup.query_head(head, g), row);
      for (std::size_t d = 0; d < n_dims; ++d) means[g * n_dims + d] += query[d];
    }
  }
  for (float& x : means) x *= static_cast<float>(setup.scale / rows.n_tokens());
  return means;
}

// Of one block in one KV head: the sum over the group of query times the mean of the representatives.
class Representatives {
 public:
  Representatives(const KeyDigestLayout& layout, std::size_t n_queries)
      : layout_(layout),
        n_queries_(n_queries),
        planes_(to_size(layout.n_dims) * to_size(layout.n_slots)),
        logits_(n_queries * to_size(layout.n_slots)) {}

  // `queries`: [g][n_dims], turned to where they stand beside this block.
  double score(std::span<const std::byte> digest, std::span<const float> queries) {
    const std::size_t n_slots = to_size(layout_.n_slots);
    read_sketch(layout_, digest, planes_);
    score_kernels().find_logits(queries.data(), n_queries_, to_size(layout_.n_dims), planes_.data(), n_slots,
                                logits_.data(), n_slots);
    std::vector<double> together(to_size(layout_.n_keys), 0.0);
    for (std::size_t g = 0; g < n_queries_; ++g) {
      for (std::size_t k = 0; k < together.size(); ++k) together[k] += double{logits_[g * n_slots + k]};
    }
    // A query times the mean of keys is the mean of its logits for them.
    const std::size_t n = std::min(kRepresentatives, together.size());
    std::ranges::partial_sort(together, together.begin() + static_cast<std::ptrdiff_t>(n), std::greater());
    double sum = 0.0;
    for (std::size_t k = 0; k < n; ++k) sum += together[k];
    return sum / static_cast<double>(n);
  }

 private:
  const KeyDigestLayout& layout_;
  std::size_t n_queries_;
  std::vector<float> planes_;  // [n_dims][n_slots]
  std::vector<float> logits_;  // [g][n_slots]
};

std::vector<double> score_head(const QuerySetup& setup, std::span<const float> means, std::size_t head,
                               std::span<const KeyScorer::Block> blocks, const KeyDigestLayout& layout) {
  const std::size_t n_dims = to_size(setup.shape.n_dims);
  Representatives of_head(layout, setup.group_size());
  const RopeFrequencies& frequencies = setup.layers[setup.layer_of(head)].frequencies;
  std::vector<double> scores;
  for (const KeyScorer::Block& block : blocks) {
    const KeyRotation rotation =
        setup.with_magnitude(make_key_rotation(frequencies, block.anchor.value() + kRepresentativeDistance), head);
    std::vector<float> turned(means.begin(), means.end());
    for (std::size_t g = 0; g < setup.group_size(); ++g) {
      rotate_row(rotation, std::span(turned).subspan(g * n_dims, n_dims));
    }
    scores.push_back(of_head.score(block.digests.subspan(head * layout.bytes(), layout.bytes()), turned));
  }
  return scores;
}

// In place: what is no number has no part.
void to_shares(std::span<double> scores) {
  double most = -1e30;
  for (const double score : scores) most = std::isfinite(score) ? std::max(most, score) : most;
  double total = 0.0;
  for (double& score : scores) {
    score = std::isfinite(score) ? std::exp(score - most) : 0.0;
    total += score;
  }
  for (double& score : scores) score = total > 0.0 ? score / total : 0.0;
}

}  // namespace

// Layers by themselves, so that threads change no bit.
std::vector<float> score_representatives(const QuerySetup& setup, const TailQueries& queries, Span rows,
                                         std::span<const KeyScorer::Block> blocks, const KeyDigestLayout& layout) {
  const std::size_t n_heads = setup.n_kv_heads_in_all();
  const std::size_t n_of_layer = to_size(setup.n_kv_heads);
  std::vector<float> all(blocks.size() * n_heads, 0.0F);
  if (blocks.empty() || rows.empty()) return all;
  for_each_parallel(setup.layers.size(), setup.n_threads, [&](std::size_t layer) {
    if (setup.layers[layer].slides) return;
    std::vector<double> scores(blocks.size(), 0.0);
    for (std::size_t head = layer * n_of_layer; head < (layer + 1) * n_of_layer; ++head) {
      const std::vector<float> means = mean_queries(setup, queries, rows, head);
      const std::vector<double> own = score_head(setup, means, head, blocks, layout);
      for (std::size_t b = 0; b < blocks.size(); ++b) scores[b] += own[b] / setup.shape.n_heads;
    }
    to_shares(scores);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const auto share = static_cast<float>(scores[b]);
      std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(b * n_heads + layer * n_of_layer), n_of_layer, share);
    }
  });
  return all;
}

}  // namespace ebb
