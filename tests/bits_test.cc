// What may not change a logit bit on the CPU, and what may change it by how much (house.md, law 3).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo.h"

namespace ebb {
namespace {

constexpr std::int32_t kTokens = 200;

struct Toy {
  std::string name;
  RandomModelSpec spec;
  RowType kv = RowType::kF32;

  friend void PrintTo(const Toy& value, std::ostream* out) { *out << value.name; }
};

std::vector<Toy> toys() {
  return {
      {"llama_f32", {.n_kv_heads = 1}, RowType::kF32},
      {"qwen3_f16", {.architecture = "qwen3", .head_dim = 64, .weight_type = GGML_TYPE_F16}, RowType::kF16},
      {"llama_q8_0", {.n_embd = 128, .head_dim = 32, .weight_type = GGML_TYPE_Q8_0}, RowType::kQ8_0},
      {"llama_q4_k", {.n_embd = 256, .head_dim = 64, .n_ff = 512, .weight_type = GGML_TYPE_Q4_K}, RowType::kBF16},
      {"llama_kivi4", {.n_embd = 128, .head_dim = 40}, RowType::kKivi4},
      {"qwen3_kivi4", {.architecture = "qwen3", .head_dim = 64, .weight_type = GGML_TYPE_F16}, RowType::kKivi4},
      {"gemma3_f16",
       {.architecture = "gemma3",
        .n_layers = 6,
        .head_dim = 32,
        .tied = true,
        .sliding_window = 70,
        .weight_type = GGML_TYPE_F16},
       RowType::kF16},
  };
}

std::vector<Token> some_tokens(std::int32_t n_tokens, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i < n_tokens; ++i) tokens.emplace_back(static_cast<std::int32_t>(random() % 300));
  return tokens;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

double relative_difference(std::span<const float> a, std::span<const float> b) {
  const auto [low, high] = std::ranges::minmax(b);
  double worst = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i) worst = std::max(worst, std::abs(double{a[i]} - double{b[i]}));
  return worst / (double{high} - double{low});
}

class Bits : public ::testing::TestWithParam<Toy> {
 protected:
  void SetUp() override { ASSERT_TRUE(write_random_model(GetParam().spec, file_.path()).ok()); }

  std::unique_ptr<Solo> open(SoloOptions options = {}) {
    options.kv_type = GetParam().kv;
    Result<std::unique_ptr<Solo>> solo = Solo::open(file_.path(), options);
    EXPECT_TRUE(solo.ok()) << solo.status().message();
    return *std::move(solo);
  }

  // The rounding of ggml's matrix products depends on how many rows they have: which kernel takes the last rows of a
  // tile, and in which order it sums. In f32 that is the last bits; activations that are rounded to 8 bits amplify it
  // when one falls on the other side, and so do codes of K and V (seen: 1.3e-5 and 1.6e-2; f16 weights round the
  // activations of a few rows, and not those of many).
  [[nodiscard]] double bound_of_matrix_products() const {
    const ggml_type type = GetParam().spec.weight_type;
    if (GetParam().kv == RowType::kKivi4) return type == GGML_TYPE_F32 ? 1e-4 : 3e-2;
    if (type == GGML_TYPE_F32) return 2e-6;
    return type == GGML_TYPE_F16 ? 2e-3 : 3e-2;
  }

  TemporaryFile file_{".gguf"};
};

TEST_P(Bits, thread_count_changes_none) {
  const auto tokens = some_tokens(kTokens, 1);
  const LogitMatrix one = *open({.n_threads = 1})->logits(tokens, 70);
  for (const std::int32_t n_threads : {2, 3, 5}) {
    EXPECT_TRUE(same_bits(open({.n_threads = n_threads})->logits(tokens, 70)->values, one.values)) << n_threads;
  }
}

TEST_P(Bits, frame_placement_changes_none) {
  const auto tokens = some_tokens(kTokens, 2);
  const LogitMatrix in_order = *open({.block_size = 16})->logits(tokens, 70);
  for (const std::uint64_t seed : {7U, 8U}) {
    EXPECT_TRUE(same_bits(open({.block_size = 16, .shuffle_seed = seed})->logits(tokens, 70)->values, in_order.values));
  }
}

TEST_P(Bits, chunk_size_changes_only_what_matrix_products_round) {
  const auto tokens = some_tokens(kTokens, 3);
  const auto solo = open();
  const LogitMatrix whole = *solo->logits(tokens, kTokens);
  for (const std::int32_t chunk : {1, 7, 64}) {
    EXPECT_LE(relative_difference(solo->logits(tokens, chunk)->values, whole.values), bound_of_matrix_products())
        << chunk;
  }
}

TEST_P(Bits, company_in_a_batch_changes_only_what_matrix_products_round) {
  const auto solo = open();
  const auto a = some_tokens(90, 4);
  const auto b = some_tokens(41, 5);
  const LogitMatrix alone = *solo->logits(a, 90);

  Residency first(solo->pool(), solo->shape(), solo->open_pool());
  Residency second(solo->pool(), solo->shape(), solo->open_pool());
  ASSERT_TRUE(Solo::place(first, 90).ok());
  ASSERT_TRUE(Solo::place(second, 41).ok());
  const std::vector<SequenceInput> inputs = {
      {.tokens = b, .first = Position(0), .residency = &second, .n_outputs = 1},
      {.tokens = a, .first = Position(0), .residency = &first, .n_outputs = 1},
  };
  ASSERT_TRUE(solo->runner().run(inputs).ok());
  EXPECT_LE(relative_difference(solo->runner().logits(1), alone.row(89)), bound_of_matrix_products());
}

// Computes tokens behind `residency`, one row each, and keeps the logits of the last.
std::vector<float> decode(Solo& solo, Residency& residency, std::span<const Token> tokens) {
  std::vector<float> last;
  for (const Token& token : tokens) {
    const Position first = residency.end();
    EXPECT_TRUE(Solo::place(residency, 1).ok());
    const SequenceInput input = {.tokens = {&token, 1}, .first = first, .residency = &residency, .n_outputs = 1};
    EXPECT_TRUE(solo.runner().run({&input, 1}).ok());
    const auto logits = solo.runner().logits(0);
    last.assign(logits.begin(), logits.end());
  }
  return last;
}

void prefill(Solo& solo, Residency& residency, std::span<const Token> tokens) {
  ASSERT_TRUE(Solo::place(residency, static_cast<std::int32_t>(tokens.size())).ok());
  const SequenceInput input = {.tokens = tokens, .first = Position(0), .residency = &residency, .n_outputs = 1};
  ASSERT_TRUE(solo.runner().run({&input, 1}).ok());
}

// All frames of a block, in the order of layers and heads.
std::vector<std::byte> block_bytes(Solo& solo, const Residency& residency, BlockIndex block) {
  std::vector<std::byte> bytes;
  std::vector<std::byte> frame(solo.memory().frame_bytes());
  for (std::int32_t layer = 0; layer < solo.shape().n_layers; ++layer) {
    for (std::int32_t head = 0; head < solo.shape().n_kv_heads; ++head) {
      solo.memory().read(residency.frame(block, LayerIndex(layer), HeadIndex(head)), frame);
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
  }
  return bytes;
}

TEST_P(Bits, evict_and_recall_at_the_original_position_changes_none) {
  const auto solo = open({.block_size = 16});
  const auto prompt = some_tokens(150, 6);
  const auto rest = some_tokens(20, 7);

  Residency twin(solo->pool(), solo->shape(), solo->open_pool());
  prefill(*solo, twin, prompt);
  const std::vector<float> expected = decode(*solo, twin, rest);

  Residency residency(solo->pool(), solo->shape(), solo->open_pool());
  prefill(*solo, residency, prompt);
  std::vector<std::vector<std::byte>> saved;
  const std::vector<BlockIndex> victims = {BlockIndex(5), BlockIndex(0), BlockIndex(3)};
  for (const BlockIndex block : victims) {
    saved.push_back(block_bytes(*solo, residency, block));
    residency.evict(block);
  }
  const std::vector<float> with_holes = [&] {
    Residency cut(solo->pool(), solo->shape(), solo->open_pool());
    prefill(*solo, cut, prompt);
    for (const BlockIndex block : victims) cut.evict(block);
    return decode(*solo, cut, rest);
  }();
  EXPECT_FALSE(same_bits(with_holes, expected)) << "the holes should have been noticed";

  solo->pool().shuffle_free(99);
  for (std::size_t i = 0; i < victims.size(); ++i) {
    ASSERT_TRUE(residency.admit(victims[i]).ok());
    std::span<const std::byte> bytes = saved[i];
    for (std::int32_t layer = 0; layer < solo->shape().n_layers; ++layer) {
      for (std::int32_t head = 0; head < solo->shape().n_kv_heads; ++head) {
        solo->memory().write(residency.frame(victims[i], LayerIndex(layer), HeadIndex(head)),
                             bytes.first(solo->memory().frame_bytes()));
        bytes = bytes.subspan(solo->memory().frame_bytes());
      }
    }
  }
  residency.check_invariants();
  EXPECT_TRUE(same_bits(decode(*solo, residency, rest), expected));
}

INSTANTIATE_TEST_SUITE_P(Toys, Bits, ::testing::ValuesIn(toys()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ebb
