// What is noted of a model's queries, and what a session chooses by it, held against the definition on the model's own queries: a toy's
// whose keys are its queries, rotated (session/toy_queries_test.h).
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "policy/originals_keys_twin.h"
#include "session/image.h"
#include "session/toy_queries_test.h"

namespace ebb {
namespace {

constexpr std::int32_t kTokens = 60;
constexpr const char* kPolicy = "expected_attention";

RandomModelSpec toy_spec(const std::string& architecture) {
  RandomModelSpec spec{.architecture = architecture, .n_heads = 3, .n_kv_heads = 3};
  if (architecture == "gemma3") {
    spec.sliding_window = 24;
    spec.sliding_period = 2;
  }
  return spec;
}

// Key k of position p, turned back by p: the query of that position before it was rotated.
originals::Row turn_back(const Model& model, LayerIndex layer, std::span<const float> key, std::int32_t position) {
  const RopeFrequencies frequencies = layer_frequencies(model)[layer.index()];
  const double magnitude = rope_magnitude(model.hparams(), layer);
  originals::Row query(key.begin(), key.end());
  const std::size_t n_pairs = frequencies.per_anchor.size();
  for (std::size_t i = 0; i < n_pairs; ++i) {
    const bool neox = frequencies.kind == RopeKind::kNeoX;
    double& x = query[neox ? i : 2 * i];
    double& y = query[neox ? i + n_pairs : 2 * i + 1];
    const double angle = frequencies.per_anchor[i] * position;
    const double before = x;
    x = (before * std::cos(angle) + y * std::sin(angle)) / magnitude;
    y = (y * std::cos(angle) - before * std::sin(angle)) / magnitude;
  }
  return query;
}

// [head][token], of a session of blocks of one token.
struct Originals {
  originals::Heads queries;
  originals::Heads keys;
  originals::Heads values;
};
// Keys and values of these blocks, as their frames hold them now; queries of those whose anchors are their positions.
Originals read_originals(const ToyQueries& toy, const Session& session, std::span<const BlockIndex> blocks) {
  Originals all;
  for (std::size_t head = 0; head < toy.shape().n_heads(); ++head) {
    const LayerIndex layer(static_cast<std::int32_t>(head) / toy.shape().n_kv_heads);
    for (auto* heads : {&all.queries, &all.keys, &all.values}) heads->emplace_back();
    for (const BlockIndex block : blocks) {
      const ToyQueries::Rows rows = toy.rows(session, block, head);
      const std::span<const float> key = rows.keys.row(0);
      all.keys.back().emplace_back(key.begin(), key.end());
      all.values.back().emplace_back(rows.values.row(0).begin(), rows.values.row(0).end());
      all.queries.back().push_back(turn_back(toy.model(), layer, key, block.value()));
    }
  }
  return all;
}
Originals read_originals(const ToyQueries& toy, const Session& session) {
  return read_originals(toy, session, session.hot().hot_blocks());
}

// Of some blocks, those that are hot in a head, by their place among them.
originals::Tokens hot_of(const Session& session, std::span<const BlockIndex> blocks, std::size_t head) {
  originals::Tokens hot;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (session.hot().is_hot(blocks[i], head)) hot.push_back(i);
  }
  return hot;
}

struct ModelCase {
  std::string name;
  RandomModelSpec spec;
  bool composed = false;
};
class ExpectedEvidence : public ::testing::TestWithParam<ModelCase> {
 protected:
  [[nodiscard]] static ToyQueries::Options toy_options(std::int32_t block_size = 1) {
    return {.spec = GetParam().spec, .block_size = block_size, .composed = GetParam().composed};
  }
};

TEST_P(ExpectedEvidence, is_of_the_queries_that_the_model_had_before_they_were_rotated) {
  ToyQueries toy(toy_options());
  const auto session = toy.make_session(kPolicy);
  // What lies behind a window leaves, and could not be read.
  const std::int32_t window = GetParam().spec.sliding_window;
  const std::int32_t n_tokens = window > 0 ? window - 1 : kTokens;
  toy.say({{session.get(), ToyQueries::tokens(n_tokens, 1)}}, 7);
  const Originals all = read_originals(toy, *session);
  const std::int32_t n_sinks = session->options().sink_tokens;
  for (std::size_t head = 0; head < all.queries.size(); ++head) {
    ASSERT_EQ(session->queries()->n_queries(head), n_tokens - n_sinks);
    const std::vector<double> mean = session->queries()->mean(head);
    const std::vector<double> covariance = session->queries()->covariance(head);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      for (std::size_t j = 0; j < mean.size(); ++j) {
        double mean_i = 0.0;
        double mean_j = 0.0;
        double product = 0.0;
        for (std::size_t t = to_size(n_sinks); t < all.queries[head].size(); ++t) {
          mean_i += all.queries[head][t][i] / (n_tokens - n_sinks);
          mean_j += all.queries[head][t][j] / (n_tokens - n_sinks);
          product += all.queries[head][t][i] * all.queries[head][t][j] / (n_tokens - n_sinks);
        }
        ASSERT_NEAR(mean[i], mean_i, 1e-4) << head;
        ASSERT_NEAR(covariance[i * mean.size() + j], product - mean_i * mean_j, 1e-3) << head;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExpectedEvidence,
                         ::testing::Values(ModelCase{"llama", toy_spec("llama")}, ModelCase{"qwen2", toy_spec("qwen2")},
                                           ModelCase{"qwen3", toy_spec("qwen3")},
                                           ModelCase{"gemma3", toy_spec("gemma3")},
                                           ModelCase{"yarn",
                                                     {.n_heads = 3,
                                                      .n_kv_heads = 3,
                                                      .rope_scaling = RopeScaling::kYarn,
                                                      .rope_factor = 4.0F,
                                                      .rope_orig_ctx = 512}},
                                           ModelCase{"qwen3_composed", toy_spec("qwen3"), true}),
                         [](const auto& instance) { return instance.param.name; });

class ExpectedSessions : public ::testing::Test {
 protected:
  static std::vector<double> products(Session& session) { return session.queries()->image().products; }
  static std::vector<BlockIndex> hot_blocks(const Session& session) {
    const auto& blocks = session.hot().hot_blocks();
    return {blocks.begin(), blocks.end()};
  }
  // What the definition keeps in each head, of queries that go on at anchor `next`.
  [[nodiscard]] std::vector<originals::Tokens> keep(const Originals& all, std::int32_t next, std::size_t budget) const {
    const double theta{toy_.model().hparams().rope_freq_base};
    return originals::keep_highest(
        originals::expected_attention_scores(all.queries, all.keys, all.values,
                                             {.n_future = 40, .next_position = to_size(next), .theta = theta}),
        budget);
  }

  ToyQueries toy_{{.spec = toy_spec("qwen3")}};
};

TEST_F(ExpectedSessions, keep_of_one_head_for_each_query_head_what_the_definition_keeps) {
  const auto session = toy_.make_session("expected_attention:future=40");
  toy_.say({{session.get(), ToyQueries::tokens(kTokens, 2)}}, 64);
  const Originals all = read_originals(toy_, *session);
  const std::vector<originals::Tokens> kept = keep(all, kTokens, 20);
  const std::vector<BlockIndex> blocks = hot_blocks(*session);
  (void)session->set_budget(FrameBudget::of_tokens(20, toy_.shape()));
  ASSERT_EQ(session->hot().n_hot_frames(), 20 * toy_.shape().frames_per_block());
  for (std::size_t head = 0; head < kept.size(); ++head) EXPECT_EQ(hot_of(*session, blocks, head), kept[head]) << head;
}

TEST_F(ExpectedSessions, keep_what_the_definition_keeps_of_keys_that_were_turned_to_other_anchors) {
  SessionOptions options = ToyQueries::options();
  options.removal = Removal::kCompact;
  Session session(toy_.deps("expected_attention:future=40"), options);
  toy_.say({{&session, ToyQueries::tokens(kTokens, 13)}}, 64);
  Originals all = read_originals(toy_, session);
  std::vector<BlockIndex> middle;
  for (std::int32_t b = 10; b < 27; ++b) middle.emplace_back(b);
  session.evict(middle);
  ASSERT_EQ(session.hot().next_anchor(), Position(kTokens - 17));
  ASSERT_EQ(session.anchor(BlockIndex(40)), Position(23));
  const std::vector<BlockIndex> blocks = hot_blocks(session);
  const Originals left = read_originals(toy_, session, blocks);
  all.keys = left.keys;
  all.values = left.values;
  const std::vector<originals::Tokens> kept = keep(all, kTokens - 17, 20);
  (void)session.set_budget(FrameBudget::of_tokens(20, toy_.shape()));
  for (std::size_t head = 0; head < kept.size(); ++head) EXPECT_EQ(hot_of(session, blocks, head), kept[head]) << head;
}

TEST_F(ExpectedSessions, note_the_same_bits_whatever_else_is_computed_beside_them_and_for_however_many_threads) {
  const std::vector<Token> tokens = ToyQueries::tokens(kTokens, 3);
  const auto alone = toy_.make_session(kPolicy);
  toy_.say({{alone.get(), tokens}}, 8);
  const auto other = toy_.make_session(kPolicy);
  const auto silent = toy_.make_session("streaming");
  const auto beside = toy_.make_session(kPolicy);
  toy_.say({{other.get(), ToyQueries::tokens(kTokens, 4)},
            {silent.get(), ToyQueries::tokens(30, 5)},
            {beside.get(), tokens}},
           8);
  EXPECT_EQ(products(*beside), products(*alone));
  EXPECT_NE(products(*other), products(*alone));
  const auto unasked = toy_.make_session("streaming");
  toy_.say({{unasked.get(), tokens}}, 8);
  EXPECT_EQ(read_originals(toy_, *unasked).keys, read_originals(toy_, *alone).keys) << "noting changes no bit";
  ToyQueries one({.spec = toy_spec("qwen3"), .n_threads = 1});
  const auto with_one = one.make_session(kPolicy);
  one.say({{with_one.get(), tokens}}, 8);
  EXPECT_EQ(products(*with_one), products(*alone));
}

TEST_F(ExpectedSessions, note_nothing_where_the_policy_does_not_ask_and_begin_anew_where_another_asks) {
  const auto session = toy_.make_session("streaming");
  EXPECT_EQ(session->queries(), nullptr);
  toy_.say({{session.get(), ToyQueries::tokens(20, 6)}}, 64);
  EXPECT_EQ(session->image().queries.bytes(), 0U);
  session->set_policy(*make_policy(kPolicy), nullptr);
  ASSERT_NE(session->queries(), nullptr);
  EXPECT_EQ(session->queries()->n_queries(0), 0) << "what was computed before is not known";
  toy_.say({{session.get(), ToyQueries::tokens(20, 7)}}, 64);
  EXPECT_EQ(session->queries()->n_queries(0), 20);
  session->set_policy(*make_policy("expected_attention:future=64"), nullptr);
  EXPECT_EQ(session->queries()->n_queries(0), 20) << "both ask for the same queries";
  session->set_policy(*make_policy("keydiff"), nullptr);
  EXPECT_EQ(session->queries(), nullptr);
}

TEST_F(ExpectedSessions, forget_no_query_when_they_are_cut) {
  const auto session = toy_.make_session(kPolicy);
  toy_.say({{session.get(), ToyQueries::tokens(40, 8)}}, 64);
  const std::vector<double> before = products(*session);
  session->cut(Position(10));
  EXPECT_EQ(products(*session), before);
  toy_.say({{session.get(), ToyQueries::tokens(5, 9)}}, 64);
  EXPECT_EQ(session->queries()->n_queries(0), 36 + 5);
}

TEST_F(ExpectedSessions, choose_alike_whoever_goes_on_from_their_image) {
  const auto session = toy_.make_session(kPolicy);
  toy_.say({{session.get(), ToyQueries::tokens(40, 10)}}, 64);
  const Result<SessionImage> image = decode_image(encode_image(session->image()));
  ASSERT_TRUE(image.ok()) << image.status().message();
  const auto restored = Session::restore(toy_.deps(kPolicy), ToyQueries::options(), *image);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ(products(**restored), products(*session));
  EXPECT_EQ((*restored)->queries()->image().sums, session->queries()->image().sums);
  EXPECT_EQ((*restored)->queries()->image().n_queries, session->queries()->image().n_queries);
  const auto without = Session::restore(toy_.deps("streaming"), ToyQueries::options(), *image);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ((*without)->queries(), nullptr);

  SessionImage damaged = *image;
  damaged.queries.sums[3] = std::nan("");
  EXPECT_EQ(Session::restore(toy_.deps(kPolicy), ToyQueries::options(), damaged).status().code(), Code::kDamaged);
}

TEST_F(ExpectedSessions, know_before_the_first_query_what_is_hot_by_the_length_of_its_values) {
  const auto session = toy_.make_session("streaming");
  toy_.say({{session.get(), ToyQueries::tokens(40, 11)}}, 64);
  session->set_policy(*make_policy(kPolicy), nullptr);
  const Originals all = read_originals(toy_, *session);
  const std::vector<Victim> victims = session->find_victims(3 * toy_.shape().frames_per_block());
  EXPECT_EQ(std::ssize(victims), 3 * toy_.shape().frames_per_block());
  EXPECT_EQ(session->n_hot_blocks(), 40) << "nothing came of it";
  for (const Victim& victim : victims) {
    const originals::Rows& values = all.values[to_size(victim.scope)];
    const double own = originals::norm(values[victim.block.index()]);
    EXPECT_LE(std::ranges::count_if(values, [&](const auto& value) { return originals::norm(value) < own; }), 3 + 4)
        << "the shortest but for the first tokens";
  }
}

// Remembers what it was told of each head.
class ExpectedWatcher final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "watcher"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .expected = 40, .expected_spread = true}; }
  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    told_[to_size(scope.index)] = scope.expected_value;
    return scope.expected_value;
  }
  [[nodiscard]] const std::vector<double>& told(std::size_t head) const { return told_.at(head); }

 private:
  mutable std::map<std::size_t, std::vector<double>> told_;
};

class ExpectedRowTypes : public ::testing::TestWithParam<RowType> {};

// Queries of the first layer are the same whatever type K and V have.
TEST_P(ExpectedRowTypes, are_read_as_attention_reads_them) {
  constexpr std::int32_t kBlock = 16;
  RandomModelSpec spec = toy_spec("qwen3");  // over halves, as the definition rotates
  spec.head_dim = 32;
  ToyQueries plain({.spec = spec});
  ToyQueries toy({.spec = spec, .kv_type = GetParam(), .block_size = kBlock});
  const auto watcher = std::make_shared<ExpectedWatcher>();
  SessionOptions options = ToyQueries::options();
  options.policy = watcher;
  Session session(toy.deps("streaming"), options);
  const auto whole = plain.make_session("streaming");
  const std::vector<Token> tokens = ToyQueries::tokens(6 * kBlock, 12);
  plain.say({{whole.get(), tokens}}, 64);
  toy.say({{&session, tokens}}, 64);
  (void)session.find_victims(1);

  const Originals all = read_originals(plain, *whole);
  const std::size_t n_heads = to_size(toy.shape().n_kv_heads);
  originals::Heads queries(all.queries.begin(), all.queries.begin() + static_cast<std::ptrdiff_t>(n_heads));
  originals::Heads keys(n_heads);
  originals::Heads values(n_heads);
  for (std::size_t head = 0; head < n_heads; ++head) {
    for (const BlockIndex block : session.hot().hot_blocks()) {
      const ToyQueries::Rows rows = toy.rows(session, block, head);
      for (std::size_t slot = 0; slot < to_size(kBlock); ++slot) {
        keys[head].emplace_back(rows.keys.row(slot).begin(), rows.keys.row(slot).end());
        values[head].emplace_back(rows.values.row(slot).begin(), rows.values.row(slot).end());
      }
    }
  }
  const std::size_t n_sinks = to_size(session.options().sink_tokens);
  const originals::Rows scores = originals::expected_attention_scores(
      queries, keys, values,
      {.n_sinks = n_sinks, .n_future = 40, .next_position = tokens.size(), .theta = double{spec.rope_freq_base}});
  for (std::size_t head = 0; head < n_heads; ++head) {
    ASSERT_EQ(watcher->told(head).size(), 6U);
    for (std::size_t block = 0; block < 6; ++block) {
      double sum = 0.0;
      double n = 0.0;
      for (std::size_t t = std::max(n_sinks, block * to_size(kBlock)); t < (block + 1) * to_size(kBlock); ++t) {
        sum += scores[head][t];
        n += 1.0;
      }
      EXPECT_NEAR(watcher->told(head)[block], sum / n, 1e-4 * sum / n) << head << " " << block;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ExpectedRowTypes,
                         ::testing::Values(RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0,
                                           RowType::kKivi4),
                         [](const auto& type) { return std::string(row_type_name(type.param)); });

}  // namespace
}  // namespace ebb
