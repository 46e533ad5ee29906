// What a reply's own words bring back while it is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/turn_test.h"

namespace ebb {
namespace {

class ReplyTurns : public Turns {
 protected:
  // Blocks 0 and 5 hold what is rare, and have left.
  void tell() {
    say("quagga " + std::string(76, 'w') + " zebra " + std::string(300, 'w'));
    ASSERT_FALSE(session_->hot().is_hot(kZebra));
    ASSERT_TRUE(session_->block_text(kZebra)->find("zebra") != std::string::npos);
  }

  Turn ask(const std::string& selectors, std::int32_t max_blocks = 2) {
    Turn turn(*session_, Prompt(*vocabulary_->tokenize("go on ")));
    turn.recall(
        {.cues = find_cues("go on"), .max_blocks = max_blocks, .selectors = SelectorList::parse(selectors).value()});
    compute(turn, 7);
    return turn;
  }

  void write(Turn& turn, std::string_view text) {
    const std::vector<Token> tokens = *vocabulary_->tokenize(text, {.add_bos = false});
    for (const Token token : tokens) {
      turn.push(token);
      compute(turn, 1);
    }
  }

  // Of which none is rare.
  static std::string words(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "w ";
    return text;
  }

  static constexpr BlockIndex kZebra{5};
};

TEST_P(ReplyTurns, a_rare_word_has_its_block_back_before_what_is_said_of_it) {
  tell();
  Turn turn = ask("lexical");
  write(turn, "the zebra");
  EXPECT_FALSE(session_->hot().is_hot(kZebra)) << "the word may go on";
  write(turn, " ");
  EXPECT_TRUE(session_->hot().is_hot(kZebra));
  check_every_hot_byte();
  const TurnStats& stats = turn.settle();
  EXPECT_EQ(stats.writing.n, 1);
  EXPECT_EQ(stats.writing.n_found, 1);
  ASSERT_FALSE(stats.looks.empty());
  EXPECT_EQ(stats.looks.back().moment, Moment::kWhileWriting);
  EXPECT_EQ(stats.looks.back().selector, "lexical");
  ASSERT_FALSE(stats.looks.back().told.empty());
  EXPECT_EQ(stats.looks.back().told.front().considered.block, kZebra);
}

TEST_P(ReplyTurns, what_is_there_is_not_looked_for_and_a_sentence_asks_for_its_own_words) {
  tell();
  Turn turn = ask("lexical");
  write(turn, "the zebra is ");
  const std::size_t n_recalled = turn.stats().acts.recalled.size();
  write(turn, "a zebra and ");
  EXPECT_EQ(turn.stats().acts.recalled.size(), n_recalled);
  write(turn, "gone.\nThe quagga is ");
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  turn.settle();
}

TEST_P(ReplyTurns, what_is_chosen_beyond_the_room_says_that_it_has_none) {
  tell();
  std::vector<std::string> names;
  for (std::int32_t b = 0; b < 12; ++b) names.push_back(session_->block_name(BlockIndex(b)));
  Turn turn(*session_, Prompt(*vocabulary_->tokenize("go on ")));
  turn.recall({.names = names, .max_blocks = 2, .selectors = SelectorList::parse("identity").value()});
  compute(turn, 7);
  const TurnStats& stats = turn.settle();
  ASSERT_FALSE(stats.looks.empty());
  std::ptrdiff_t n_came = 0;
  std::ptrdiff_t n_without_room = 0;
  for (const RecallLook::Told& told : stats.looks.front().told) {
    n_came += told.came ? 1 : 0;
    n_without_room += told.away == Away::kNoRoom ? 1 : 0;
    EXPECT_FALSE(told.came && told.away) << told.name;
  }
  EXPECT_GT(n_came, 0);
  EXPECT_EQ(n_without_room, std::ssize(stats.looks.front().told) - n_came);
}

TEST_P(ReplyTurns, who_does_not_want_it_says_so) {
  for (const std::string_view selectors : {"lexical:writing=0", "identity", "none"}) {
    session_ = make_session(kBudgetBlocks);
    tell();
    Turn turn = ask(std::string(selectors));
    write(turn, "the zebra is ");
    EXPECT_FALSE(session_->hot().is_hot(kZebra)) << selectors;
    EXPECT_EQ(turn.settle().writing.n, 0) << selectors;
  }
  session_ = make_session(kBudgetBlocks);
  tell();
  Turn turn = ask("lexical", 0);
  write(turn, "the zebra is ");
  EXPECT_FALSE(session_->hot().is_hot(kZebra)) << "no block was to come back";
  turn.settle();
}

TEST_P(ReplyTurns, words_that_stand_nowhere_or_in_many_blocks_ask_for_nothing) {
  std::string text = "dodo ";
  for (int i = 0; i < 40; ++i) text += "tarpan " + std::string(9, 'w') + " ";
  say(text);
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  Turn turn = ask("lexical");
  write(turn, "an okapi is no tarpan and never was ");
  EXPECT_EQ(turn.stats().writing.n, 0);
  write(turn, "a dodo ");
  EXPECT_EQ(turn.settle().writing.n, 1);
}

// Of fifty blocks six name it, and the first alone says what it eats.
TEST_P(ReplyTurns, a_subject_that_many_blocks_name_is_looked_for_where_it_was_asked_for_and_not_by_itself) {
  for (const bool is_asked : {true, false}) {
    session_ = make_session(kBudgetBlocks);
    std::string text = "zebra eats ";
    for (int i = 0; i < 5; ++i) text += std::string(80, 'w') + " zebra ";
    say(text + std::string(300, 'w'));
    ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0)));
    ASSERT_FALSE(session_->is_rare("zebra"));
    ASSERT_GT(session_->rarity("zebra"), 0.0);
    Turn turn(*session_, Prompt(*vocabulary_->tokenize("go on ")));
    turn.recall({.cues = {{.text = is_asked ? "what the zebra eats" : "go on"}},
                 .max_blocks = 1,
                 .selectors = SelectorList::parse("lexical").value()});
    compute(turn, 7);
    write(turn, "the zebra ");
    EXPECT_EQ(turn.settle().writing.n, is_asked ? 1 : 0);
    EXPECT_EQ(session_->hot().is_hot(BlockIndex(0)), is_asked);
  }
}

TEST_P(ReplyTurns, a_sentence_that_repeats_a_question_is_looked_for_by_all_of_the_question) {
  say("quagga " + std::string(76, 'w') + " quagga zebra " + std::string(60, 'w') + " dodo " + std::string(300, 'w'));
  Turn turn(*session_, Prompt(*vocabulary_->tokenize("go on ")));
  // There is room for what the heavier one asks.
  turn.recall({.cues = {{.text = "a dodo"}, {.text = "a quagga and a zebra", .weight = kOuterLineWeight}},
               .max_blocks = 1,
               .selectors = SelectorList::parse("lexical").value()});
  compute(turn, 7);
  ASSERT_FALSE(session_->hot().is_hot(kZebra));
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  write(turn, "a quagga ");
  EXPECT_TRUE(session_->hot().is_hot(kZebra));
  EXPECT_FALSE(session_->hot().is_hot(BlockIndex(0))) << "which its own word would find";
  const std::size_t n_recalled = turn.stats().acts.recalled.size();
  write(turn, "and a zebra ");
  EXPECT_EQ(turn.stats().acts.recalled.size(), n_recalled);
  turn.settle();
}

TEST_P(ReplyTurns, of_several_questions_the_one_that_is_answered_and_the_next_are_in_sight) {
  say(words(100));
  const std::vector<std::string> asked = {"Is there a quagga in it? ", "Is there one dodo in it? ",
                                          "Is there a zebra in it? "};
  std::string message;
  for (const std::string& question : asked) message += question;
  // In front of what is to be read: at a prompt's end they would stay.
  message += words(30);
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(message, {.add_bos = false})));
  turn.recall({.cues = find_cues(message), .selectors = SelectorList::parse("lexical").value()});
  compute(turn, 7);
  // Where its first letter is: a border may cut it.
  const auto standing_in = [&](std::string_view word) {
    std::string text;
    std::int32_t b = 0;
    while (text.find(word) == std::string::npos) text += *session_->block_text(BlockIndex(b++));
    std::string before;
    for (b = 0; before.size() <= text.find(word); ++b) before += *session_->block_text(BlockIndex(b));
    return BlockIndex(b - 1);
  };
  const BlockIndex quagga = standing_in("quagga");
  const BlockIndex dodo = standing_in("dodo");
  const BlockIndex zebra = standing_in("zebra");
  ASSERT_LT(quagga, dodo);
  ASSERT_LT(dodo, zebra);
  write(turn, words(60));
  ASSERT_FALSE(session_->hot().is_hot(zebra));
  write(turn, " a quagga ");
  EXPECT_TRUE(session_->hot().is_hot(quagga));
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(quagga.value() + 1))) << "where the next question begins";
  EXPECT_FALSE(session_->hot().is_hot(zebra));
  write(turn, "is there.\nOne dodo ");
  EXPECT_TRUE(session_->hot().is_hot(dodo));
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(dodo.value() + 1)));
  check_every_hot_byte();
  write(turn, words(35));
  EXPECT_TRUE(session_->hot().is_hot(dodo)) << "it stays while it is answered";
  EXPECT_FALSE(session_->hot().is_hot(quagga)) << "and no longer";
  turn.settle();
}

TEST_P(ReplyTurns, what_a_prompts_end_asks_stays_while_it_is_answered) {
  say(words(100));
  const std::string message = "Is there a quagga in it? Is there one emu in it? Is a dodo in it? Is a zebra in it? ";
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(message, {.add_bos = false})));
  turn.recall({.cues = find_cues(message), .selectors = SelectorList::parse("identity").value()});
  compute(turn, 7);
  const BlockIndex asking = session_->hot().block_at(session_->end() - 32);
  const BlockIndex end = session_->hot().block_at(session_->end() - 1);
  const BlockIndex before(asking.value() - 1);
  ASSERT_TRUE(session_->block_text(before)->find("emu") != std::string::npos);
  write(turn, words(60));
  for (BlockIndex block = asking; block <= end; block = BlockIndex(block.value() + 1)) {
    EXPECT_TRUE(session_->hot().is_hot(block)) << block.value();
  }
  EXPECT_FALSE(session_->hot().is_hot(before)) << "no more than its share";
  turn.settle();
  say(words(60));
  EXPECT_FALSE(session_->hot().is_hot(asking)) << "another turn has other questions";
}

TEST_P(ReplyTurns, it_stays_too_where_only_the_reply_is_too_long) {
  const std::string message = "Is there one emu in it? Is a dodo in it? Is a zebra in it? ";
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(message, {.add_bos = false})));
  turn.recall({.cues = find_cues(message), .selectors = SelectorList::parse("identity").value()});
  compute(turn, 7);
  const BlockIndex asking = session_->hot().block_at(session_->end() - 32);
  ASSERT_FALSE(session_->has_cold());
  write(turn, words(100));
  ASSERT_TRUE(session_->has_cold());
  EXPECT_TRUE(session_->hot().is_hot(asking));
  turn.settle();
}

TEST_P(ReplyTurns, who_wants_nothing_back_has_no_question_held) {
  say(words(100));
  const std::string message = "Is there one emu in it? Is a dodo in it? Is a zebra in it? ";
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(message, {.add_bos = false})));
  turn.recall({.cues = find_cues(message), .max_blocks = 0});
  compute(turn, 7);
  const BlockIndex asking = session_->hot().block_at(session_->end() - 32);
  write(turn, words(60));
  EXPECT_FALSE(session_->hot().is_hot(asking));
  turn.settle();
}

TEST_P(ReplyTurns, what_stands_far_from_a_messages_ends_in_the_words_of_the_question_answers_it) {
  const std::string question = "Is a quagga there? ";
  for (const bool is_answer : {true, false}) {
    session_ = make_session(kBudgetBlocks);
    const std::string fill = std::string(is_answer ? 700 : 60, 'w') + " ";
    const std::string message = fill + "Is a quagga there? " + std::string(700, 'w') + " " + question;
    Turn turn(*session_, Prompt(*vocabulary_->tokenize(message, {.add_bos = false})));
    turn.recall({.cues = find_cues(question), .selectors = SelectorList::parse("lexical").value()});
    compute(turn, 7);
    const std::vector<RecallLook>& looks = turn.stats().looks;
    const bool asks = std::ranges::any_of(
        looks, [](const RecallLook& look) { return look.selector == kQuestionLook && !look.told.empty(); });
    EXPECT_EQ(asks, !is_answer);
    const bool comes = std::ranges::any_of(
        looks, [](const RecallLook& look) { return look.selector == "lexical" && look.n_chosen() > 0; });
    EXPECT_EQ(comes, is_answer);
    turn.settle();
  }
}

TEST_P(ReplyTurns, no_more_comes_than_was_asked_for_and_nothing_where_nothing_is_kept) {
  tell();
  Turn turn = ask("lexical", 1);
  const std::size_t n_before = turn.stats().acts.recalled.size();
  write(turn, "the zebra is ");
  EXPECT_EQ(turn.settle().acts.recalled.size(), n_before + 1);
  session_ = make_session(kBudgetBlocks, {.remains = Remains::kNothing});
  tell();
  Turn without = ask("lexical");
  write(without, "the zebra is ");
  EXPECT_EQ(without.settle().writing.n, 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ReplyTurns, testing::Values(KeyOrder::kByDim, KeyOrder::kByRow),
                         [](const auto& instance) { return instance.param == KeyOrder::kByDim ? "by_dim" : "by_row"; });

}  // namespace
}  // namespace ebb
