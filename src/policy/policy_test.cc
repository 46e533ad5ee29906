#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/choose.h"
#include "policy/rare_words.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Evidence three_blocks() {
  Evidence evidence;
  for (std::int32_t i = 0; i < 3; ++i) {
    evidence.blocks.push_back({.block = BlockIndex(i), .span = {Position(i * 64), Position(i * 64 + 64)}});
  }
  evidence.end = Position(192);
  return evidence;
}

TEST(Choose, takes_the_oldest_blocks_first_by_recency) {
  EXPECT_THAT(choose_victims(*make_recency_policy(), three_blocks(), 2), ElementsAre(BlockIndex(0), BlockIndex(1)));
}

TEST(Choose, passes_over_pinned_blocks) {
  Evidence evidence = three_blocks();
  evidence.blocks[0].pinned = true;
  EXPECT_THAT(choose_victims(*make_recency_policy(), evidence, 2), ElementsAre(BlockIndex(1), BlockIndex(2)));
}

TEST(Choose, gives_all_there_are_when_more_are_asked_for) {
  EXPECT_EQ(choose_victims(*make_recency_policy(), three_blocks(), 9).size(), 3U);
}

TEST(RareWords, splits_identifiers_and_folds_case) {
  EXPECT_THAT(split_words("The max_items, of CONFIG.py=7"),
              ElementsAre("the", "max_items", "max", "items", "of", "config", "py", "7"));
  EXPECT_THAT(split_words("__ _ --"), IsEmpty());
}

TEST(RareWords, the_block_with_the_rarest_shared_word_comes_first) {
  WordIndex index;
  index.add(BlockIndex(0), "the code of the old gate is 4711");
  index.add(BlockIndex(1), "the price of the lamp is 20 and the price of the door is 30");
  index.add(BlockIndex(2), "the weather of the day is fine");
  const auto ranked = index.rank("What is the code of the gate?");
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked.front().block, BlockIndex(0));
}

TEST(RareWords, words_of_every_block_and_of_no_block_weigh_nothing) {
  WordIndex index;
  index.add(BlockIndex(0), "the red");
  index.add(BlockIndex(1), "the blue");
  EXPECT_THAT(index.rank("the unheard"), IsEmpty());
}

TEST(RareWords, an_empty_index_ranks_nothing) { EXPECT_THAT(WordIndex().rank("anything"), IsEmpty()); }

}  // namespace
}  // namespace ebb
