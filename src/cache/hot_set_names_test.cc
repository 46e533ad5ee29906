// What blocks are called, by what they hold and saw (law 4).
#include <map>

#include "cache/hot_set_test.h"

namespace ebb {
namespace {

class HotSetNamesTest : public HotSetTest {
 protected:
  static std::vector<Hash128> names(const HotSet& hot) {
    std::vector<Hash128> names;
    for (std::int32_t b = 0; b < hot.n_blocks(); ++b) names.push_back(hot.exact_name(BlockIndex(b)));
    return names;
  }
  // The names of blocks whose bytes nobody looked at.
  static std::vector<HotSet::NamedBlock> names_behind(const HotSet& hot, std::span<const Token> tokens, bool whole) {
    return hot.names_behind(tokens, whole, [](const HotSet::NamedBlock&, std::span<const Token>) { return Hash128(); });
  }
  // The names of a set that is all hot and was said in one piece.
  std::vector<Hash128> plain_names(std::int32_t n_tokens) {
    const auto hot = make();
    say(*hot, n_tokens);
    return names(*hot);
  }
};

TEST_F(HotSetNamesTest, names_do_not_depend_on_how_tokens_were_cut_into_steps) {
  const std::vector<Hash128> plain = plain_names(45);
  for (const std::int32_t n_step : {1, 3, 8, 11}) {
    const auto hot = make();
    while (hot->end() < Position(45)) say(*hot, std::min(n_step, Position(45) - hot->end()));
    EXPECT_EQ(names(*hot), plain) << n_step;
  }
}

TEST_F(HotSetNamesTest, names_do_not_depend_on_what_left_and_came_back_between_steps) {
  const auto hot = make();
  say(*hot, 19);
  hot->leave(BlockIndex(0));
  hot->leave(BlockIndex(1), heads({2, 3}));
  ASSERT_TRUE(hot->come(BlockIndex(1), heads({2, 3})).ok());
  ASSERT_TRUE(hot->come(BlockIndex(0), kShape.all_heads()).ok());
  say(*hot, 26);
  EXPECT_EQ(names(*hot), plain_names(45));
}

TEST_F(HotSetNamesTest, names_do_not_depend_on_what_was_forgotten) {
  const auto hot = make();
  say(*hot, 30);
  say(*hot, 30, 1);
  hot->cut(Position(20));
  hot->set_next_anchor(Position(20));
  say(*hot, 25);
  EXPECT_EQ(names(*hot), plain_names(45));
}

TEST_F(HotSetNamesTest, a_name_is_of_its_tokens_its_place_and_its_identity) {
  const std::vector<Hash128> plain = plain_names(16);
  const auto other_text = make();
  say(*other_text, 8, 1);
  EXPECT_NE(other_text->exact_name(BlockIndex(0)), plain[0]);
  say(*other_text, 8);
  EXPECT_NE(other_text->exact_name(BlockIndex(1)), plain[1]) << "it saw something else";
  const Lineage nothing_seen = [] {
    Lineage lineage;
    lineage.add({}, 8);
    return lineage;
  }();
  const auto hot = make();
  const std::vector<Token> said = tokens(Position(0), 8);
  EXPECT_NE(hot->exact_name_of(Position(0), said, nothing_seen, {}),
            hot->exact_name_of(Position(8), said, nothing_seen, {}));
  const HotSet of_another({.pool = pool_}, kShape, {.low = 7});
  EXPECT_NE(of_another.exact_name_of(Position(0), said, nothing_seen, {}),
            hot->exact_name_of(Position(0), said, nothing_seen, {}));
  EXPECT_NE(of_another.place_name(Position(0), {}), hot->place_name(Position(0), {}));
}

// The heads that one ancestor misses make the name: sets of them are told apart, and so is which block misses them.
TEST_F(HotSetNamesTest, the_name_of_a_block_whose_ancestor_missed_a_head_is_of_that_head) {
  std::map<Hash128, std::string> seen = {{plain_names(24)[2], "all hot"}};
  for (const std::int32_t block : {0, 1}) {
    for (std::size_t head = 0; head <= kShape.n_heads(); ++head) {
      const auto hot = make();
      say(*hot, 16);
      const HeadSet missing = head == kShape.n_heads() ? kShape.all_heads() : heads({head});
      hot->leave(BlockIndex(block), missing);
      say(*hot, 8);
      const std::string what = fmt::format("block {} without head {}", block, head);
      const auto [at, is_new] = seen.emplace(hot->exact_name(BlockIndex(2)), what);
      EXPECT_TRUE(is_new) << what << " and " << at->second << " have one name";
    }
  }
}

TEST_F(HotSetNamesTest, a_hole_is_in_the_names_of_those_behind_for_good_and_of_nobody_else) {
  const auto hot = make();
  say(*hot, 16);
  hot->leave(BlockIndex(1), heads({3}));
  say(*hot, 8);
  ASSERT_TRUE(hot->come(BlockIndex(1), heads({3})).ok());
  say(*hot, 8);
  const std::vector<Hash128> plain = plain_names(32);
  EXPECT_EQ(hot->exact_name(BlockIndex(1)), plain[1]);
  EXPECT_NE(hot->exact_name(BlockIndex(2)), plain[2]);
  EXPECT_NE(hot->exact_name(BlockIndex(3)), plain[3]) << "what it saw had seen a hole";
}

TEST_F(HotSetNamesTest, rows_that_saw_a_hole_are_told_from_those_that_did_not) {
  const auto hot = make();
  say(*hot, 11);
  hot->leave(BlockIndex(0), heads({0}));
  say(*hot, 2);
  ASSERT_TRUE(hot->come(BlockIndex(0), heads({0})).ok());
  say(*hot, 3);
  const std::vector<Lineage::Run> runs = hot->info(BlockIndex(1)).lineage.runs();
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].visible, runs[2].visible);
  EXPECT_NE(runs[0].visible, runs[1].visible);
  EXPECT_EQ(runs[1].n_tokens, 2);
}

TEST_F(HotSetNamesTest, computing_a_block_again_with_all_there_gives_it_its_name_back) {
  const auto hot = make();
  say(*hot, 16);
  hot->leave(BlockIndex(0));
  say(*hot, 8);
  const std::vector<Hash128> plain = plain_names(24);
  EXPECT_NE(hot->exact_name(BlockIndex(2)), plain[2]);
  ASSERT_TRUE(hot->come(BlockIndex(0), kShape.all_heads()).ok());
  Lineage lineage;
  lineage.add(hot->visible_before(BlockIndex(2)), 8);
  hot->set_lineage(BlockIndex(2), lineage);
  EXPECT_EQ(names(*hot), plain);
  hot->check_invariants();
}

TEST_F(HotSetNamesTest, anchors_are_in_the_names_of_those_behind_but_not_in_a_blocks_own) {
  const std::vector<Hash128> plain = plain_names(24);
  const auto hot = make();
  say(*hot, 16);
  hot->set_anchor(BlockIndex(0), Position(100));
  hot->set_turned(BlockIndex(0), true);
  EXPECT_TRUE(hot->is_turned(BlockIndex(0)));
  EXPECT_EQ(hot->exact_name(BlockIndex(0)), plain[0]) << "its bytes can be had again";
  say(*hot, 8);
  EXPECT_NE(hot->exact_name(BlockIndex(2)), plain[2]);
  // Far from its position, and everything else with it, is another place than its own.
  const auto later = make();
  later->set_next_anchor(Position(32));
  say(*later, 16);
  EXPECT_EQ(later->anchor(BlockIndex(1)), Position(40));
  EXPECT_NE(later->exact_name(BlockIndex(0)), plain[0]);
  EXPECT_NE(later->exact_name(BlockIndex(1)), plain[1]);
}

TEST_F(HotSetNamesTest, rows_computed_again_are_in_the_names_of_those_behind_until_the_block_is_hot_nowhere) {
  const std::vector<Hash128> plain = plain_names(24);
  const auto name_behind = [&](const Hash128& rows, const HeadSet& leaving) {
    const auto hot = make();
    say(*hot, 16);
    hot->set_turned(BlockIndex(0), rows != Hash128());
    hot->set_renewed(BlockIndex(0), rows);
    EXPECT_EQ(hot->is_renewed(BlockIndex(0)), rows != Hash128());
    EXPECT_EQ(hot->exact_name(BlockIndex(0)), plain[0]) << "what is saved is what it was";
    hot->leave(BlockIndex(0), leaving);
    EXPECT_TRUE(leaving.empty() || hot->come(BlockIndex(0), leaving).ok());
    say(*hot, 8);
    EXPECT_EQ(hot->info(BlockIndex(2)).is_exact, !hot->is_renewed(BlockIndex(0)));
    hot->check_invariants();
    return hot->exact_name(BlockIndex(2));
  };
  const HeadSet none(kShape.n_heads());
  EXPECT_EQ(name_behind({}, none), plain[2]);
  EXPECT_NE(name_behind({.low = 1}, none), plain[2]);
  EXPECT_NE(name_behind({.low = 1}, none), name_behind({.low = 2}, none));
  EXPECT_EQ(name_behind({.low = 1}, kShape.all_heads()), plain[2]);
  // In one head it is as it was saved, and in the others it is not.
  EXPECT_NE(name_behind({.low = 1}, heads({0})), name_behind({.low = 1}, none));
  EXPECT_NE(name_behind({.low = 1}, heads({0})), name_behind({.low = 1}, heads({1})));
}

TEST_F(HotSetNamesTest, other_bytes_than_a_name_means_have_a_name_of_their_own_and_those_behind_know) {
  const auto hot = make();
  say(*hot, 8);
  const std::vector<Hash128> plain = plain_names(16);
  hot->set_body(BlockIndex(0), {.low = 1}, {});
  EXPECT_EQ(hot->exact_name(BlockIndex(0)), plain[0]);
  hot->set_body(BlockIndex(0), {.low = 2}, {.low = 5});
  const Hash128 varied = hot->exact_name(BlockIndex(0));
  EXPECT_NE(varied, plain[0]);
  say(*hot, 8);
  EXPECT_NE(hot->exact_name(BlockIndex(1)), plain[1]);
  hot->set_variant(BlockIndex(0), {.low = 6});
  EXPECT_NE(hot->exact_name(BlockIndex(0)), varied);
  hot->set_variant(BlockIndex(0), {});
  EXPECT_EQ(hot->exact_name(BlockIndex(0)), plain[0]);
}

TEST_F(HotSetNamesTest, those_behind_are_named_by_the_bytes_that_they_saw) {
  const auto say_behind = [&](const Hash128& body) {
    auto hot = make();
    say(*hot, 8);
    hot->set_body(BlockIndex(0), body, {});
    say(*hot, 8);
    return hot;
  };
  const auto hot = say_behind({.low = 1});
  EXPECT_EQ(names(*say_behind({.low = 1})), names(*hot));
  EXPECT_EQ(say_behind({.low = 2})->exact_name(BlockIndex(0)), hot->exact_name(BlockIndex(0)));
  EXPECT_NE(say_behind({.low = 2})->exact_name(BlockIndex(1)), hot->exact_name(BlockIndex(1)));
}

TEST_F(HotSetNamesTest, a_name_is_exact_where_nothing_was_moved_when_it_was_computed) {
  const auto hot = make();
  say(*hot, 16);
  EXPECT_TRUE(hot->info(BlockIndex(1)).is_exact);
  hot->leave(BlockIndex(0));
  say(*hot, 8);
  EXPECT_TRUE(hot->info(BlockIndex(2)).is_exact) << "it saw a hole, and says so";
  hot->set_anchor(BlockIndex(1), Position(100));
  say(*hot, 8);
  EXPECT_TRUE(hot->info(BlockIndex(1)).is_exact) << "it can be turned back";
  EXPECT_FALSE(hot->info(BlockIndex(3)).is_exact);
  hot->set_anchor(BlockIndex(1), Position(8));
  hot->set_lineage(BlockIndex(3), Lineage());
  EXPECT_TRUE(hot->info(BlockIndex(3)).is_exact);
  hot->set_variant(BlockIndex(3), {.low = 1});
  EXPECT_FALSE(hot->info(BlockIndex(3)).is_exact);
  ASSERT_TRUE(hot->open(3).ok());
  hot->append(tokens(Position(32), 3), Hash128{.low = 2});
  EXPECT_FALSE(hot->info(BlockIndex(4)).is_exact) << "it was copied";
  hot->cut(Position(0));
  hot->set_next_anchor(Position(3));
  EXPECT_FALSE(hot->info(hot->add_cold(tokens(Position(0), 8), Lineage())).is_exact) << "it begins elsewhere";
}

TEST_F(HotSetNamesTest, rows_that_were_copied_are_named_by_their_source) {
  const auto hot = make();
  ASSERT_TRUE(hot->open(8).ok());
  hot->append(tokens(Position(0), 3));
  hot->append(tokens(Position(3), 5), Hash128{.low = 9});
  EXPECT_EQ(hot->info(BlockIndex(0)).lineage.runs().back(), (Lineage::Run{{.low = 9}, 5}));
  EXPECT_NE(hot->exact_name(BlockIndex(0)), plain_names(8)[0]);
}

TEST_F(HotSetNamesTest, tokens_that_join_a_block_leave_nothing_known_of_its_bytes) {
  const auto hot = make();
  say(*hot, 5);
  hot->set_body(BlockIndex(0), {.low = 3}, {});
  ASSERT_TRUE(hot->open(3).ok());
  hot->publish(BlockIndex(0));
  EXPECT_EQ(shared_.size(), 0U) << "rows to come are not there yet";
  hot->append(tokens(Position(5), 3));
  EXPECT_EQ(hot->info(BlockIndex(0)).body, Hash128());
  hot->publish(BlockIndex(0));
  EXPECT_EQ(shared_.size(), 0U);
}

TEST_F(HotSetNamesTest, blocks_behind_the_last_are_named_as_they_will_be) {
  const std::vector<Hash128> plain = plain_names(40);
  const auto hot = make();
  say(*hot, 16);
  const std::vector<Token> next = tokens(Position(16), 27);
  const std::vector<HotSet::NamedBlock> named = names_behind(*hot, next, false);
  ASSERT_EQ(named.size(), 3U) << "whole blocks only";
  for (std::size_t i = 0; i < named.size(); ++i) EXPECT_EQ(named[i].name, plain[2 + i]);
  EXPECT_EQ(named[0].visible, hot->visible_behind());
  hot->leave(BlockIndex(0), heads({1}));
  const std::vector<HotSet::NamedBlock> behind_hole = names_behind(*hot, next, false);
  const std::vector<HotSet::NamedBlock> whole = names_behind(*hot, next, true);
  say(*hot, 24);
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(whole[i].name, plain[2 + i]);
    EXPECT_EQ(behind_hole[i].name, hot->exact_name(BlockIndex(2 + static_cast<std::int32_t>(i))));
  }
}

TEST_F(HotSetNamesTest, blocks_behind_the_last_are_named_as_far_as_their_bytes_are_known) {
  const auto computed = make();
  for (std::int32_t b = 0; b < 4; ++b) {
    say(*computed, 8);
    computed->set_body(BlockIndex(b), {.low = 50 + static_cast<std::uint64_t>(b)}, {});
  }
  const auto hot = make();
  std::vector<Hash128> asked;
  const std::vector<HotSet::NamedBlock> named =
      hot->names_behind(tokens(Position(0), 32), false,
                        [&](const HotSet::NamedBlock& block, std::span<const Token> own) -> std::optional<Hash128> {
                          EXPECT_TRUE(std::ranges::equal(
                              own, computed->block_tokens(BlockIndex(static_cast<std::int32_t>(asked.size())))));
                          asked.push_back(block.name);
                          if (asked.size() == 3) return std::nullopt;
                          return Hash128{.low = 49 + asked.size()};
                        });
  const std::vector<Hash128> all = names(*computed);
  EXPECT_EQ(asked, std::vector(all.begin(), all.end() - 1));
  ASSERT_EQ(named.size(), 2U);
  EXPECT_EQ(named[1].body, Hash128{.low = 51});
}

TEST_F(HotSetNamesTest, a_session_that_is_built_from_names_has_the_names_of_one_that_computed) {
  const auto hot = make();
  const std::vector<Token> said = tokens(Position(0), 32);
  std::size_t at = 0;
  for (const HotSet::NamedBlock& named : names_behind(*hot, said, true)) {
    Lineage lineage;
    lineage.add(named.visible, 8);
    const BlockIndex block = hot->add_cold(std::span(said).subspan(8 * at++, 8), lineage);
    EXPECT_EQ(hot->exact_name(block), named.name);
  }
  EXPECT_EQ(names(*hot), plain_names(32));
  const HotSet::NamedBlock whole = names_behind(*hot, tokens(Position(32), 8), true)[0];
  EXPECT_EQ(whole.name, plain_names(40)[4]);
  EXPECT_NE(whole.visible, hot->visible_behind()) << "nothing of it is hot";
  for (std::int32_t b = 0; b < 4; ++b) ASSERT_TRUE(hot->come(BlockIndex(b), kShape.all_heads()).ok());
  EXPECT_EQ(whole.visible, hot->visible_behind());
  hot->check_invariants();
}

}  // namespace
}  // namespace ebb
