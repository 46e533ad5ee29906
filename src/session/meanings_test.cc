#include "session/meanings.h"

#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

namespace ebb {
namespace {

std::vector<float> random_direction(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> vector(n);
  double squares = 0.0;
  for (float& x : vector) squares += std::pow(x = normal(random), 2.0F);
  for (float& x : vector) x /= static_cast<float>(std::sqrt(squares));
  return vector;
}

TEST(MeaningVectors, keep_cosines_in_eight_bits_a_dimension) {
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    const std::vector<float> a = random_direction(random, 384);
    std::vector<float> b = random_direction(random, 384);
    const float share = static_cast<float>(i) / 50.0F;
    double exact = 0.0;
    double squares = 0.0;
    for (std::size_t d = 0; d < a.size(); ++d) {
      b[d] = share * a[d] + (1.0F - share) * b[d];
      squares += double{b[d]} * b[d];
    }
    for (std::size_t d = 0; d < a.size(); ++d) {
      b[d] /= static_cast<float>(std::sqrt(squares));
      exact += double{a[d]} * b[d];
    }
    MeaningVectors vectors;
    vectors.add(a);
    vectors.add(b);
    ASSERT_EQ(vectors.size(), 2U);
    EXPECT_EQ(vectors.bytes().size(), 2 * (4 + 384U));
    EXPECT_NEAR(vectors.cosine(0, vectors, 1), exact, 0.002);
    EXPECT_NEAR(vectors.cosine(0, vectors, 0), 1.0, 0.002);
    const MeaningVectors again(384, {vectors.bytes().begin(), vectors.bytes().end()});
    EXPECT_EQ(again.cosine(0, vectors, 1), vectors.cosine(0, vectors, 1));
  }
}

TEST(MeaningVectors, whatever_bytes_are_read_give_numbers) {
  const std::vector<std::byte> bytes(4 + 16, std::byte{0xff});
  const MeaningVectors vectors(16, bytes);
  EXPECT_EQ(vectors.cosine(0, vectors, 0), 0.0);
  MeaningVectors zero;
  zero.add(std::vector<float>(16, 0.0F));
  EXPECT_EQ(zero.cosine(0, zero, 0), 0.0);
  EXPECT_EQ(MeaningVectors().size(), 0U);
}

TEST(Meaning, gives_its_memory_back_when_nobody_holds_it) {
  ByteRoom room(1000);
  {
    Meaning meaning(Hash128{1, 2}, {.texts = {"one two three"}});
    EXPECT_FALSE(meaning.is_done());
    MeaningVectors vectors;
    vectors.add(std::vector<float>{0.6F, 0.8F});
    ASSERT_TRUE(room.take(vectors.bytes().size()));
    meaning.set(std::move(vectors), &room);
    EXPECT_TRUE(meaning.is_done());
    EXPECT_TRUE(meaning.texts().empty());
    EXPECT_EQ(room.used(), 6U);
  }
  EXPECT_EQ(room.used(), 0U);
}

TEST(MeaningWait, tells_once_and_how_long_it_took) {
  int n_told = 0;
  MeaningWait wait(1e9, [&] { ++n_told; });
  EXPECT_FALSE(wait.is_ready());
  EXPECT_FALSE(wait.is_over());
  wait.finish();
  wait.finish();
  wait.wait();
  EXPECT_TRUE(wait.is_ready());
  EXPECT_EQ(n_told, 1);
  EXPECT_GE(wait.ms(), 0.0);
  EXPECT_TRUE(MeaningWait(0.0, {}).is_over());
}

}  // namespace
}  // namespace ebb
