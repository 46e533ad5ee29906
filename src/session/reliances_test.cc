#include "session/reliances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb::reliances_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int32_t kSlice = 16;

Span span(std::int32_t begin, std::int32_t end) { return {Position(begin), Position(end)}; }

std::vector<std::int32_t> list(std::initializer_list<std::int32_t> slices) { return slices; }

TEST(Reliances, of_steps_add_up_by_slice) {
  Reliances reliances(kSlice);
  reliances.add(span(0, 40), std::vector<SliceReliance>{{.of = 1, .on = 0}, {.of = 2, .on = 1}});
  reliances.add(span(40, 50), std::vector<SliceReliance>{{.of = 2, .on = 0}, {.of = 2, .on = 1}, {.of = 3, .on = 2}});
  ASSERT_EQ(reliances.n_slices(), 4);
  EXPECT_THAT(*reliances.of(0), IsEmpty());
  EXPECT_THAT(*reliances.of(1), ElementsAre(0));
  EXPECT_THAT(*reliances.of(2), ElementsAre(0, 1));
  EXPECT_THAT(*reliances.of(3), ElementsAre(2));
  EXPECT_EQ(reliances.of(4), std::nullopt);
}

TEST(Reliances, of_rows_that_nobody_told_of_are_on_all) {
  Reliances reliances(kSlice);
  reliances.add(span(0, 16), std::vector<SliceReliance>{});
  reliances.add(span(40, 64), std::vector<SliceReliance>{{.of = 3, .on = 0}});
  EXPECT_TRUE(reliances.of(0));
  EXPECT_EQ(reliances.of(1), std::nullopt);
  EXPECT_EQ(reliances.of(2), std::nullopt) << "half of it is known";
  EXPECT_THAT(*reliances.of(3), ElementsAre(0));
}

TEST(Reliances, of_rows_that_were_computed_beside_others_are_on_all) {
  Reliances reliances(kSlice);
  reliances.add(span(0, 64), std::vector<SliceReliance>{{.of = 3, .on = 1}});
  reliances.forget(span(16, 48));
  EXPECT_TRUE(reliances.of(0));
  EXPECT_FALSE(reliances.of(1));
  EXPECT_FALSE(reliances.of(2));
  EXPECT_THAT(*reliances.of(3), ElementsAre(1));
  reliances.forget(span(48, 200));
  EXPECT_EQ(reliances.n_slices(), 4);
}

TEST(Reliances, of_too_many_are_on_all) {
  Reliances reliances(kSlice);
  const auto n = static_cast<std::int32_t>(kMostReliances) + 2;
  std::vector<SliceReliance> found;
  for (std::int32_t on = 0; on < n - 2; ++on) found.push_back({.of = n, .on = on});
  reliances.add(span(0, (n + 1) * kSlice), found);
  EXPECT_EQ(reliances.of(n)->size(), kMostReliances);
  reliances.add(span(n * kSlice, (n + 1) * kSlice), std::vector<SliceReliance>{{.of = n, .on = n - 1}});
  EXPECT_EQ(reliances.of(n), std::nullopt);
}

TEST(Reliances, are_forgotten_with_what_is_cut) {
  Reliances reliances(kSlice);
  reliances.add(span(0, 64), std::vector<SliceReliance>{{.of = 2, .on = 1}, {.of = 3, .on = 1}});
  reliances.cut(Position(40));
  EXPECT_EQ(reliances.n_slices(), 3);
  EXPECT_EQ(reliances.end(), Position(40));
  EXPECT_THAT(*reliances.of(2), ElementsAre(1)) << "some of its rows stay";
  reliances.add(span(40, 64), std::vector<SliceReliance>{});
  EXPECT_THAT(*reliances.of(3), IsEmpty());
  reliances.cut(Position(100));
  EXPECT_EQ(reliances.end(), Position(64)) << "a cut behind the end";
}

TEST(Reliances, of_rows_that_were_taken_are_what_is_told_of_them) {
  Reliances reliances(kSlice);
  reliances.add(span(0, 20), std::vector<SliceReliance>{});
  reliances.add(span(20, 40), list({0, 1}));
  EXPECT_THAT(*reliances.of(1), ElementsAre(0)) << "not on itself";
  EXPECT_THAT(*reliances.of(2), ElementsAre(0, 1));
}

TEST(Reliances, that_are_restored_are_as_they_were_or_refused) {
  using Slices = std::vector<std::optional<std::vector<std::int32_t>>>;
  const Result<Reliances> sound =
      Reliances::restore(kSlice, Position(40), Slices{list({}), std::nullopt, list({0, 1})});
  ASSERT_TRUE(sound.ok()) << sound.status().message();
  EXPECT_EQ(sound->of(1), std::nullopt);
  EXPECT_THAT(*sound->of(2), ElementsAre(0, 1));
  for (const Slices& slices :
       {Slices{list({}), list({0})}, Slices{list({}), list({1}), list({})}, Slices{list({-1}), list({}), list({})},
        Slices{list({}), list({}), list({1, 0})}, Slices{list({}), list({}), list({0, 0})}}) {
    EXPECT_EQ(Reliances::restore(kSlice, Position(40), slices).status().code(), Code::kDamaged);
  }
}

}  // namespace
}  // namespace ebb::reliances_test
