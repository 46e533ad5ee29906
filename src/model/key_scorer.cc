#include "model/key_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/for_each_parallel.h"
#include "base/to_size.h"
#include "model/model.h"
#include "model/representative_keys.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

// Blocks whose bounds are computed side by side. More: their planes leave the processor's cache.
constexpr std::size_t kBoundTogether = 256;

// Below any logit: slots that hold no key.
constexpr float kNoKey = -1e30F;

// A block whose best key is this far behind has no share worth telling: its 64 keys have 0.0004 at most.
constexpr float kFarBehind = 12.0F;

// What one row's softmax goes by, of one block: its largest logit, and how many times exp(that) all its keys are worth.
struct RowPart {
  float most = kNoKey;
  float sum = 0.0F;
};

// The queries of a group, and of which of its heads and of which row each is.
struct GroupRows {
  std::vector<float> queries;
  std::vector<std::size_t> of_query_head;
  std::vector<std::int32_t> of_row;
};

// One KV head: the queries of its group, turned to where they stand, and what they give each block.
class HeadScore {
 public:
  HeadScore(const KeyDigestLayout& layout, std::size_t head, std::span<const KeyScorer::Block> blocks,
            std::size_t most_sketched)
      : layout_(layout), head_(head), blocks_(blocks), most_sketched_(most_sketched) {}

  // [n_rows][n_dims] for keys that were turned by so much.
  void add_queries(std::int32_t n_turned, GroupRows rows) {
    of_query_head_ = std::move(rows.of_query_head);
    of_row_ = std::move(rows.of_row);
    n_rows_ = of_query_head_.size();
    queries_.emplace(n_turned, std::move(rows.queries));
  }

  // The score of each block.
  std::vector<float> find_scores(KeyEstimate estimate) {
    parts_.assign(blocks_.size() * n_rows_, {});
    std::vector<std::size_t> scored(blocks_.size());
    std::iota(scored.begin(), scored.end(), std::size_t{0});
    if (estimate != KeyEstimate::kSketch || blocks_.size() > most_sketched_) {
      bound_all(estimate == KeyEstimate::kBox);
    }
    if (estimate == KeyEstimate::kSketch) {
      best_.assign(n_rows_, kNoKey);
      if (scored.size() > most_sketched_) keep_best(scored);
      for (const std::size_t block : scored) sketch(block);
    }
    return share(scored);
  }

 private:
  [[nodiscard]] std::span<const std::byte> digest(std::size_t block) const {
    return blocks_[block].digests.subspan(head_ * layout_.bytes(), layout_.bytes());
  }
  [[nodiscard]] const std::vector<float>& queries(std::size_t block) const {
    return queries_.at(blocks_[block].n_turned);
  }

  // All of them, by runs of blocks that were turned alike.
  void bound_all(bool is_box) {
    for (std::size_t first = 0; first < blocks_.size();) {
      std::size_t end = first + 1;
      while (end < blocks_.size() && end - first < kBoundTogether && blocks_[end].n_turned == blocks_[first].n_turned) {
        ++end;
      }
      bound(first, end, is_box);
      first = end;
    }
  }

  // max(q lo, q hi) is q middle + |q| radius, channel by channel: blocks side by side, as keys are.
  void bound(std::size_t first, std::size_t end, bool is_box) {
    const std::size_t n_dims = to_size(layout_.n_dims);
    const std::size_t n_lanes = (end - first + kScoreLanes - 1) / kScoreLanes * kScoreLanes;
    middle_.resize(n_dims);
    radius_.resize(n_dims);
    planes_.assign(n_dims * n_lanes, 0.0F);
    radii_.assign(n_dims * n_lanes, 0.0F);
    for (std::size_t block = first; block < end; ++block) {
      read_middle(block, is_box);
      for (std::size_t d = 0; d < n_dims; ++d) {
        planes_[d * n_lanes + block - first] = middle_[d];
        radii_[d * n_lanes + block - first] = radius_[d];
      }
    }
    std::vector<float> lengths(queries(first));
    for (float& x : lengths) x = std::abs(x);
    logits_.resize(n_rows_ * n_lanes);
    spread_.resize(n_rows_ * n_lanes);
    score_kernels().find_logits(queries(first).data(), n_rows_, n_dims, planes_.data(), n_lanes, logits_.data());
    score_kernels().find_logits(lengths.data(), n_rows_, n_dims, radii_.data(), n_lanes, spread_.data());
    for (std::size_t block = first; block < end; ++block) {
      for (std::size_t row = 0; row < n_rows_; ++row) {
        const std::size_t at = row * n_lanes + block - first;
        parts_[block * n_rows_ + row] = {.most = logits_[at] + spread_[at], .sum = 1.0F};
      }
    }
  }

  void read_middle(std::size_t block, bool is_box) {
    if (!is_box) return read_cuboid(layout_, digest(block), {.middle = middle_, .radius = radius_});
    read_box(layout_, digest(block), {.least = middle_, .greatest = radius_});
    for (std::size_t d = 0; d < middle_.size(); ++d) {
      radius_[d] = 0.5F * (radius_[d] - middle_[d]);
      middle_[d] += radius_[d];
    }
  }

  // Those whose bound comes nearest to the best of any row.
  void keep_best(std::vector<std::size_t>& blocks) const {
    std::vector<float> most(n_rows_, kNoKey);
    for (std::size_t i = 0; i < parts_.size(); ++i) most[i % n_rows_] = std::max(most[i % n_rows_], parts_[i].most);
    std::vector<float> least_behind(blocks_.size(), std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      float& behind = least_behind[i / n_rows_];
      behind = std::min(behind, most[i % n_rows_] - parts_[i].most);
    }
    std::ranges::nth_element(blocks, blocks.begin() + static_cast<std::ptrdiff_t>(most_sketched_), {},
                             [&](std::size_t block) { return std::pair(least_behind[block], block); });
    blocks.resize(most_sketched_);
    std::ranges::sort(blocks);
  }

  void sketch(std::size_t block) {
    const auto n_keys = to_size(layout_.n_slots);
    planes_.resize(to_size(layout_.n_dims) * n_keys);
    logits_.resize(n_rows_ * n_keys);
    read_sketch(layout_, digest(block), planes_);
    score_kernels().find_logits(queries(block).data(), n_rows_, to_size(layout_.n_dims), planes_.data(), n_keys,
                                logits_.data());
    for (std::size_t row = 0; row < n_rows_; ++row) {
      float* const own = logits_.data() + row * n_keys;
      std::fill(own + layout_.n_keys, own + n_keys, kNoKey);
      RowPart& part = parts_[block * n_rows_ + row];
      float& best = best_[row];
      part.most = score_kernels().sum_weights(own, n_keys, best - kFarBehind, &part.sum);
      best = std::max(best, part.most);
    }
  }

  [[nodiscard]] std::vector<float> share(std::span<const std::size_t> scored) const {
    std::vector<float> scores(blocks_.size(), 0.0F);
    if (n_rows_ == 0) return scores;
    const std::size_t n_query_heads = *std::ranges::max_element(of_query_head_) + 1;
    std::vector<float> shares(blocks_.size());
    for (std::size_t g = 0; g < n_query_heads; ++g) {
      std::ranges::fill(shares, 0.0F);
      const double rarely = 1.0 - share_of_query_head(g, scored, shares);
      for (const std::size_t block : scored) {
        scores[block] = std::max(scores[block], static_cast<float>(rarely * double{shares[block]}));
      }
    }
    return scores;
  }

  // The largest share of each block; returns the largest of a cold one, on average over rows.
  double share_of_query_head(std::size_t query_head, std::span<const std::size_t> scored,
                             std::span<float> shares) const {
    double cold = 0.0;
    std::size_t n_own = 0;
    for (std::size_t row = 0; row < n_rows_; ++row) {
      if (of_query_head_[row] != query_head) continue;
      ++n_own;
      float most = kNoKey;
      for (const std::size_t block : scored) most = std::max(most, parts_[block * n_rows_ + row].most);
      double total = 0.0;
      const auto weight = [&](std::size_t block) {
        const RowPart& part = parts_[block * n_rows_ + row];
        return double{part.sum} * std::exp(double{part.most - most});
      };
      for (const std::size_t block : scored) total += weight(block);
      double most_cold = 0.0;
      for (const std::size_t block : scored) {
        if (of_row_[row] < blocks_[block].first_row) continue;
        const double own = weight(block) / total;
        shares[block] = std::max(shares[block], static_cast<float>(own));
        if (blocks_[block].is_cold) most_cold = std::max(most_cold, own);
      }
      cold += most_cold;
    }
    return n_own > 0 ? cold / static_cast<double>(n_own) : 0.0;
  }

  const KeyDigestLayout& layout_;
  const std::size_t head_;
  const std::span<const KeyScorer::Block> blocks_;
  const std::size_t most_sketched_;
  std::size_t n_rows_ = 0;
  std::vector<std::size_t> of_query_head_;
  std::vector<std::int32_t> of_row_;
  std::map<std::int32_t, std::vector<float>> queries_;  // by how far keys were turned
  std::vector<RowPart> parts_;                          // [block][row]
  std::vector<float> best_;                             // [row], of blocks sketched so far
  std::vector<float> middle_, radius_, planes_, radii_, logits_, spread_;
};

// A query that is no number, or larger than any, asks for nothing.
bool is_sound(std::span<const float> query) {
  return std::ranges::all_of(query, [](float x) { return std::abs(x) < 1e15F; });
}

GroupRows turned_rows(const QuerySetup& setup, const TailQueries& queries, Span rows, std::size_t head,
                      std::int32_t n_turned) {
  GroupRows turned;
  for (Position row = rows.begin; row < rows.end; row = row + 1) {
    const RopeFrequencies& frequencies = setup.layers[setup.layer_of(head)].frequencies;
    const KeyRotation rotation =
        setup.with_magnitude(make_key_rotation(frequencies, queries.anchor(row).value() - n_turned), head);
    for (std::size_t g = 0; g < setup.group_size(); ++g) {
      const std::span<const float> query = queries.query(setup.query_head(head, g), row);
      if (!is_sound(query)) continue;
      const std::size_t at = turned.queries.size();
      turned.queries.insert(turned.queries.end(), query.begin(), query.end());
      turned.of_query_head.push_back(g);
      turned.of_row.push_back(row - rows.begin);
      const std::span<float> own = std::span(turned.queries).subspan(at);
      rotate_row(rotation, own);
      for (float& x : own) x *= static_cast<float>(setup.scale);
    }
  }
  return turned;
}

}  // namespace

KeyScorer::KeyScorer(const Model& model, std::int32_t n_threads)
    : KeyScorer(QuerySetup::of(model, n_threads), static_cast<double>(model.file().n_parameters())) {}

double KeyScorer::n_products(std::int32_t n_rows, const KeyDigestLayout& layout) const {
  return static_cast<double>(n_rows) * setup_.shape.n_layers * setup_.shape.n_heads * layout.n_dims * layout.n_slots;
}

std::size_t KeyScorer::most_sketched(std::int32_t n_rows, const KeyDigestLayout& layout) const {
  return std::clamp(kMostProducts / static_cast<std::size_t>(n_products(n_rows, layout)), kLeastSketched,
                    kMostSketched);
}

double KeyScorer::cost_in_tokens(std::int32_t n_rows, std::size_t n_blocks, const KeyDigestLayout& layout) const {
  // Products that are multiplied in the time in which a number is read from its two bits, and in which a token of the smallest model is
  // computed, whose weights take no time beside all else: by measurement, on two threads of a Zen 4 server.
  constexpr double kPerRead = 8.0;
  constexpr double kPerToken = 1e7;
  const std::size_t n_sketched = std::min(n_blocks, most_sketched(n_rows, layout));
  const double n_read = kPerRead * static_cast<double>(setup_.n_kv_heads_in_all()) * layout.n_dims * layout.n_slots;
  double n = static_cast<double>(n_sketched) * (n_products(n_rows, layout) + n_read);
  // The range and the middle of each channel stand for a key each.
  if (n_sketched < n_blocks)
    n += static_cast<double>(n_blocks) * 2.0 * (n_products(n_rows, layout) + n_read) / layout.n_slots;
  return n / (n_weights_ + kPerToken);
}

// Heads by themselves, so that threads change no bit.
std::vector<float> KeyScorer::score(const TailQueries& queries, Span rows, std::span<const Block> blocks,
                                    const KeyDigestLayout& layout, KeyEstimate estimate) const {
  if (estimate == KeyEstimate::kRepresentative) return score_representatives(setup_, queries, rows, blocks, layout);
  const std::size_t n_heads = setup_.n_kv_heads_in_all();
  std::vector<float> scores(blocks.size() * n_heads, 0.0F);
  if (blocks.empty() || rows.empty()) return scores;
  const std::size_t n_most = most_sketched(rows.n_tokens(), layout);
  std::set<std::int32_t> turns;
  for (const Block& block : blocks) turns.insert(block.n_turned);
  for_each_parallel(n_heads, setup_.n_threads, [&](std::size_t head) {
    if (setup_.layers[setup_.layer_of(head)].slides) return;
    HeadScore of_head(layout, head, blocks, n_most);
    for (const std::int32_t n_turned : turns) {
      of_head.add_queries(n_turned, turned_rows(setup_, queries, rows, head, n_turned));
    }
    const std::vector<float> own = of_head.find_scores(estimate);
    for (std::size_t b = 0; b < blocks.size(); ++b) scores[b * n_heads + head] = own[b];
  });
  return scores;
}

}  // namespace ebb
