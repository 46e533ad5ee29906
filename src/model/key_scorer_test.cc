#include "model/key_scorer.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/key_bounds.h"
#include "model/score_kernels.h"
#include "model/toy_digests.h"

namespace ebb::key_scorer_test {
namespace {

constexpr std::int32_t kHeads = 4;
constexpr std::int32_t kKvHeads = 2;
constexpr std::int32_t kLayers = 2;
constexpr double kScale = 0.2;

using toy::digest_of;
using toy::kDims;
using toy::layout_of;
using toy::random_rows;
using toy::Rows;

class KeyScores : public ::testing::Test {
 protected:
  static QuerySetup setup(std::int32_t n_threads = 1) {
    RopeFrequencies frequencies{.kind = RopeKind::kNeoX, .per_anchor = {}};
    for (int i = 0; i < kDims / 2; ++i) frequencies.per_anchor.push_back(std::pow(1e4, -2.0 * i / kDims));
    QuerySetup setup{.shape = {.n_layers = kLayers, .n_heads = kHeads, .n_dims = kDims},
                     .n_kv_heads = kKvHeads,
                     .scale = kScale,
                     .n_threads = n_threads,
                     .layers = {}};
    for (int l = 0; l < kLayers; ++l) setup.layers.push_back({.frequencies = frequencies});
    return setup;
  }

  // Blocks of random keys and queries at `first` and behind it.
  void draw(std::int32_t n_blocks, std::int32_t block_size, std::int32_t n_rows, Position first) {
    layout_ = KeyDigestLayout::of(layout_of(block_size));
    std::mt19937 random(7);
    digests_.assign(to_size(n_blocks), {});
    for (auto& digest : digests_) {
      for (int head = 0; head < kLayers * kKvHeads; ++head) {
        const std::vector<std::byte> own = digest_of(layout_of(block_size), random_rows(random, block_size));
        digest.insert(digest.end(), own.begin(), own.end());
      }
    }
    queries_.emplace(setup().shape, n_rows);
    std::vector<float> q(to_size(n_rows * kHeads * kDims));
    std::normal_distribution<float> normal(0.0F, 2.0F);
    for (int layer = 0; layer < kLayers; ++layer) {
      for (float& x : q) x = normal(random);
      queries_->add(LayerIndex(layer),
                    {.q = q.data(),
                     .row_stride = to_size(kHeads * kDims),
                     .head_stride = to_size(kDims),
                     .first = first,
                     .n_rows = n_rows},
                    0, 1);
    }
    queries_->end_step(first, first, n_rows);
  }

  // Rows [from, to) of those that were drawn have queries of zeros from here on.
  void ask_nothing_in(std::int32_t from, std::int32_t to) {
    const TailQueries before = *queries_;
    const Position first = before.rows().begin;
    std::vector<float> q(to_size(before.n_rows() * kHeads * kDims));
    for (int layer = 0; layer < kLayers; ++layer) {
      for (std::int32_t row = 0; row < before.n_rows(); ++row) {
        for (std::size_t head = 0; head < kHeads; ++head) {
          const auto own = before.query(to_size(layer * kHeads) + head, first + row);
          const auto out = q.begin() + (row * kHeads + static_cast<std::ptrdiff_t>(head)) * kDims;
          if (row >= from && row < to) std::fill_n(out, kDims, 0.0F);
          if (row < from || row >= to) std::ranges::copy(own, out);
        }
      }
      queries_->add(LayerIndex(layer),
                    {.q = q.data(),
                     .row_stride = to_size(kHeads * kDims),
                     .head_stride = to_size(kDims),
                     .first = first,
                     .n_rows = before.n_rows()},
                    0, 1);
    }
    queries_->end_step(first, before.anchor(first), before.n_rows());
  }

  [[nodiscard]] std::vector<KeyScorer::Block> blocks(std::int32_t n_turned = 0) const {
    std::vector<KeyScorer::Block> all;
    for (const auto& digest : digests_) {
      all.push_back({.digests = digest,
                     .n_turned = n_turned,
                     .is_cold = is_cold(all.size()),
                     .first_row = first_row(all.size())});
    }
    return all;
  }

  static bool is_cold(std::size_t block) { return block % 3 == 1; }
  static std::int32_t first_row(std::size_t block) { return block % 4 == 3 ? 2 : 0; }

  // In float64, from the definition.
  [[nodiscard]] std::vector<double> expected(KeyEstimate estimate, std::size_t head) const {
    const QuerySetup all = setup();
    const std::size_t layer = head / kKvHeads;
    std::vector<double> scores(digests_.size(), 0.0);
    for (std::size_t g = 0; g < kHeads / kKvHeads; ++g) {
      std::vector<double> shares(digests_.size(), 0.0);
      double cold = 0.0;
      for (Position row = queries_->rows().begin; row < queries_->rows().end; row = row + 1) {
        const auto query = queries_->query(layer * kHeads + head % kKvHeads * (kHeads / kKvHeads) + g, row);
        std::vector<double> q(query.begin(), query.end());
        for (std::size_t i = 0; i < kDims / 2; ++i) {
          const double angle = queries_->anchor(row).value() * all.layers[layer].frequencies.per_anchor[i];
          const double x = q[i], y = q[i + kDims / 2];
          q[i] = kScale * (x * std::cos(angle) - y * std::sin(angle));
          q[i + kDims / 2] = kScale * (y * std::cos(angle) + x * std::sin(angle));
        }
        std::vector<double> weights;
        double total = 0.0;
        for (const auto& digest : digests_) {
          weights.push_back(weight(estimate, std::span(digest).subspan(head * layout_.bytes(), layout_.bytes()), q));
          total += weights.back();
        }
        double most_cold = 0.0;
        for (std::size_t b = 0; b < scores.size(); ++b) {
          if (row - queries_->rows().begin < first_row(b)) continue;
          shares[b] = std::max(shares[b], weights[b] / total);
          if (is_cold(b)) most_cold = std::max(most_cold, weights[b] / total);
        }
        cold += most_cold / queries_->n_rows();
      }
      for (std::size_t b = 0; b < scores.size(); ++b) scores[b] = std::max(scores[b], shares[b] * (1.0 - cold));
    }
    return scores;
  }

  [[nodiscard]] double weight(KeyEstimate estimate, std::span<const std::byte> digest,
                              const std::vector<double>& q) const {
    if (estimate == KeyEstimate::kSketch) {
      std::vector<float> planes(to_size(kDims * layout_.n_slots));
      read_sketch(layout_, digest, planes);
      double sum = 0.0;
      for (std::size_t key = 0; key < to_size(layout_.n_keys); ++key) {
        double logit = 0.0;
        for (std::size_t d = 0; d < to_size(kDims); ++d)
          logit += q[d] * double{planes[d * to_size(layout_.n_slots) + key]};
        sum += std::exp(logit);
      }
      return sum;
    }
    std::vector<float> a(kDims), b(kDims);
    double bound = 0.0;
    if (estimate == KeyEstimate::kBox) read_box(layout_, digest, {.least = a, .greatest = b});
    if (estimate == KeyEstimate::kCuboid) read_cuboid(layout_, digest, {.middle = a, .radius = b});
    for (std::size_t d = 0; d < to_size(kDims); ++d) {
      bound += estimate == KeyEstimate::kBox ? std::max(q[d] * double{a[d]}, q[d] * double{b[d]})
                                             : q[d] * double{a[d]} + std::abs(q[d]) * double{b[d]};
    }
    return std::exp(bound);
  }

  KeyDigestLayout layout_;
  std::vector<std::vector<std::byte>> digests_;
  std::optional<TailQueries> queries_;
};

// Products of bytes are off by some hundredths of a logit, and a share by as much of itself.
TEST_F(KeyScores, are_the_largest_shares_of_the_definition) {
  for (const std::int32_t block_size : {5, 16, 64}) {
    draw(9, block_size, 3, Position(700));
    double off = 0.0;
    double n = 0.0;
    for (const KeyEstimate estimate : {KeyEstimate::kSketch, KeyEstimate::kCuboid, KeyEstimate::kBox}) {
      const auto scores = KeyScorer(setup()).score(*queries_, queries_->rows(), blocks(), layout_, estimate);
      for (std::size_t head = 0; head < kLayers * kKvHeads; ++head) {
        const std::vector<double> wanted = expected(estimate, head);
        for (std::size_t b = 0; b < wanted.size(); ++b) {
          const double got = scores[b * kLayers * kKvHeads + head];
          EXPECT_NEAR(got, wanted[b], 0.06) << "head " << head << " block " << b;
          off += std::abs(got - wanted[b]);
          ++n;
        }
      }
    }
    EXPECT_LT(off / n, 0.01);
  }
}

TEST_F(KeyScores, neither_threads_nor_instruction_sets_change_a_bit) {
  draw(40, 64, 7, Position(3000));
  const KernelSet before = current_kernel_set();
  const auto wanted = KeyScorer(setup()).score(*queries_, queries_->rows(), blocks(), layout_, KeyEstimate::kSketch);
  for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
    if (!try_set_kernel_set(set)) continue;
    for (const std::int32_t n_threads : {1, 3}) {
      EXPECT_EQ(KeyScorer(setup(n_threads)).score(*queries_, queries_->rows(), blocks(), layout_, KeyEstimate::kSketch),
                wanted);
    }
  }
  EXPECT_TRUE(try_set_kernel_set(before));
}

TEST_F(KeyScores, keys_that_were_turned_are_met_by_queries_turned_back) {
  draw(6, 16, 2, Position(500));
  const auto turned = KeyScorer(setup()).score(*queries_, queries_->rows(), blocks(100), layout_, KeyEstimate::kSketch);
  draw(6, 16, 2, Position(400));
  const auto nearer = KeyScorer(setup()).score(*queries_, queries_->rows(), blocks(), layout_, KeyEstimate::kSketch);
  for (std::size_t i = 0; i < turned.size(); ++i) EXPECT_NEAR(turned[i], nearer[i], 1e-5);
}

// Past the trained context: forty numbers from 0 to -639, for which every 128th stands.
TEST_F(KeyScores, of_blocks_turned_by_many_numbers_the_nearest_of_few_stands_for_each) {
  draw(40, 16, 2, Position(5000));
  const KeyScorer scorer(setup());
  const auto score = [&](const std::vector<KeyScorer::Block>& some) {
    return scorer.score(*queries_, queries_->rows(), some, layout_, KeyEstimate::kSketch);
  };
  std::vector<KeyScorer::Block> many = blocks();
  std::vector<KeyScorer::Block> few = many;
  for (std::size_t b = 0; b < many.size(); ++b) {
    many[b].n_turned = -static_cast<std::int32_t>(b * 7919 % 640);
    few[b].n_turned = -128 * ((-many[b].n_turned + 64) / 128);
  }
  const std::vector<float> scores = score(few);
  const std::vector<float> of_many = score(many);
  for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(of_many[i], scores[i], 1e-6) << i;
  // Blocks turned alike are computed together, wherever they stand.
  std::ranges::reverse(few);
  const std::vector<float> reversed = score(few);
  constexpr std::size_t kN = kLayers * kKvHeads;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(reversed[(few.size() - 1 - i / kN) * kN + i % kN], scores[i], 1e-2) << i;
  }
}

// A key that answers a query stands in one block of many; the others are drawn like those of a model, so that no cuboid hides it.
TEST_F(KeyScores, of_many_blocks_the_best_by_their_cuboids_are_scored_by_their_keys) {
  draw(static_cast<std::int32_t>(kMostSketched) + 200, 16, 1, Position(0));
  const Position row = queries_->rows().begin;
  for (std::size_t head = 0; head < kLayers * kKvHeads; ++head) {
    const auto query = queries_->query(head / kKvHeads * kHeads + head % kKvHeads * (kHeads / kKvHeads), row);
    Rows keys(16, std::vector<double>(query.begin(), query.end()));
    for (auto& x : keys[4]) x *= 3.0;
    const std::vector<std::byte> own = digest_of(layout_of(16), keys);
    std::ranges::copy(own, digests_[125].begin() + static_cast<std::ptrdiff_t>(head * layout_.bytes()));
  }
  const auto scores = KeyScorer(setup()).score(*queries_, queries_->rows(), blocks(), layout_, KeyEstimate::kSketch);
  std::size_t n_scored = 0;
  for (std::size_t b = 0; b < digests_.size(); ++b) n_scored += scores[b * kLayers * kKvHeads] > 0.0F ? 1 : 0;
  EXPECT_LE(n_scored, kMostSketched);
  EXPECT_GT(scores[125 * kLayers * kKvHeads], 0.9F);
}

// Whatever was looked at before: blocks that came, left, were turned or have other keys now.
TEST_F(KeyScores, what_is_kept_of_bounds_changes_no_bit) {
  draw(static_cast<std::int32_t>(kMostSketched) + 300, 16, 2, Position(3000));
  const KeyScorer scorer(setup(2));
  std::vector<KeyScorer::Block> all = blocks();
  for (std::size_t b = 0; b < all.size(); ++b) all[b].digest_id = b + 1;
  KeyBounds kept;
  const auto look = [&](std::span<const KeyScorer::Block> some) {
    for (const KeyEstimate estimate : {KeyEstimate::kSketch, KeyEstimate::kBox, KeyEstimate::kCuboid}) {
      EXPECT_EQ(scorer.score(*queries_, queries_->rows(), some, layout_, estimate, &kept),
                scorer.score(*queries_, queries_->rows(), some, layout_, estimate));
    }
  };
  look(std::span(all).first(kMostSketched + 130));
  look(all);
  look(all);
  std::swap(all[200].digests, all[300].digests);
  all[200].digest_id = 10000;
  all[300].digest_id = 10001;
  look(all);
  for (std::size_t b = 400; b < all.size(); ++b) all[b].n_turned = 64;
  look(all);
  look(std::span(all).first(kMostSketched + 1));
}

// Where blocks are so many that a look has no time for all queries, the last ones are asked.
TEST_F(KeyScores, of_very_many_blocks_the_last_queries_are_asked) {
  draw(40, 16, 64, Position(3000));
  std::vector<KeyScorer::Block> all;
  while (all.size() < 60'000) {
    for (const KeyScorer::Block& block : blocks()) all.push_back(block);
  }
  const auto score = [&] {
    return KeyScorer(setup(2)).score(*queries_, queries_->rows(), all, layout_, KeyEstimate::kSketch);
  };
  const std::vector<float> before = score();
  ask_nothing_in(0, 16);
  EXPECT_EQ(score(), before);
  ask_nothing_in(63, 64);
  EXPECT_NE(score(), before);
}

// What one look may cost is known before it is begun: it grows with the blocks, and with all of them only by their bounds.
TEST_F(KeyScores, cost_as_many_tokens_as_their_products_take) {
  const KeyDigestLayout layout = KeyDigestLayout::of(layout_of(64));
  const KeyScorer small(setup());
  EXPECT_EQ(small.cost_in_tokens(8, 0, layout), 0.0);
  const double of_40 = small.cost_in_tokens(8, 40, layout);
  EXPECT_DOUBLE_EQ(small.cost_in_tokens(8, 80, layout), 2.0 * of_40);
  EXPECT_LT(small.cost_in_tokens(8, 100 * kMostSketched, layout),
            100.0 * small.cost_in_tokens(8, kMostSketched, layout));
  EXPECT_GT(small.cost_in_tokens(16, 40, layout), of_40);
  const KeyScorer large(setup(), 1e9);
  EXPECT_LT(large.cost_in_tokens(8, 40, layout), 0.1 * of_40);
}

TEST_F(KeyScores, queries_that_are_no_numbers_ask_for_nothing) {
  draw(3, 16, 2, Position(10));
  std::vector<float> q(to_size(2 * kHeads * kDims), std::nanf(""));
  for (int layer = 0; layer < kLayers; ++layer) {
    queries_->add(LayerIndex(layer),
                  {.q = q.data(),
                   .row_stride = to_size(kHeads * kDims),
                   .head_stride = to_size(kDims),
                   .first = Position(10),
                   .n_rows = 2},
                  0, 1);
  }
  const auto scores = KeyScorer(setup()).score(*queries_, queries_->rows(), blocks(), layout_, KeyEstimate::kSketch);
  EXPECT_TRUE(std::ranges::all_of(scores, [](float x) { return x == 0.0F; }));
}

TEST(TailQueriesTest, keep_the_last_rows_and_forget_what_does_not_follow) {
  TailQueries queries({.n_layers = 1, .n_heads = 1, .n_dims = 1}, 4);
  const auto add = [&](std::int32_t first, std::vector<float> q) {
    const auto n = static_cast<std::int32_t>(q.size());
    queries.add(LayerIndex(0),
                {.q = q.data(), .row_stride = 1, .head_stride = 1, .first = Position(first), .n_rows = n}, 0, 1);
    queries.end_step(Position(first), Position(first + 100), n);
  };
  add(0, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(queries.rows(), (Span{Position(2), Position(6)}));
  add(6, {6});
  EXPECT_EQ(queries.rows(), (Span{Position(3), Position(7)}));
  EXPECT_EQ(queries.anchor(Position(3)), Position(103));
  for (int p = 3; p < 7; ++p) EXPECT_EQ(queries.query(0, Position(p))[0], static_cast<float>(p));
  add(20, {20, 21});
  EXPECT_EQ(queries.rows(), (Span{Position(20), Position(22)}));
}

}  // namespace
}  // namespace ebb::key_scorer_test
