#include "policy/referring.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

std::vector<Cue> cues_behind(std::string_view asked, std::string_view reply, std::string_view now) {
  return find_cues(std::vector<SaidText>{{.text = std::string(asked), .is_before = true},
                                         {.text = std::string(reply), .source = Source::kAssistant, .is_before = true},
                                         {.text = std::string(now)}});
}

TEST(Referring, is_told_by_pronouns_by_how_a_question_ends_and_by_short_beginnings) {
  for (const char* const refers : {"How much does it cost", "And who does it belong to", "Where do they live",
                                   "How much is that", "And the owner", "What is its code", "Was he there"}) {
    EXPECT_TRUE(refers_back(refers)) << refers;
  }
  for (const char* const names : {"How much does the mill cost", "And what eats the quagga", "Is it", "",
                                  "Who said that the mill burnt down", "What is the code of the brass valve"}) {
    EXPECT_EQ(refers_back(names), std::string_view(names) == "Is it") << names;
  }
}

TEST(Referring, is_to_what_was_asked_before_and_to_what_the_reply_begins_with) {
  const std::vector<Cue> cues =
      cues_behind("Tell me about the silver gate.", "It is old. It leads north.", "How much does it cost?");
  ASSERT_EQ(cues.size(), 1U);
  EXPECT_EQ(cues[0].about, "Tell me about the silver gate.\nIt is old.");
}

TEST(Referring, is_to_the_question_before_it_where_one_message_asks_both) {
  const std::vector<Cue> cues =
      cues_behind("Where is the mill?", "By the river.", "What is the code of the brass valve? Who does it belong to?");
  ASSERT_EQ(cues.size(), 2U);
  for (const Cue& cue : cues) {
    EXPECT_EQ(cue.about, cue.text == " Who does it belong to" ? "What is the code of the brass valve" : "") << cue.text;
  }
}

TEST(Referring, thanks_are_no_question_before_it) {
  const std::vector<Cue> cues =
      cues_behind("What is the code of the brass valve?", "4821.", "Thank you very much. And who does it belong to?");
  for (const Cue& cue : cues) {
    EXPECT_EQ(cue.about, cue.asks ? "What is the code of the brass valve?\n4821." : "") << cue.text;
  }
  EXPECT_EQ(cues_behind("Where is the mill?", "By the river.", "Tell me more about it.").front().about,
            "Where is the mill?\nBy the river.");
}

TEST(Referring, of_what_is_long_little_is_read) {
  const std::string page(100'000, 'x');
  EXPECT_EQ(cues_behind(page + ". Where is the mill?", page, "Who owns it?").front().about, " Where is the mill?");
  EXPECT_EQ(cues_behind("Where is the mill? " + page, "Here.", "Who owns it?").front().about,
            "Where is the mill?\nHere.");
  EXPECT_EQ(cues_behind(page, page, "Who owns it?").front().about, "");
  EXPECT_LE(cues_behind(page + "?", page, "Who owns it?").front().about.size(), 200U);
}

TEST(Referring, is_to_nothing_where_nothing_was_said_or_what_is_asked_is_named) {
  EXPECT_EQ(find_cues("How much does it cost?").front().about, "");
  EXPECT_EQ(cues_behind("Where is the mill?", "By the river.", "What is the code of the brass valve?").front().about,
            "");
}

TEST(Referring, an_answer_to_what_the_assistant_asked_is_about_that) {
  EXPECT_EQ(cues_behind("I want to know the code of one thing.", "Which one?", "The new gate.").front().about,
            "Which one?");
  EXPECT_EQ(
      cues_behind("Here is a list.", "I have read it. Which thing's code do you want?", "The gate.").front().about,
      " Which thing's code do you want?");
  EXPECT_EQ(cues_behind("Here is a list.", "I have read it.", "The new gate.").front().about, "");
  EXPECT_EQ(cues_behind("Here is a list.", "Which one?", "What is the code of the gate?").front().about, "")
      << "who asks says what is asked";
}

TEST(Referring, a_long_reply_without_a_short_sentence_says_nothing) {
  const std::string reply(3000, 'x');
  EXPECT_EQ(cues_behind("Where is the mill?", reply, "Who owns it?").front().about, "Where is the mill?");
}

}  // namespace
}  // namespace ebb
