#include "engine/token_sketch.h"

#include <random>

#include <gtest/gtest.h>

namespace ebb {
namespace {

std::vector<Token> random_text(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Token> text;
  for (std::size_t i = 0; i < n; ++i) text.emplace_back(static_cast<std::int32_t>(random() % 30'000));
  return text;
}

std::vector<Token> joined(std::span<const Token> a, std::span<const Token> b) {
  std::vector<Token> text(a.begin(), a.end());
  text.insert(text.end(), b.begin(), b.end());
  return text;
}

TokenSketch sketch_of(std::span<const Token> text) {
  TokenSketch sketch;
  sketch.follow(text);
  return sketch;
}

TEST(TokenSketches, the_same_text_is_alike_and_another_is_not) {
  const std::vector<Token> text = random_text(20'000, 1);
  EXPECT_EQ(sketch_of(text).likeness(sketch_of(text)), 1.0);
  EXPECT_EQ(sketch_of(text).likeness(sketch_of(random_text(20'000, 2))), 0.0);
}

TEST(TokenSketches, likeness_is_the_share_that_both_have_wherever_it_stands) {
  const std::vector<Token> common = random_text(10'000, 1);
  const std::vector<Token> a = joined(common, random_text(10'000, 2));
  const std::vector<Token> b = joined(random_text(10'000, 3), common);
  EXPECT_NEAR(sketch_of(a).likeness(sketch_of(b)), 1.0 / 3.0, 0.1);
  EXPECT_NEAR(sketch_of(a).likeness(sketch_of(common)), 0.5, 0.1);
}

TEST(TokenSketches, following_a_text_that_grows_or_is_cut_is_as_reading_it_anew) {
  const std::vector<Token> text = random_text(3000, 1);
  TokenSketch sketch;
  for (const std::size_t n : {5U, 16U, 17U, 900U, 3000U}) {
    sketch.follow(std::span(text).first(n));
    EXPECT_EQ(sketch.likeness(sketch_of(std::span(text).first(n))), n < TokenSketch::kRun ? 0.0 : 1.0) << n;
  }
  const std::vector<Token> edited = joined(std::span(text).first(1000), random_text(2500, 2));
  sketch.follow(edited);
  EXPECT_EQ(sketch.likeness(sketch_of(edited)), 1.0);
  sketch.follow(std::span(text).first(100));
  EXPECT_EQ(sketch.likeness(sketch_of(std::span(text).first(100))), 1.0);
}

TEST(TokenSketches, texts_without_a_run_are_like_none) {
  const std::vector<Token> text = random_text(TokenSketch::kRun - 1, 1);
  EXPECT_EQ(sketch_of(text).likeness(sketch_of(text)), 0.0);
  EXPECT_EQ(TokenSketch().likeness(TokenSketch()), 0.0);
}

}  // namespace
}  // namespace ebb
