#include "policy/rare_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/select.h"

namespace ebb {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST(RareWords, splits_identifiers_and_folds_case) {
  EXPECT_THAT(split_words("The max_items, of CONFIG.py=7"),
              ElementsAre("the", "max_items", "max", "items", "of", "config", "py", "7"));
  EXPECT_THAT(split_words("__ _ --"), IsEmpty());
  EXPECT_THAT(split_words("maxItems HTTPServer2 Ada ADA"),
              ElementsAre("maxitems", "max", "items", "httpserver2", "http", "server2", "ada", "ada"));
}

TEST(RareWords, scripts_without_spaces_give_every_two_neighbouring_characters) {
  EXPECT_THAT(split_words("\u7eff\u8239\u65e7"), ElementsAre("\u7eff\u8239", "\u8239\u65e7"));
  // A name with one particle and with another.
  EXPECT_THAT(split_words("\ubc15\uc601\ud76c\ub294 A"),
              ElementsAre("\ubc15\uc601", "\uc601\ud76c", "\ud76c\ub294", "a"));
  EXPECT_THAT(split_words("\ubc15\uc601\ud76c\uac00"), ElementsAre("\ubc15\uc601", "\uc601\ud76c", "\ud76c\uac00"));
  EXPECT_THAT(split_words("\u7eff boat\u8239\u65e7x"), ElementsAre("\u7eff", "boat", "\u8239\u65e7", "x"));
  EXPECT_THAT(split_words("\u0e40\u0e23\u0e37"), ElementsAre("\u0e40\u0e23", "\u0e23\u0e37"));
  EXPECT_THAT(split_words("\uc548\ub155 \u00dcber"), ElementsAre("\uc548\ub155", "\u00dcber")) << "with spaces";
  EXPECT_THAT(split_words("\xe7\xbb a\xff"), ElementsAre("\xe7\xbb", "a\xff")) << "what is no text";
}

TEST(RareWords, a_question_in_a_script_without_spaces_finds_what_was_said) {
  WordIndex index;
  index.add(BlockIndex(0), "\u7eff\u8272\u7684\u8239\u5728\u6e7e\u91cc");
  index.add(BlockIndex(1), "\u7ea2\u8272\u7684\u623f\u5b50\u5728\u5c71\u4e0a");
  index.add(BlockIndex(2), "\u5929\u6c14\u5f88\u597d");
  const auto ranked = index.rank("\u623f\u5b50\u5728\u54ea\u91cc");
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked.front().block, BlockIndex(1));
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

TEST(RareWords, a_word_of_a_quarter_of_the_blocks_tells_and_is_not_rare) {
  WordIndex index;
  for (std::int32_t b = 0; b < 40; ++b) {
    index.add(BlockIndex(b), std::string(b == 0 ? "once " : "") + (b < 10 ? "quarter " : "") + (b < 11 ? "more " : ""));
  }
  EXPECT_TRUE(index.is_rare("once"));
  EXPECT_TRUE(index.tells("once"));
  EXPECT_FALSE(index.is_rare("quarter"));
  EXPECT_TRUE(index.tells("quarter"));
  EXPECT_FALSE(index.tells("more"));
  EXPECT_FALSE(index.tells("never"));
}

TEST(RareWords, a_removed_block_leaves_no_trace) {
  WordIndex index;
  index.add(BlockIndex(0), "red gate");
  index.add(BlockIndex(1), "blue gate");
  index.remove(BlockIndex(1));
  index.remove(BlockIndex(7));
  EXPECT_THAT(index.rank("blue"), IsEmpty());
  EXPECT_EQ(index.rank("gate").size(), 1U);
  index.add(BlockIndex(1), "green");
  EXPECT_EQ(index.rank("green").size(), 1U);
}

TEST(RareWords, blocks_removed_in_any_order_leave_the_others_as_they_were) {
  WordIndex index;
  for (std::int32_t b = 0; b < 9; ++b) index.add(BlockIndex(b), b % 2 == 0 ? "even common" : "odd common words");
  for (const std::int32_t b : {0, 8, 3, 4}) index.remove(BlockIndex(b));
  WordIndex fresh;
  for (const std::int32_t b : {1, 2, 5, 6, 7})
    fresh.add(BlockIndex(b), b % 2 == 0 ? "even common" : "odd common words");
  for (const std::string_view question : {"even", "odd words", "common even"}) {
    const std::vector<Scored> left = index.rank(question);
    const std::vector<Scored> wanted = fresh.rank(question);
    ASSERT_EQ(left.size(), wanted.size()) << question;
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].block, wanted[i].block) << question;
      EXPECT_EQ(left[i].score, wanted[i].score) << question;
    }
  }
}

TEST(RareWords, an_edit_near_the_front_costs_the_words_of_its_blocks_and_not_those_of_all) {
  constexpr std::int32_t kBlocks = 2000;
  constexpr std::string_view kText = "the same few words stand in every block of this text";
  constexpr std::int64_t kWords = 11;
  WordIndex index;
  for (std::int32_t b = 0; b < kBlocks; ++b) index.add(BlockIndex(b), kText);
  EXPECT_EQ(index.n_touched(), kBlocks * kWords);
  // From the front on: where the postings of a word are longest behind what leaves.
  for (std::int32_t b = 1; b < kBlocks; ++b) index.remove(BlockIndex(b));
  for (std::int32_t b = 1; b < kBlocks; ++b) index.add(BlockIndex(b), kText);
  EXPECT_LE(index.n_touched(), 4 * kBlocks * kWords);
}

TEST(RareWords, an_empty_index_ranks_nothing) { EXPECT_THAT(WordIndex().rank("anything"), IsEmpty()); }

// A block to which each word of the question, by its place, gave so much.
Scored scored(std::int32_t block, const std::vector<double>& words) {
  Scored scored{.block = BlockIndex(block)};
  for (std::size_t w = 0; w < words.size(); ++w) {
    if (words[w] == 0.0) continue;
    scored.score += words[w];
    scored.words.push_back({.word = static_cast<std::int32_t>(w), .score = words[w]});
  }
  return scored;
}

// What was chosen, without what it is worth.
struct Blocks {
  std::vector<BlockIndex> recall;
  std::vector<BlockIndex> keep;
};

Blocks blocks_selected(const std::vector<Scored>& ranked, const std::vector<double>& missing, std::int32_t max_blocks,
                       std::int32_t reach = 1) {
  const Selection selection = select_blocks(ranked, missing, max_blocks, reach);
  Blocks blocks;
  for (const BlockWorth& choice : selection.recall) blocks.recall.push_back(choice.block);
  for (const BlockWorth& choice : selection.keep) blocks.keep.push_back(choice.block);
  return blocks;
}

Blocks blocks_for_cues(std::span<const CueRanking> rankings, const std::vector<double>& missing,
                       std::int32_t max_blocks) {
  Blocks blocks;
  for (const auto& [block, is_hot] : select_for_cues(rankings, missing, max_blocks)) {
    (is_hot ? blocks.keep : blocks.recall).push_back(block);
  }
  return blocks;
}

TEST(Select, takes_cold_blocks_that_are_worth_it_and_their_neighbours) {
  const std::vector<Scored> ranked = {scored(5, {10.0}), scored(9, {0.0, 8.0}), scored(2, {0.0, 0.0, 3.0})};
  const Blocks selection = blocks_selected(ranked, std::vector<double>(12, 1.0), 4);
  EXPECT_THAT(selection.recall, ElementsAre(BlockIndex(5), BlockIndex(9), BlockIndex(6), BlockIndex(4)));
  EXPECT_THAT(selection.keep, IsEmpty());
}

TEST(Select, of_small_blocks_those_that_follow_within_reach_are_beside_what_is_found_the_nearer_first) {
  const std::vector<Scored> ranked = {scored(5, {10.0}), scored(20, {4.0})};
  const std::vector<double> missing(24, 1.0);
  EXPECT_THAT(blocks_selected(ranked, missing, 8, 3).recall,
              ElementsAre(BlockIndex(5), BlockIndex(6), BlockIndex(4), BlockIndex(7), BlockIndex(8)));
  EXPECT_THAT(blocks_selected(ranked, missing, 8, 1).recall, ElementsAre(BlockIndex(5), BlockIndex(6), BlockIndex(4)));
}

TEST(Select, where_a_neighbour_goes_on_with_it_the_next_one_is_beside_it_too_and_no_further) {
  const std::vector<double> missing(24, 1.0);
  const std::vector<Scored> goes_on = {scored(5, {10.0, 0.0, 0.0}), scored(6, {0.0, 3.0, 0.0}),
                                       scored(7, {0.0, 0.0, 3.0})};
  EXPECT_THAT(blocks_selected(goes_on, missing, 8, 1).recall,
              ElementsAre(BlockIndex(5), BlockIndex(6), BlockIndex(7), BlockIndex(4)));
  const std::vector<Scored> shares_little = {scored(5, {10.0, 0.0}), scored(6, {0.0, 1.0})};
  EXPECT_THAT(blocks_selected(shares_little, missing, 8, 1).recall,
              ElementsAre(BlockIndex(5), BlockIndex(6), BlockIndex(4)));
}

TEST(SelectForCues, beside_what_is_hot_the_other_half_comes_and_beside_what_comes_the_other_half_stays) {
  std::vector<double> missing(24, 1.0);
  missing[9] = 0.0;
  const std::vector<CueRanking> of_hot = {{.ranked = {scored(9, {10.0}), scored(3, {0.0, 2.0})}}};
  EXPECT_THAT(blocks_for_cues(of_hot, missing, 8).recall, ElementsAre(BlockIndex(10), BlockIndex(8)))
      << "what is little beside what is hot does not come";
  EXPECT_THAT(blocks_for_cues(of_hot, missing, 8).keep, ElementsAre(BlockIndex(9)));
  const std::vector<CueRanking> of_cold = {{.ranked = {scored(10, {10.0})}}};
  EXPECT_THAT(blocks_for_cues(of_cold, missing, 8).keep, ElementsAre(BlockIndex(9)));
}

TEST(Select, what_answers_comes_before_a_third_block_that_only_repeats_the_question) {
  // Two blocks of earlier questions of the same form, and the one with the rare word.
  const std::vector<Scored> ranked = {scored(9, {6.0, 6.0, 0.0}), scored(7, {6.0, 6.0, 0.0}),
                                      scored(2, {5.0, 0.0, 6.0})};
  const Blocks selection = blocks_selected(ranked, std::vector<double>(12, 1.0), 2);
  EXPECT_THAT(selection.recall, ElementsAre(BlockIndex(9), BlockIndex(2)));
}

TEST(Select, what_is_said_in_two_places_comes_back_from_both) {
  const std::vector<Scored> ranked = {scored(9, {6.0, 4.0}), scored(3, {6.0, 4.0}), scored(1, {0.0, 4.0})};
  const Blocks selection = blocks_selected(ranked, std::vector<double>(12, 1.0), 2);
  EXPECT_THAT(selection.recall, ElementsAre(BlockIndex(9), BlockIndex(3)));
}

TEST(Select, what_is_told_in_many_places_comes_from_all_of_them_before_what_stands_beside) {
  const std::vector<Scored> ranked = {scored(30, {9.0}), scored(22, {8.0}), scored(14, {8.0}), scored(7, {8.0}),
                                      scored(3, {4.0})};
  const Blocks selection = blocks_selected(ranked, std::vector<double>(40, 1.0), 6);
  EXPECT_THAT(selection.recall, ElementsAre(BlockIndex(30), BlockIndex(22), BlockIndex(14), BlockIndex(7),
                                            BlockIndex(31), BlockIndex(29)));
}

TEST(Select, what_a_border_cuts_comes_whole_though_something_else_is_worth_twice_as_much) {
  std::vector<Scored> ranked = {scored(9, {16.0, 0.0}), scored(5, {0.0, 9.0})};
  const std::vector<double> missing(12, 1.0);
  EXPECT_THAT(blocks_selected(ranked, missing, 8).recall,
              ElementsAre(BlockIndex(9), BlockIndex(5), BlockIndex(10), BlockIndex(8)));
  ranked[1].words[0].at_end = true;
  EXPECT_THAT(blocks_selected(ranked, missing, 8).recall,
              ElementsAre(BlockIndex(9), BlockIndex(5), BlockIndex(6), BlockIndex(10), BlockIndex(8)));
}

TEST(Select, what_a_border_cuts_of_a_block_that_is_worth_little_stays_away) {
  std::vector<Scored> ranked = {scored(9, {16.0, 0.0}), scored(5, {0.0, 2.0})};
  ranked[1].words[0].at_end = true;
  std::vector<double> missing(12, 1.0);
  EXPECT_THAT(blocks_selected(ranked, missing, 8).recall, ElementsAre(BlockIndex(9), BlockIndex(10), BlockIndex(8)));
  missing[5] = 0.0;
  EXPECT_THAT(blocks_selected(ranked, missing, 8).recall, ElementsAre(BlockIndex(9), BlockIndex(10), BlockIndex(8)))
      << "though it is hot";
}

// Where room is little, what stands beside one fact would come before the next one.
TEST(Select, a_neighbour_to_which_no_sentence_goes_on_comes_behind_all_that_has_words) {
  std::vector<Scored> ranked = {scored(9, {12.0, 0.0}), scored(5, {8.0, 0.0})};
  ranked[0].words[0].at_end = true;
  EXPECT_THAT(blocks_selected(ranked, std::vector<double>(12, 1.0), 8).recall,
              ElementsAre(BlockIndex(9), BlockIndex(5), BlockIndex(10), BlockIndex(8)));
  ranked[0].words[0].is_cut_at_end = true;
  EXPECT_THAT(blocks_selected(ranked, std::vector<double>(12, 1.0), 8).recall,
              ElementsAre(BlockIndex(9), BlockIndex(10), BlockIndex(5), BlockIndex(8)));
}

TEST(RareWords, what_is_asked_in_two_words_is_found_where_it_is_written_in_one) {
  WordIndex index;
  index.add(BlockIndex(0), "The code of the goldenmill is 3902.");
  index.add(BlockIndex(1), "The code of the greenwell is 1204.");
  index.add(BlockIndex(2), "The mill is old.");
  const std::vector<Scored> ranked = index.rank("What is the code of the golden mill?");
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked.front().block, BlockIndex(0));
  EXPECT_GT(ranked.front().score, 2 * index.rank("What is the code of the golden hut?").front().score);
}

TEST(RareWords, a_sentence_that_a_border_cuts_is_told_from_one_that_ends_before_it) {
  WordIndex index;
  index.add(BlockIndex(0), "The okapi sleeps. The zebra eats");
  index.add(BlockIndex(1), "grass. The quagga drinks.");
  index.add(BlockIndex(2), "The gnu runs fast and");
  const auto cuts = [&](const char* word) {
    const std::vector<Scored> ranked = index.rank(word);
    const WordScore& first = ranked.at(0).words.at(0);
    return std::pair(first.is_cut_at_begin, first.is_cut_at_end);
  };
  EXPECT_EQ(cuts("okapi"), std::pair(true, false)) << "nobody knows what stands before the first block";
  EXPECT_EQ(cuts("zebra"), std::pair(false, true));
  EXPECT_EQ(cuts("grass"), std::pair(true, false));
  EXPECT_EQ(cuts("quagga"), std::pair(false, false));
  EXPECT_EQ(cuts("gnu"), std::pair(false, true))
      << "the block before it ends whole, and it has no end, however far that is";
}

TEST(RareWords, what_stands_near_a_border_is_told) {
  std::string fill;
  for (int i = 0; i < 30; ++i) fill += " filler";
  WordIndex index;
  index.add(BlockIndex(0), "quagga" + fill);
  index.add(BlockIndex(1), "zebra" + fill + " okapi");
  const std::vector<Scored> quagga = index.rank("quagga");
  ASSERT_EQ(quagga.size(), 1U);
  ASSERT_EQ(quagga[0].words.size(), 1U);
  EXPECT_TRUE(quagga[0].words[0].at_begin);
  EXPECT_FALSE(quagga[0].words[0].at_end);
  const std::vector<Scored> both = index.rank("okapi and zebra");
  ASSERT_EQ(both.size(), 1U);
  ASSERT_EQ(both[0].words.size(), 2U);
  EXPECT_TRUE(both[0].words[0].at_end) << "okapi";
  EXPECT_TRUE(both[0].words[1].at_begin) << "zebra";
}

TEST(Select, a_sentence_that_a_border_cuts_comes_back_whole_before_others) {
  std::vector<Scored> ranked = {scored(5, {9.0, 1.0}), scored(9, {8.0})};
  ranked[0].words[0].at_end = true;
  ranked[0].words[0].is_cut_at_end = true;
  const Blocks selection = blocks_selected(ranked, std::vector<double>(12, 1.0), 2);
  EXPECT_THAT(selection.recall, ElementsAre(BlockIndex(5), BlockIndex(6)));
}

TEST(Select, hot_blocks_take_no_cold_ones_place) {
  std::vector<double> missing(12, 1.0);
  missing[4] = missing[5] = missing[6] = 0.0;
  const std::vector<Scored> ranked = {scored(5, {30.0}), scored(2, {6.0})};
  const Blocks selection = blocks_selected(ranked, missing, 1);
  EXPECT_THAT(selection.recall, ElementsAre(BlockIndex(2)));
  EXPECT_THAT(selection.keep, ElementsAre(BlockIndex(5)));
  EXPECT_THAT(blocks_selected({}, missing, 3).recall, IsEmpty());
}

TEST(Select, what_is_missing_from_few_heads_is_worth_no_less_and_takes_little_room) {
  std::vector<double> missing(12, 1.0);
  missing[9] = 0.25;
  const std::vector<Scored> ranked = {scored(9, {20.0}), scored(2, {0.0, 12.0}), scored(7, {9.0})};
  EXPECT_THAT(blocks_selected(ranked, missing, 1).recall, ElementsAre(BlockIndex(9), BlockIndex(2)));
  // A quarter of a block leaves room for one more.
  EXPECT_THAT(blocks_selected(ranked, missing, 3).recall,
              ElementsAre(BlockIndex(9), BlockIndex(2), BlockIndex(10), BlockIndex(8)));
  EXPECT_THAT(blocks_selected(ranked, missing, 2).recall, ElementsAre(BlockIndex(9), BlockIndex(2), BlockIndex(10)));
  EXPECT_THAT(blocks_selected(ranked, missing, 3).keep, IsEmpty());
}

// A fact may go on across a border: its second block comes before what sentences beside the question find.
TEST(Select, a_light_cues_first_choice_comes_behind_a_heavy_ones_second) {
  const std::vector<double> missing(40, 1.0);
  const std::vector<CueRanking> cues = {{.weight = 1.0, .ranked = {scored(9, {10.0}), scored(20, {0.0, 8.0})}},
                                        {.weight = 1.0, .ranked = {scored(15, {10.0})}},
                                        {.weight = 0.25, .ranked = {scored(30, {40.0})}}};
  EXPECT_THAT(blocks_for_cues(cues, missing, 3).recall, ElementsAre(BlockIndex(9), BlockIndex(15), BlockIndex(20)));
  EXPECT_THAT(blocks_for_cues(cues, missing, 8).recall, Contains(BlockIndex(30)));
}

// What a block says is worth no less for lying in most heads already, and little is enough to lack an answer.
TEST(Select, what_answers_comes_back_though_it_is_missing_from_one_head_in_ten) {
  std::vector<double> missing(40, 1.0);
  std::vector<Scored> ranked = {scored(9, {20.0})};
  missing[9] = 0.1;
  for (const std::int32_t b : {2, 15, 20, 25, 30, 35}) ranked.push_back(scored(b, {0.0, 7.0}));
  EXPECT_THAT(blocks_selected(ranked, missing, 8).recall, Contains(BlockIndex(9)));
  // Not more of them than four times what may come whole.
  std::vector<double> few(400, 0.01);
  ranked.clear();
  for (std::size_t i = 0; i < 80; ++i) {
    // Each says something of its own.
    std::vector<double> words(i + 1, 0.0);
    words.back() = 10.0;
    ranked.push_back(scored(static_cast<std::int32_t>(5 * i), words));
  }
  EXPECT_EQ(blocks_selected(ranked, few, 3).recall.size(), 12U);
}

CueRanking cue(double weight, std::vector<Scored> ranked) { return {.weight = weight, .ranked = std::move(ranked)}; }

TEST(SelectForCues, each_cue_has_its_turn_before_any_has_a_second) {
  const std::vector<double> missing(40, 1.0);
  std::vector<Scored> much;
  for (const std::int32_t b : {2, 6, 10, 14}) much.push_back(scored(b, {10.0}));
  const std::vector<CueRanking> rankings = {cue(1.0, much), cue(1.0, {scored(20, {9.0})}),
                                            cue(1.0, {scored(30, {4.0})})};
  const Blocks selection = blocks_for_cues(rankings, missing, 3);
  EXPECT_THAT(selection.recall, UnorderedElementsAre(BlockIndex(14), BlockIndex(20), BlockIndex(30)));
  EXPECT_THAT(blocks_for_cues(rankings, missing, 0).recall, IsEmpty());
}

TEST(SelectForCues, a_cue_that_finds_little_beside_the_others_finds_nothing) {
  const std::vector<double> missing(40, 1.0);
  const std::vector<CueRanking> rankings = {cue(1.0, {scored(20, {9.0})}), cue(0.25, {scored(30, {8.0})})};
  EXPECT_THAT(blocks_for_cues(rankings, missing, 8).recall, Not(Contains(BlockIndex(30))));
  EXPECT_THAT(blocks_for_cues({&rankings[1], 1}, missing, 8).recall, Contains(BlockIndex(30))) << "alone it is heard";
}

TEST(SelectForCues, what_two_cues_find_comes_once_and_what_is_hot_is_kept) {
  std::vector<double> missing(40, 1.0);
  missing[5] = 0.0;
  const std::vector<CueRanking> rankings = {cue(1.0, {scored(20, {9.0}), scored(5, {9.0})}),
                                            cue(1.0, {scored(20, {9.0})})};
  const Blocks selection = blocks_for_cues(rankings, missing, 8);
  EXPECT_EQ(std::ranges::count(selection.recall, BlockIndex(20)), 1);
  EXPECT_THAT(selection.keep, Contains(BlockIndex(5)));
}

// Else the answer leaves for what is only like it.
TEST(SelectForCues, what_is_hot_and_worth_as_much_has_room_with_what_comes_one_for_one) {
  std::vector<double> missing(40, 1.0);
  missing[5] = missing[15] = missing[25] = 0.0;
  const std::vector<CueRanking> rankings = {
      cue(1.0, {scored(5, {9.0, 0.0}), scored(15, {9.0, 0.0}), scored(20, {0.0, 8.0}), scored(30, {0.0, 8.0}),
                scored(25, {0.0, 0.0, 5.0})})};
  std::vector<BlockIndex> order;
  for (const Chosen& chosen : select_for_cues(rankings, missing, 8)) order.push_back(chosen.block);
  // Of equals the later one first; then each one's neighbours, cold ones first.
  EXPECT_THAT(std::span(order).first(4), ElementsAre(BlockIndex(30), BlockIndex(15), BlockIndex(20), BlockIndex(5)));
  EXPECT_GT(std::ranges::find(order, BlockIndex(25)) - order.begin(), 4) << "it is worth less than what comes";
  EXPECT_THAT(order, Contains(BlockIndex(25))) << "and stays, if there is room";
}

// Where ten blocks have room, what stands beside what one cue found would come before what another's answers.
TEST(SelectForCues,
     what_no_sentence_goes_on_to_comes_behind_what_every_cue_found_and_behind_what_is_hot_and_worth_more) {
  std::vector<double> missing(40, 1.0);
  missing[15] = 0.0;
  Scored first = scored(30, {9.0});
  first.words[0].is_cut_at_end = true;
  const std::vector<CueRanking> rankings = {cue(1.0, {first, scored(15, {0.0, 7.0})}),
                                            cue(0.25, {scored(20, {0.0, 0.0, 9.0})})};
  std::vector<BlockIndex> order;
  for (const Chosen& chosen : select_for_cues(rankings, missing, 8)) order.push_back(chosen.block);
  EXPECT_THAT(order, ElementsAre(BlockIndex(30), BlockIndex(31), BlockIndex(15), BlockIndex(20), BlockIndex(29)));
}

TEST(Focus, follows_the_messages_and_fades) {
  WordIndex index;
  index.add(BlockIndex(0), "the quagga eats grass");
  index.add(BlockIndex(1), "the server listens on a port");
  index.add(BlockIndex(2), "");
  Focus focus;
  EXPECT_FALSE(focus.similarity(index, BlockIndex(0)).has_value());
  focus.hear("tell me of the quagga");
  EXPECT_GT(*focus.similarity(index, BlockIndex(0)), *focus.similarity(index, BlockIndex(1)));
  EXPECT_FALSE(focus.similarity(index, BlockIndex(2)).has_value());
  EXPECT_FALSE(focus.similarity(index, BlockIndex(9)).has_value());
  for (int i = 0; i < 3; ++i) focus.hear("which port has the server");
  EXPECT_GT(*focus.similarity(index, BlockIndex(1)), *focus.similarity(index, BlockIndex(0)));
}

}  // namespace
}  // namespace ebb
