#include "bench/llama_peer.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace ebb::llama_peer_test {
namespace {

const std::filesystem::path kModel = std::filesystem::path(EBB_SOURCE_DIR) / "models" / "ebb-recall.gguf";

std::unique_ptr<LlamaPeer> load(const LlamaPeerOptions& options) {
  auto peer = LlamaPeer::load(kModel, options);
  EXPECT_TRUE(peer.ok()) << peer.status().message();
  return peer.ok() ? std::move(*peer) : nullptr;
}

std::vector<Token> some_tokens(std::int32_t n) {
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i < n; ++i) tokens.emplace_back(100 + (i * 37) % 900);
  return tokens;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

TEST(LlamaPeer, gives_one_row_of_logits_per_token) {
  auto peer = load({.n_ctx = 512, .n_ubatch = 64});
  ASSERT_NE(peer, nullptr);
  const auto tokens = some_tokens(150);
  const auto matrix = peer->logits(tokens);
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  EXPECT_EQ(matrix->n_rows, 150);
  EXPECT_EQ(matrix->values.size(), 150U * static_cast<std::size_t>(peer->n_vocab()));
  EXPECT_EQ(peer->n_resident(), 150);
  // The last row is what append() of the same tokens gives.
  ASSERT_TRUE(peer->truncate(0).ok());
  ASSERT_TRUE(peer->append(tokens).ok());
  EXPECT_LT(largest_difference(matrix->row(149), peer->last_logits()), 1e-3);
  EXPECT_GT(largest_difference(matrix->row(0), matrix->row(149)), 1e-2);
}

TEST(LlamaPeer, rolls_back_to_what_it_had_computed_before) {
  auto peer = load({.n_ctx = 512, .kv_type = RowType::kF32, .flash_attention = FlashAttention::kOff});
  ASSERT_NE(peer, nullptr);
  const auto tokens = some_tokens(100);
  const std::span<const Token> all(tokens);
  ASSERT_TRUE(peer->append(all.first(80)).ok());
  ASSERT_TRUE(peer->append(all.subspan(80, 1)).ok());
  const std::vector<float> before(peer->last_logits().begin(), peer->last_logits().end());
  ASSERT_TRUE(peer->append(all.subspan(81)).ok());
  ASSERT_TRUE(peer->truncate(80).ok());
  EXPECT_EQ(peer->n_resident(), 80);
  ASSERT_TRUE(peer->append(all.subspan(80, 1)).ok());
  EXPECT_EQ(largest_difference(before, peer->last_logits()), 0.0);
}

TEST(LlamaPeer, chooses_the_most_likely_tokens_greedily) {
  auto peer = load({.n_ctx = 512});
  ASSERT_NE(peer, nullptr);
  const auto prompt = some_tokens(20);
  const auto generated = peer->greedy(prompt, 5);
  ASSERT_TRUE(generated.ok()) << generated.status().message();
  ASSERT_EQ(generated->size(), 5U);
  std::vector<Token> all = prompt;
  all.insert(all.end(), generated->begin(), generated->end());
  const auto matrix = peer->logits(all);
  ASSERT_TRUE(matrix.ok());
  for (std::int32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(argmax(matrix->row(19 + i)), (*generated)[static_cast<std::size_t>(i)]) << "token " << i;
  }
}

TEST(LlamaPeer, says_how_it_was_set_up) {
  auto peer = load({.n_ctx = 512});
  ASSERT_NE(peer, nullptr);
  const std::string text = peer->description();
  for (const char* part : {"libllama 0.", "ggml 0.", "flash attention auto (on)", "f16 KV", "512 rows", "repacked"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

TEST(LlamaPeer, more_tokens_than_fit_are_an_error) {
  auto peer = load({.n_ctx = 256});
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer->append(some_tokens(peer->n_ctx() + 1)).code(), Code::kOutOfBudget);
}

TEST(LlamaPeer, a_file_that_is_not_there_is_an_error_that_names_it) {
  const auto peer = LlamaPeer::load("/nowhere/at-all.gguf", {});
  ASSERT_FALSE(peer.ok());
  EXPECT_NE(peer.status().message().find("/nowhere/at-all.gguf"), std::string::npos);
}

}  // namespace
}  // namespace ebb::llama_peer_test
