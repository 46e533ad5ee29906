#include "model/attention.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "model/toy_attention.h"

namespace ebb {
namespace {

using toy::Cut;
using toy::Layer;
using toy::Output;
using toy::RunOptions;
using toy::Session;

// Outputs are averages of values in [-1, 1], masses are sums over the group. Scores reach +-30 here, where half a unit
// in the last place of a float is 1e-6 of p; the errors of many keys cancel (the greatest seen was 7e-7).
constexpr double kBound = 2e-6;

AttentionShape make_shape(std::int32_t n_heads, std::int32_t n_kv_heads, std::int32_t head_dim, RowType type) {
  AttentionShape shape;
  shape.layout = {.row_type = type, .head_dim_k = head_dim, .head_dim_v = head_dim};
  shape.n_heads = n_heads;
  shape.n_kv_heads = n_kv_heads;
  shape.scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  return shape;
}

template <class T>
T pick(std::mt19937& random, std::initializer_list<T> values) {
  return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

AttentionShape random_shape(std::mt19937& random) {
  const auto n_kv_heads = pick<std::int32_t>(random, {1, 2, 3});
  const auto group = pick<std::int32_t>(random, {1, 2, 3, 4, 5, 6, 7, 8, 9, 16});
  const auto type = pick(random, {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4});
  const bool groups = type == RowType::kQ8_0;
  AttentionShape shape = make_shape(n_kv_heads * group, n_kv_heads, 32, type);
  shape.layout.head_dim_k = groups ? pick<std::int32_t>(random, {32, 64, 96, 128})
                                   : pick<std::int32_t>(random, {1, 3, 16, 17, 40, 64, 80, 128});
  shape.layout.head_dim_v = groups ? pick<std::int32_t>(random, {32, 64, 96, 128})
                                   : pick<std::int32_t>(random, {1, 5, 16, 31, 48, 64, 80, 128});
  shape.layout.block_size = pick<std::int32_t>(random, {1, 2, 5, 8, 13, 16, 32, 48, 64, 100, 128});
  shape.scale = 1.0F / std::sqrt(static_cast<float>(shape.layout.head_dim_k));
  shape.window = pick<std::int32_t>(random, {0, 0, 1, 7, 50, 130});
  return shape;
}

Cut random_cut(std::mt19937& random, std::int32_t n_tokens, std::int32_t longest) {
  Cut cut;
  for (std::int32_t done = 0; done < n_tokens; done += cut.back()) {
    cut.push_back(std::min(std::uniform_int_distribution<std::int32_t>(1, longest)(random), n_tokens - done));
  }
  return cut;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same_bits(const std::vector<Output>& a, const std::vector<Output>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) {
    EXPECT_TRUE(same_bits(a[s].out, b[s].out)) << what << ": output of session " << s;
    EXPECT_TRUE(same_bits(a[s].mass, b[s].mass)) << what << ": mass of session " << s;
  }
}

// Compares one query with the reference, all heads and masses.
void expect_query_near_reference(const Layer& layer, const AttentionShape& shape, const Session& session,
                                 const Output& output, std::int32_t token) {
  const std::int32_t group = shape.n_heads / shape.n_kv_heads;
  const std::size_t stride = output.mass.size() / to_size(session.n_tokens * shape.n_kv_heads);
  const auto dim_v = to_size(shape.layout.head_dim_v);
  double error = 0.0;
  double mass_error = 0.0;
  for (std::int32_t kv_head = 0; kv_head < shape.n_kv_heads; ++kv_head) {
    std::vector<double> mass(stride, 0.0);
    for (std::int32_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const std::vector<double> expected = layer.reference(session, token, head, &mass);
      const float* const actual = &output.out[to_size(token * shape.n_heads + head) * dim_v];
      for (std::size_t d = 0; d < dim_v; ++d) {
        const double difference = std::abs(expected[d] - static_cast<double>(actual[d]));
        error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      }
    }
    if (output.mass.empty()) continue;
    for (std::size_t e = 0; e < mass.size(); ++e) {
      const double actual = output.mass[to_size(token * shape.n_kv_heads + kv_head) * stride + e];
      const double difference = std::abs(mass[e] - actual);
      mass_error = std::isnan(difference) ? INFINITY : std::max(mass_error, difference);
    }
  }

  EXPECT_LT(error, kBound) << "token " << token;
  EXPECT_LT(mass_error, kBound * group) << "token " << token;
}

// Runs everything that follows with one kernel set.
class ForcedKernelSet {
 public:
  explicit ForcedKernelSet(KernelSet set) : before_(current_kernel_set()), forced_(try_set_kernel_set(set)) {}
  ~ForcedKernelSet() { EXPECT_TRUE(try_set_kernel_set(before_)); }
  ForcedKernelSet(const ForcedKernelSet&) = delete;
  ForcedKernelSet& operator=(const ForcedKernelSet&) = delete;
  [[nodiscard]] bool ok() const { return forced_; }

 private:
  KernelSet before_;
  bool forced_;
};

std::string describe(std::uint32_t seed, const AttentionShape& shape) {
  return fmt::format("seed {}: {} heads over {}, dims {} and {}, blocks of {}, window {}, {}", seed, shape.n_heads,
                     shape.n_kv_heads, shape.layout.head_dim_k, shape.layout.head_dim_v, shape.layout.block_size,
                     shape.window, row_type_name(shape.layout.row_type));
}

TEST(Attention, agrees_with_float64_over_random_shapes_holes_windows_and_row_types) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const AttentionShape shape = random_shape(random);
    SCOPED_TRACE(describe(seed, shape));
    Layer layer(shape, seed);
    std::vector<Session> sessions;
    std::vector<Cut> cuts;
    const auto n_sessions = pick<std::int32_t>(random, {1, 2, 3});
    for (std::int32_t s = 0; s < n_sessions; ++s) {
      const auto n_tokens = pick<std::int32_t>(random, {1, 9, 70, 150});
      const auto first = Position(pick<std::int32_t>(random, {0, 5, 990, 70000}));
      sessions.push_back(
          layer.make_session(n_tokens, first, pick(random, {0.0, 0.3, 0.8}), pick(random, {true, false})));
      cuts.push_back(random_cut(random, n_tokens, 100));
    }
    const std::vector<Output> outputs = layer.run(sessions, cuts, {.n_threads = pick<std::int32_t>(random, {1, 2, 3})});
    for (std::size_t s = 0; s < sessions.size(); ++s) {
      for (std::int32_t token = sessions[s].n_tokens - 1; token >= 0; token -= 7) {
        expect_query_near_reference(layer, shape, sessions[s], outputs[s], token);
      }
    }
  }
}

TEST(Attention, agrees_with_float64_over_many_splits) {
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4}) {
    const AttentionShape shape = make_shape(8, 2, 64, type);
    Layer layer(shape, 11);
    const std::vector<Session> sessions = {layer.make_session(4200, Position(0), 0.1, false)};
    const std::vector<Output> outputs = layer.run(sessions, {{4100, 99, 1}}, {.n_threads = 2, .attend_from = 4100});
    for (std::int32_t token = 4100; token < 4200; token += 33) {
      expect_query_near_reference(layer, shape, sessions[0], outputs[0], token);
    }
  }
}

TEST(Attention, gives_zeros_to_a_query_that_sees_nothing) {
  const AttentionShape shape = make_shape(4, 2, 32, RowType::kF16);
  Layer layer(shape, 3);
  const std::vector<Session> sessions = {layer.make_session(40, Position(7), 1.0, false)};
  const std::vector<Output> outputs = layer.run(sessions, {{30, 1, 9}}, {.n_threads = 2});
  for (const float x : outputs[0].out) ASSERT_EQ(x, 0.0F);
  for (const float x : outputs[0].mass) ASSERT_EQ(x, 0.0F);
}

TEST(Attention, mass_of_a_query_adds_up_to_the_heads_of_its_group) {
  const AttentionShape shape = make_shape(12, 2, 64, RowType::kF16);
  Layer layer(shape, 5);
  const std::vector<Session> sessions = {layer.make_session(300, Position(900), 0.0, false)};
  const std::vector<Output> outputs = layer.run(sessions, {{90, 1, 200, 9}}, {});
  const auto stride = to_size(Layer::mass_stride(sessions));
  for (std::size_t row = 0; row < 300 * 2; ++row) {
    const auto begin = outputs[0].mass.begin() + static_cast<std::ptrdiff_t>(row * stride);
    ASSERT_NEAR(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(stride), 0.0), 6.0, 1e-5);
  }
}

TEST(Attention, asking_for_mass_changes_no_bit_of_the_output) {
  const AttentionShape shape = make_shape(8, 2, 64, RowType::kF16);
  Layer layer(shape, 6);
  const std::vector<Session> sessions = {layer.make_session(260, Position(850), 0.2, false)};
  const std::vector<Output> with = layer.run(sessions, {{200, 60}}, {.n_threads = 2, .mass = true});
  const std::vector<Output> without = layer.run(sessions, {{200, 60}}, {.n_threads = 2, .mass = false});
  EXPECT_TRUE(same_bits(with[0].out, without[0].out));
}

// Nothing else is reckoned or written, whether a tile holds rows that ask or not.
TEST(Attention, gives_the_mass_of_the_rows_that_ask_as_if_all_did) {
  for (std::uint32_t seed = 400; seed < 412; ++seed) {
    std::mt19937 random(seed);
    const AttentionShape shape = random_shape(random);
    SCOPED_TRACE(describe(seed, shape));
    Layer layer(shape, seed);
    const std::vector<Session> sessions = {layer.make_session(260, Position(850), 0.2, shape.layout.seals())};
    const std::vector<toy::Cut> cuts = {{200, 59, 1}};
    const Output all = layer.run(sessions, cuts, {.n_threads = 2})[0];
    for (const std::int32_t n_asking : {1, 5, 40}) {
      const Output some = layer.run(sessions, cuts, {.n_threads = 2, .n_mass_rows = n_asking})[0];
      EXPECT_TRUE(same_bits(all.out, some.out));
      const std::size_t n_of_token = all.mass.size() / 260;
      for (std::int32_t token = 0; token < 260; ++token) {
        const std::int32_t step_end = token < 200 ? 200 : token < 259 ? 259 : 260;
        const auto mass_of = [&](const Output& output) {
          const auto begin = output.mass.begin() + static_cast<std::ptrdiff_t>(to_size(token) * n_of_token);
          return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(n_of_token));
        };
        const bool asks = token >= step_end - n_asking;
        EXPECT_EQ(mass_of(some), asks ? mass_of(all) : std::vector<float>(n_of_token, 0.0F)) << "token " << token;
      }
    }
  }
}

TEST(Attention, of_the_last_layer_is_whole_for_the_rows_that_are_read_and_spared_for_most_others) {
  for (std::uint32_t seed = 420; seed < 432; ++seed) {
    std::mt19937 random(seed);
    const AttentionShape shape = random_shape(random);
    SCOPED_TRACE(describe(seed, shape));
    Layer layer(shape, seed);
    const std::vector<Session> sessions = {layer.make_session(460, Position(850), 0.2, true),
                                           layer.make_session(20, Position(3), 0.0, true)};
    const std::vector<toy::Cut> cuts = {{200, 259, 1}, {19, 1}};
    for (const std::int32_t n_threads : {1, 3}) {
      for (const auto& [n_outputs, n_asking] : {std::pair(0, 0), {0, 5}, {1, 0}, {7, 3}, {1, 40}}) {
        RunOptions options{
            .n_threads = n_threads, .mass = n_asking > 0, .n_mass_rows = n_asking, .n_outputs = n_outputs};
        const std::vector<Output> all = layer.run(sessions, cuts, options);
        options.last_layer = true;
        const std::vector<Output> read = layer.run(sessions, cuts, options);
        std::size_t n_spared = 0;
        for (std::size_t s = 0; s < sessions.size(); ++s) {
          EXPECT_TRUE(same_bits(all[s].mass, read[s].mass));
          const std::size_t n_of_token = all[s].out.size() / to_size(sessions[s].n_tokens);
          std::int32_t end = 0;
          for (const std::int32_t n_tokens : cuts[s]) {
            end += n_tokens;
            for (std::int32_t token = end - n_tokens; token < end; ++token) {
              const auto row_of = [&](const Output& output) {
                return std::span(output.out).subspan(to_size(token) * n_of_token, n_of_token);
              };
              if (token >= end - std::max(n_outputs, n_asking)) {
                EXPECT_TRUE(std::ranges::equal(row_of(all[s]), row_of(read[s]))) << "token " << token;
              } else {
                n_spared += std::isnan(row_of(read[s])[0]) ? 1 : 0;  // nobody wrote there
              }
            }
          }
        }
        EXPECT_GE(n_spared, n_outputs + n_asking == 0 ? 480U : 200U);
      }
    }
  }
}

TEST(Attention, is_bitwise_the_same_for_any_threads_frames_cuts_and_company) {
  for (std::uint32_t seed = 100; seed < 112; ++seed) {
    std::mt19937 random(seed);
    const AttentionShape shape = random_shape(random);
    SCOPED_TRACE(describe(seed, shape));
    Layer layer(shape, seed);
    const std::vector<Session> sessions = {layer.make_session(200, Position(920), 0.2, false),
                                           layer.make_session(57, Position(3), 0.0, true)};
    const std::vector<Output> expected = layer.run(sessions, {{200}, {57}}, {});
    for (const std::int32_t n_threads : {2, 3, 8}) {
      expect_same_bits(expected, layer.run(sessions, {{200}, {57}}, {.n_threads = n_threads}), "threads");
    }
    expect_same_bits(expected, layer.run(sessions, {{200}, {57}}, {.frame_seed = 77}), "frames");
    for (const std::int32_t longest : {1, 5, 60}) {
      const std::vector<Cut> cuts = {random_cut(random, 200, longest), random_cut(random, 57, longest)};
      const std::int32_t n_threads = longest == 1 ? 1 : 3;
      expect_same_bits(expected, layer.run(sessions, cuts, {.n_threads = n_threads}), "cuts");
    }
    const std::vector<Output> alone = layer.run({sessions[1]}, {{20, 37}}, {});
    EXPECT_TRUE(same_bits(expected[1].out, alone[0].out)) << "company";
  }
}

TEST(Attention, is_bitwise_the_same_for_decode_of_many_splits_by_any_threads) {
  const AttentionShape shape = make_shape(8, 2, 64, RowType::kF16);
  Layer layer(shape, 21);
  const std::vector<Session> sessions = {layer.make_session(5000, Position(0), 0.1, true)};
  const RunOptions one{.attend_from = 4990};
  const std::vector<Output> expected = layer.run(sessions, {{4990, 10}}, one);
  for (const std::int32_t n_threads : {2, 3, 8}) {
    RunOptions options = one;
    options.n_threads = n_threads;
    expect_same_bits(expected, layer.run(sessions, {{4990, 1, 1, 3, 5}}, options), "threads");
  }
}

TEST(Attention, is_bitwise_the_same_with_every_kernel_set) {
  for (std::uint32_t seed = 200; seed < 224; ++seed) {
    std::mt19937 random(seed);
    const AttentionShape shape = random_shape(random);
    SCOPED_TRACE(describe(seed, shape));
    Layer layer(shape, seed);
    const std::vector<Session> sessions = {layer.make_session(40, Position(1000), 0.2, false)};
    const std::vector<Cut> cuts = {{30, 9, 1}};
    std::vector<Output> expected;
    {
      const ForcedKernelSet portable(KernelSet::kPortable);
      ASSERT_TRUE(portable.ok());
      expected = layer.run(sessions, cuts, {});
    }
    for (const KernelSet set : {KernelSet::kAvx2, KernelSet::kAvx512}) {
      const ForcedKernelSet forced(set);
      if (forced.ok()) expect_same_bits(expected, layer.run(sessions, cuts, {.n_threads = 2}), kernel_set_name(set));
    }
  }
}

TEST(Attention, picks_the_best_kernel_set_until_told_otherwise) {
  EXPECT_EQ(current_kernel_set(), best_kernel_set());
  const ForcedKernelSet forced(KernelSet::kPortable);
  EXPECT_TRUE(forced.ok());
  EXPECT_EQ(current_kernel_set(), KernelSet::kPortable);
}

}  // namespace
}  // namespace ebb
