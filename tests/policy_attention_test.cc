// Policies on the attention of a real model, in blocks of one token: a session keeps what the originals' definitions keep of
// the same weights (policy/originals_twin.h), layer by layer and head by head, and holds no more frames than its budget.
#include <cmath>
#include <filesystem>
#include <numeric>

#include <ggml.h>
#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/frame_rows.h"
#include "policy/adaptive_rkv.h"
#include "policy/areas_scores.h"
#include "policy/key_diversity.h"
#include "policy/originals_attention_twin.h"
#include "policy/originals_budgets_twin.h"
#include "policy/originals_keys_twin.h"
#include "tests/files.h"
#include "tests/solo.h"
#include "tests/solo_sessions.h"

namespace ebb::policy_attention_test {
namespace {

using originals::Heads;
using originals::Row;
using originals::Rows;
using originals::Tokens;

constexpr std::int32_t kTokens = 90;
constexpr std::int32_t kWindow = 16;
constexpr double kGroup = 2.0;  // query heads of a KV head of the bundled model

SoloOptions options() { return {.n_threads = 1, .kv_type = RowType::kF32, .block_size = 1, .n_ctx = 2 * kTokens}; }

class PolicyAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto vocabulary = Vocabulary::load(bundled_model());
    ASSERT_TRUE(vocabulary.ok());
    tokens_ = (*vocabulary)->tokenize(kFactsAndQuestions).value();
    ASSERT_GE(tokens_.size(), static_cast<std::size_t>(kTokens));
    tokens_.resize(kTokens);
    read_weights();
  }

  // Row by row, as the session computes it: what each query gives each token, summed over the heads of a group.
  void read_weights() {
    const auto solo = Solo::open(bundled_model(), options());
    ASSERT_TRUE(solo.ok()) << solo.status().message();
    const auto hot = (*solo)->make_hot();
    shape_ = (*solo)->shape();
    weights_.assign(shape_.n_heads(), Rows(kTokens, Row(kTokens, 0.0)));
    for (std::size_t q = 0; q < tokens_.size(); ++q) {
      ASSERT_TRUE((*solo)->compute(*hot, std::span(tokens_).subspan(q, 1), 1, 1).ok());
      const SequenceMass mass = (*solo)->runner().mass(0).value();
      for (std::size_t head = 0; head < shape_.n_heads(); ++head) {
        const auto n = static_cast<std::size_t>(shape_.n_kv_heads);
        const HeadMass here =
            mass.head(LayerIndex(static_cast<std::int32_t>(head / n)), HeadIndex(static_cast<std::int32_t>(head % n)));
        ASSERT_EQ(here.sum.size(), q + 1);
        for (std::size_t j = 0; j <= q; ++j) weights_[head][q][j] = static_cast<double>(here.sum[j]);
      }
    }
  }

  [[nodiscard]] Heads of_layer(std::int32_t layer) const {
    const auto begin = weights_.begin() + layer * shape_.n_kv_heads;
    return {begin, begin + shape_.n_kv_heads};
  }

  // What a session has hot of a budget, [layer][head]: one whose prompt has all of it, and one that is given less behind it.
  std::vector<std::vector<Tokens>> keep(const std::string& spec, std::int32_t budget, std::int32_t n_recent) {
    std::vector<std::vector<Tokens>> kept = keep(spec, {.given = kTokens, .later = budget, .n_recent = n_recent});
    EXPECT_EQ(kept, keep(spec, {.given = budget, .of_prompt = kTokens, .later = budget, .n_recent = n_recent}));
    return kept;
  }

  struct Budgets {
    std::int32_t given = 0;
    std::int32_t of_prompt = 0;
    std::int32_t later = 0;
    std::int32_t n_recent = 0;
  };

  std::vector<std::vector<Tokens>> keep(const std::string& spec, const Budgets& budgets) {
    const auto sessions = SoloSessions::open(bundled_model(), options(), spec);
    EXPECT_TRUE(sessions.ok()) << sessions.status().message();
    Session session((*sessions)->deps(nullptr), {.budget_tokens = budgets.given,
                                                 .prompt_budget_tokens = budgets.of_prompt,
                                                 .sink_tokens = 0,
                                                 .recent_tokens = budgets.n_recent,
                                                 .remains = Remains::kNothing});
    Turn turn(session, Prompt(tokens_));
    while (turn.n_pending() > 0) EXPECT_TRUE((*sessions)->step(turn).has_value());
    turn.settle();
    const FrameBudget frames = FrameBudget::of_tokens(budgets.later, shape_);
    EXPECT_EQ(session.set_budget(frames), frames);
    EXPECT_EQ(session.hot().n_hot_frames(), frames.n_frames);
    session.check_invariants();
    std::vector<std::vector<Tokens>> kept(static_cast<std::size_t>(shape_.n_layers));
    for (std::size_t head = 0; head < shape_.n_heads(); ++head) {
      Tokens tokens;
      for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
        if (session.hot().is_hot(BlockIndex(b), head)) tokens.push_back(static_cast<std::size_t>(b));
      }
      kept[head / static_cast<std::size_t>(shape_.n_kv_heads)].push_back(tokens);
    }
    return kept;
  }

  // The keys and values of all tokens, as frames hold them.
  void read_rows() {
    const auto sessions = SoloSessions::open(bundled_model(), options(), "streaming");
    ASSERT_TRUE(sessions.ok()) << sessions.status().message();
    Session session((*sessions)->deps(nullptr), {.budget_tokens = kTokens});
    Turn turn(session, Prompt(tokens_));
    while (turn.n_pending() > 0) ASSERT_TRUE((*sessions)->step(turn).has_value());
    const FrameLayout& layout = (*sessions)->solo().memory().layout();
    keys_.assign(shape_.n_heads(), {});
    values_.assign(shape_.n_heads(), {});
    std::vector<std::byte> frame(layout.frame_bytes());
    for (std::size_t head = 0; head < shape_.n_heads(); ++head) {
      for (std::int32_t b = 0; b < kTokens; ++b) {
        HeadSet one(shape_.n_heads());
        one.add(head);
        session.read_frames(BlockIndex(b), one, frame);
        const FrameRows keys = FrameRows::keys_of(layout, frame, 1);
        const FrameRows values = FrameRows::values_of(layout, frame, 1);
        keys_[head].emplace_back(keys.row(0).begin(), keys.row(0).end());
        values_[head].emplace_back(values.row(0).begin(), values.row(0).end());
      }
    }
    read_lengths((*sessions)->solo().model());
  }

  // |v W_O| by the matrix itself, the mean over the query heads of a KV head.
  void read_lengths(const Model& model) {
    const Hparams& h = model.hparams();
    const std::size_t n_group = to_size(h.n_heads / h.n_kv_heads);
    for (std::int32_t layer = 0; layer < h.n_layers; ++layer) {
      const TensorInfo& info = *model.file().find_tensor(fmt::format("blk.{}.attn_output.weight", layer));
      std::vector<float> matrix(static_cast<std::size_t>(info.n_elements()));
      ggml_get_type_traits(info.type)->to_float(model.file().bytes_of(info).data(), matrix.data(), info.n_elements());
      for (std::int32_t kv_head = 0; kv_head < h.n_kv_heads; ++kv_head) {
        Rows lengths;
        for (const Row& value : values_[to_size(layer * h.n_kv_heads + kv_head)]) {
          double sum = 0.0;
          for (std::size_t g = 0; g < n_group; ++g) {
            Row product;
            for (std::size_t out = 0; out < to_size(h.n_embd); ++out) {
              const float* row =
                  matrix.data() + (out * to_size(h.n_heads) + to_size(kv_head) * n_group + g) * value.size();
              product.push_back(originals::dot(value, Row(row, row + value.size())));
            }
            sum += originals::norm(product);
          }
          lengths.push_back({sum / static_cast<double>(n_group)});
        }
        lengths_.push_back(lengths);
      }
    }
  }

  [[nodiscard]] Heads of_layer(const Heads& heads, std::int32_t layer) const {
    const auto begin = heads.begin() + layer * shape_.n_kv_heads;
    return {begin, begin + shape_.n_kv_heads};
  }

  // Those of the last queries, mean over a KV head's query heads.
  [[nodiscard]] Heads last_weights(std::int32_t layer, std::size_t n_queries) const {
    Heads weights;
    for (const Rows& head : of_layer(layer)) {
      weights.emplace_back(head.end() - static_cast<std::ptrdiff_t>(n_queries), head.end());
      for (Row& row : weights.back()) {
        for (double& weight : row) weight /= kGroup;
      }
    }
    return weights;
  }

  std::vector<Token> tokens_;
  BlockShape shape_;
  Heads keys_;     // [layer * n_kv_heads + head][token][head_dim]
  Heads values_;   // the same
  Heads lengths_;  // [layer * n_kv_heads + head][token][1]
  Heads weights_;  // [layer * n_kv_heads + head][query][token]
};

TEST_F(PolicyAttention, tova_keeps_the_same_tokens_in_every_head_of_a_layer) {
  for (const std::int32_t budget : {10, 30, 60}) {
    const auto kept = keep("tova", budget, 0);
    for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
      const Tokens expected =
          originals::keep_highest(originals::tova_scores(of_layer(layer)), static_cast<std::size_t>(budget));
      for (const Tokens& head : kept[static_cast<std::size_t>(layer)]) EXPECT_EQ(head, expected) << layer;
    }
  }
}

TEST_F(PolicyAttention, h2o_keeps_each_heads_heavy_hitters) {
  const auto kept = keep("h2o:recent=0.25", 48, 0);
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    const Rows scores =
        originals::h2o_scores(of_layer(layer), static_cast<std::size_t>(shape_.n_kv_heads), kTokens / 4);
    EXPECT_EQ(kept[static_cast<std::size_t>(layer)], originals::keep_highest(scores, 48)) << layer;
  }
}

TEST_F(PolicyAttention, snapkv_keeps_what_the_window_looks_at) {
  const auto kept = keep("snapkv:window=16,kernel=5", 40, kWindow);
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    const Rows scores = originals::snapkv_scores(of_layer(layer), static_cast<std::size_t>(shape_.n_kv_heads),
                                                 {.window = kWindow, .pool = originals::Pool::kMaximum, .kernel = 5});
    EXPECT_EQ(kept[static_cast<std::size_t>(layer)], originals::keep_highest(scores, 40)) << layer;
  }
}

TEST_F(PolicyAttention, adakv_gives_heads_what_they_win) {
  const auto kept = keep("adakv:window=16", 40, kWindow);
  bool differs = false;
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    const Rows scores = originals::snapkv_scores(of_layer(layer), static_cast<std::size_t>(shape_.n_kv_heads),
                                                 {.window = kWindow, .pool = originals::Pool::kMaximum, .kernel = 7});
    const originals::Counts budgets = originals::adakv_budgets_exact(scores, {.capacity = 40, .alpha = 0.5});
    EXPECT_EQ(kept[static_cast<std::size_t>(layer)], originals::keep_highest(scores, budgets)) << layer;
    differs = differs || budgets.front() != budgets.back();
  }
  EXPECT_TRUE(differs) << "heads that all win the same show nothing";
}

TEST_F(PolicyAttention, defensivekv_weighs_the_largest_look_with_what_values_add) {
  read_rows();
  const auto kept = keep("defensivekv:window=16,sinks=0", 40, kWindow);
  const auto kept_of_all = keep("layer_defensivekv:window=16,sinks=0,floor=0", 40, kWindow);
  Rows all;
  std::vector<Tokens> all_kept;
  const Heads itself(to_size(shape_.n_kv_heads), Rows(1, Row(1, 1.0)));
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    const Rows scores =
        originals::defensivekv_scores(last_weights(layer, kWindow), of_layer(lengths_, layer), itself, kWindow);
    EXPECT_EQ(kept[to_size(layer)], originals::keep_highest_of_all(scores, 40 * scores.size())) << layer;
    all.insert(all.end(), scores.begin(), scores.end());
    all_kept.insert(all_kept.end(), kept_of_all[to_size(layer)].begin(), kept_of_all[to_size(layer)].end());
  }
  EXPECT_EQ(all_kept, originals::keep_highest_of_all(all, 40 * all.size()));
}

TEST_F(PolicyAttention, dropkv_keeps_what_the_last_query_cannot_do_without) {
  read_rows();
  const auto kept = keep("dropkv:window=1", 30, 0);
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    const Rows scores = originals::dropkv_scores(last_weights(layer, 1), of_layer(values_, layer));
    EXPECT_EQ(kept[to_size(layer)], originals::keep_highest(scores, 30)) << layer;
  }
}

// A row of queries is a pass of the scheme, which pools each by itself.
TEST_F(PolicyAttention, areas_keeps_what_the_scheme_keeps_pass_by_pass) {
  constexpr std::int32_t kStart = 8;
  constexpr std::int32_t kRecent = 16;
  constexpr std::int32_t kBlock = 2;
  constexpr std::int32_t kEvictable = kTokens - kStart - kRecent;
  constexpr std::int32_t kKept = 8;  // blocks
  bool differs = false;
  for (const Aggregation aggregation : {Aggregation::kSum, Aggregation::kNormSum}) {
    const auto kept = keep(fmt::format("areas:norm={},window={},start=8,recent=16,block=2",
                                       aggregation == Aggregation::kSum ? 0 : 1, kWindow),
                           kStart + kRecent + kKept * kBlock, 0);
    for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
      LayerScores scheme({.start_tokens = kStart, .aggregation = aggregation, .n_window_queries = kWindow});
      std::vector<double> together(kTokens - kStart, 0.0);
      for (std::int32_t q = kTokens - kWindow; q < kTokens; ++q) {
        std::vector<float> scores(to_size(q + 1 - kStart), 0.0F);
        for (const Rows& head : of_layer(layer)) {
          for (std::size_t t = 0; t < scores.size(); ++t) {
            scores[t] += static_cast<float>(head[to_size(q)][kStart + t]);
          }
        }
        for (std::size_t t = 0; t < scores.size(); ++t) together[t] += double{scores[t]};
        scheme.add(scores, {.n_window = kWindow, .n_in_pass = 1, .n_total = q + 1 - (kTokens - kWindow)});
      }
      const auto best_of = [&](const std::vector<double>& values) {
        std::vector<std::size_t> order(values.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
        std::vector<std::size_t> best(order.end() - kKept, order.end());
        std::ranges::sort(best);
        return best;
      };
      const std::vector<std::size_t> best = best_of(scheme.block_values(
          {.begin = kStart / kBlock, .end = (kStart + kEvictable) / kBlock}, kStart / kBlock, kBlock));
      Tokens expected;
      for (std::size_t t = 0; t < kTokens; ++t) {
        const bool is_evictable = t >= kStart && t < kTokens - kRecent;
        if (!is_evictable || std::ranges::binary_search(best, (t - kStart) / kBlock)) expected.push_back(t);
      }
      for (const Tokens& head : kept[to_size(layer)]) EXPECT_EQ(head, expected) << "layer " << layer;
      const std::vector<double> pooled_late = pool_ahead(together);
      std::vector<double> late(kEvictable / kBlock, 0.0);
      for (std::size_t t = 0; t < kEvictable; ++t) late[t / kBlock] += pooled_late[t];
      differs = differs || (aggregation == Aggregation::kSum && best_of(late) != best);
    }
  }
  EXPECT_TRUE(differs) << "one pass, or all of them together, would be the same";
}

// Of the same numbers, what the scheme's own arithmetic says, from every token's keys.
TEST_F(PolicyAttention, areas_keeps_by_score_and_then_by_how_unlike_keys_are) {
  read_rows();
  constexpr std::int32_t kStart = 8;
  constexpr std::int32_t kRecent = 16;
  constexpr std::int32_t kBlock = 2;
  constexpr std::int32_t kEvictable = kTokens - kStart - kRecent;
  constexpr std::int32_t kKept = 8;  // blocks
  // So few that all of them saw whatever is evictable, or pooled with it.
  constexpr std::size_t kHistory = 8;
  const auto kept = keep("areas:norm=2,mass=0.3,start=8,recent=16,block=2", kStart + kRecent + kKept * kBlock, 0);
  bool differs = false;
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    Row scores(kTokens, 0.0);
    for (const Rows& head : of_layer(layer)) {
      for (std::size_t q = kTokens - kHistory; q < kTokens; ++q) {
        for (std::size_t t = 0; t < kTokens; ++t) scores[t] += head[q][t];
      }
    }
    const Row pooled = pool_ahead(scores);
    Row sums(kEvictable / kBlock, 0.0);
    for (std::size_t t = 0; t < kEvictable; ++t) sums[t / kBlock] += pooled[kStart + t];
    std::vector<float> keys;
    const Heads of_heads = of_layer(keys_, layer);
    for (std::size_t t = kStart; t < kTokens - kRecent; ++t) {
      for (const Rows& head : of_heads) keys.insert(keys.end(), head[t].begin(), head[t].end());
    }
    const std::vector<float> diversity =
        key_diversity(keys, {.n_tokens = kEvictable,
                             .n_kv_heads = shape_.n_kv_heads,
                             .head_dim = static_cast<std::int32_t>(of_heads.front().front().size()),
                             .block_size = kBlock})
            .value();
    const AdaptiveChoice choice{.block_scores = sums, .n_keep = kKept, .attention_mass = 0.3, .diversity = diversity};
    const std::vector<std::int32_t> victims = choose_adaptive(choice);
    AdaptiveChoice by_score = choice;
    by_score.attention_mass = 1.0;
    differs = differs || choose_adaptive(by_score) != victims;
    Tokens expected;
    for (std::int32_t t = 0; t < kTokens; ++t) {
      const std::int32_t block = (t - kStart) / kBlock;
      const bool leaves = t >= kStart && std::ranges::binary_search(victims, block);
      if (!leaves) expected.push_back(to_size(t));
    }
    for (const Tokens& head : kept[to_size(layer)]) EXPECT_EQ(head, expected) << layer;
  }
  EXPECT_TRUE(differs) << "keys that change nothing show nothing";
}

TEST_F(PolicyAttention, lagkv_keeps_of_each_partition_what_stands_out) {
  read_rows();
  const originals::LagKv lagkv{.n_sinks = 4, .lag = 16};
  for (std::int32_t layer = 0; layer < shape_.n_layers; ++layer) {
    const auto expected =
        originals::lagkv_kept(originals::lagkv_scores(of_layer(keys_, layer), of_layer(values_, layer), lagkv), lagkv);
    const auto kept = keep("lagkv:lag=16,sinks=4", static_cast<std::int32_t>(expected[0].size()), 0);
    EXPECT_EQ(kept[to_size(layer)], expected) << layer;
  }
}

}  // namespace
}  // namespace ebb::policy_attention_test
