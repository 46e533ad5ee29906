// What windows hide from queries to come: it leaves by itself, and counts as there.
#include "cache/hot_set_test.h"

namespace ebb {
namespace {

// Layer 0 sees all, in heads 0 to 2; layer 1 a window, in heads 3 to 5.
BlockShape with_window(std::int32_t window) {
  return {.n_layers = 2, .n_kv_heads = 3, .block_size = 8, .windows = {0, window}};
}

class HotSetWindowTest : public HotSetTest {
 protected:
  static constexpr std::int32_t kWindow = 12;

  static std::vector<Hash128> names(const HotSet& hot) {
    std::vector<Hash128> names;
    for (std::int32_t b = 0; b < hot.n_blocks(); ++b) names.push_back(hot.exact_name(BlockIndex(b)));
    return names;
  }
  // The names of a set without windows.
  std::vector<Hash128> plain_names(std::int32_t n_tokens) {
    const auto hot = make();
    say(*hot, n_tokens);
    return names(*hot);
  }
  static void say_one_by_one(HotSet& hot, std::int32_t n_tokens) {
    for (std::int32_t i = 0; i < n_tokens; ++i) say(hot, 1);
  }

  const HeadSet global_ = heads({0, 1, 2});
  const HeadSet sliding_ = heads({3, 4, 5});
};

using HotSetWindowDeathTest = HotSetWindowTest;

TEST_F(HotSetWindowTest, what_lies_behind_its_window_leaves_that_layer_and_no_other) {
  const auto hot = make(with_window(kWindow));
  say(*hot, 18);
  EXPECT_EQ(hot->hot_heads(BlockIndex(0)), kShape.all_heads()) << "a query at 18 sees position 7";
  EXPECT_TRUE(hot->find_passing(Position(18)).empty());
  EXPECT_EQ(hot->find_passing(Position(19)), indices({0}));
  say(*hot, 1);
  EXPECT_EQ(hot->hot_heads(BlockIndex(0)), global_);
  EXPECT_EQ(hot->wanted_heads(BlockIndex(0)), global_);
  EXPECT_TRUE(hot->is_hot(BlockIndex(0)));
  EXPECT_TRUE(hot->missing_heads(BlockIndex(0)).empty());
  EXPECT_TRUE(hot->missing_window_heads(BlockIndex(0)).empty());
  EXPECT_EQ(begins(*hot, 2), (std::vector{0, 8, 16}));
  EXPECT_EQ(begins(*hot, 3), (std::vector{8, 16}));
  EXPECT_EQ(pool_.n_hot(), 3 * kPerBlock - 3);
}

// Against what a window means: a block is wanted while a query at the eye or later sees a position of it.
TEST_F(HotSetWindowTest, a_block_is_wanted_as_long_as_any_query_to_come_sees_it) {
  for (const std::int32_t window : {1, 2, 7, 8, 9, 16, 17, 100}) {
    const auto hot = make(with_window(window));
    say(*hot, 61);
    for (const std::int32_t eye : {0, 61, 3, 8, 9, 30, 31, 32, 33, 60}) {
      hot->look_from(Position(eye));
      hot->check_invariants();
      for (std::int32_t b = 0; b < hot->n_blocks(); ++b) {
        const Position last = hot->span(BlockIndex(b)).end - 1;
        const bool is_seen = last > Position(eye - window) || !hot->is_full(BlockIndex(b));
        ASSERT_EQ(hot->wanted_heads(BlockIndex(b)), is_seen ? kShape.all_heads() : global_)
            << "block " << b << ", window " << window << ", eye " << eye;
      }
    }
  }
}

TEST_F(HotSetWindowTest, frames_of_a_sliding_layer_are_bounded_by_its_window) {
  const auto hot = make(with_window(kWindow));
  for (std::int32_t i = 0; i < 150; ++i) {
    say(*hot, 1);
    ASSERT_LE(hot->tables().entries(4).size(), 3U) << "12 positions touch 3 blocks at most";
    ASSERT_EQ(std::ssize(hot->tables().entries(1)), hot->n_blocks());
  }
  EXPECT_EQ(names(*hot), plain_names(150));
}

TEST_F(HotSetWindowTest, an_ancestor_behind_a_window_counts_as_there) {
  const auto hot = make(with_window(kWindow));
  say_one_by_one(*hot, 50);
  EXPECT_EQ(hot->hot_heads(BlockIndex(0)), global_);
  EXPECT_EQ(names(*hot), plain_names(50));
  const auto at_once = make(with_window(kWindow));
  say(*at_once, 50);
  EXPECT_EQ(names(*at_once), plain_names(50));
}

TEST_F(HotSetWindowTest, an_ancestor_that_misses_what_queries_see_is_named_whatever_the_layer) {
  for (const std::size_t head : {0U, 3U}) {
    const auto hot = make(with_window(kWindow));
    say(*hot, 16);
    hot->leave(BlockIndex(1), heads({head}));
    say(*hot, 8);
    EXPECT_NE(hot->exact_name(BlockIndex(2)), plain_names(24)[2]) << head;
  }
}

TEST_F(HotSetWindowTest, a_hole_that_a_window_hides_is_none) {
  const auto hot = make(with_window(kWindow));
  say(*hot, 16);
  hot->leave(BlockIndex(0), heads({4}));
  EXPECT_EQ(hot->missing_window_heads(BlockIndex(0)), heads({4}));
  EXPECT_FALSE(hot->is_hot(BlockIndex(0)));
  const Hash128 with_hole = hot->visible_behind();
  hot->look_from(Position(19));
  EXPECT_TRUE(hot->is_hot(BlockIndex(0)));
  EXPECT_NE(hot->visible_behind(), with_hole);
  say(*hot, 8);
  EXPECT_EQ(names(*hot), plain_names(24));
}

TEST_F(HotSetWindowTest, a_hole_in_a_layer_that_sees_all_is_one_behind_the_window_too) {
  const auto hot = make(with_window(kWindow));
  say(*hot, 32);
  hot->leave(BlockIndex(0), heads({1}));
  EXPECT_EQ(hot->missing_heads(BlockIndex(0)), heads({1}));
  EXPECT_FALSE(hot->is_hot(BlockIndex(0)));
  say(*hot, 8);
  EXPECT_NE(hot->exact_name(BlockIndex(4)), plain_names(40)[4]);
}

TEST_F(HotSetWindowTest, a_cut_shows_again_what_the_window_hid) {
  const auto hot = make(with_window(kWindow));
  say(*hot, 40);
  EXPECT_EQ(hot->hot_heads(BlockIndex(1)), global_);
  hot->cut(Position(16));
  hot->set_next_anchor(Position(16));
  hot->check_invariants();
  EXPECT_EQ(hot->missing_window_heads(BlockIndex(0)), sliding_);
  EXPECT_EQ(hot->missing_window_heads(BlockIndex(1)), sliding_);
  const Hash128 with_holes = hot->visible_behind();
  ASSERT_TRUE(hot->come(BlockIndex(0), sliding_).ok());
  ASSERT_TRUE(hot->come(BlockIndex(1), sliding_).ok());
  EXPECT_NE(hot->visible_behind(), with_holes);
  say(*hot, 24);
  EXPECT_EQ(names(*hot), plain_names(40));
}

TEST_F(HotSetWindowTest, computing_an_early_block_again_wants_what_its_queries_see) {
  const auto hot = make(with_window(kWindow));
  say(*hot, 48);
  hot->leave(BlockIndex(3));
  hot->look_from(Position(24));
  EXPECT_EQ(hot->missing_window_heads(BlockIndex(1)), sliding_) << "position 15 is 9 before 24, and left at 27";
  EXPECT_EQ(hot->missing_heads(BlockIndex(3)), kShape.all_heads());
  EXPECT_EQ(hot->wanted_heads(BlockIndex(0)), global_);
}

TEST_F(HotSetWindowTest, each_layer_has_the_window_that_it_has) {
  const BlockShape shape = {.n_layers = 4, .n_kv_heads = 1, .block_size = 8, .windows = {16, 0, 8, 16}};
  const auto hot = make(shape);
  ASSERT_TRUE(hot->open(16).ok());
  hot->append(tokens(Position(0), 16));
  EXPECT_EQ(hot->find_passing(Position(15)), indices({0}));
  EXPECT_EQ(hot->find_passing(Position(23)), indices({0, 1})) << "each once";
  hot->leave(BlockIndex(0), heads({2}, shape));
  EXPECT_TRUE(hot->find_passing(Position(15)).empty()) << "it has left already";
  say(*hot, 8);
  EXPECT_EQ(hot->hot_heads(BlockIndex(0)), heads({1}, shape));
  EXPECT_EQ(hot->hot_heads(BlockIndex(1)), heads({0, 1, 3}, shape));
}

TEST_F(HotSetWindowTest, where_all_layers_slide_old_blocks_are_hot_nowhere_and_miss_nothing) {
  const BlockShape shape = {.n_layers = 2, .n_kv_heads = 1, .block_size = 8, .windows = {9, 9}};
  const auto hot = make(shape);
  say_one_by_one(*hot, 40);
  EXPECT_EQ(hot->n_hot_frames(BlockIndex(0)), 0);
  EXPECT_TRUE(hot->is_hot(BlockIndex(0)));
  EXPECT_EQ(std::vector(hot->hot_blocks().begin(), hot->hot_blocks().end()), indices({4}));
  const auto at_once = make(shape);
  say(*at_once, 40);
  EXPECT_EQ(names(*hot), names(*at_once));
}

TEST_F(HotSetWindowTest, what_passes_is_no_longer_listed_there) {
  const auto hot = make(with_window(kWindow));
  say(*hot, 16);
  publish(*hot, BlockIndex(0));
  ASSERT_EQ(shared_.find(hot->exact_name(BlockIndex(0)))->n_frames, kPerBlock);
  say(*hot, 8);
  EXPECT_EQ(shared_.find(hot->exact_name(BlockIndex(0)))->n_frames, 3);
}

TEST_F(HotSetWindowDeathTest, nothing_comes_behind_its_window) {
  const auto hot = make(with_window(kWindow));
  say(*hot, 40);
  EXPECT_DEATH((void)hot->come(BlockIndex(0), heads({4})), "comes in head 4, where it is, or behind its window");
}

}  // namespace
}  // namespace ebb
