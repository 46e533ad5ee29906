#include "session/reply_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReplyWords, a_word_has_ended_when_the_next_begins) {
  ReplyWords words;
  words.add("The ow");
  EXPECT_THAT(words.take_ended(), ElementsAre("the"));
  words.add("ner");
  EXPECT_THAT(words.take_ended(), IsEmpty());
  words.add(" of");
  EXPECT_THAT(words.take_ended(), ElementsAre("owner"));
  EXPECT_THAT(words.take_ended(), IsEmpty());
  EXPECT_EQ(words.sentence(), "The owner of");
}

TEST(ReplyWords, a_sentence_ends_at_its_mark_and_not_within_a_number_or_a_path) {
  ReplyWords words;
  words.add("It is 3.");
  words.add("14 in a/b.cc");
  EXPECT_EQ(words.sentence(), "It is 3.14 in a/b.cc");
  EXPECT_THAT(words.take_ended(), testing::Contains("14"));
  words.add(". The next");
  EXPECT_EQ(words.sentence(), " The next");
  EXPECT_THAT(words.take_ended(), ElementsAre("cc", "the"));
  words.add("\nline");
  EXPECT_EQ(words.sentence(), "line");
}

TEST(ReplyWords, the_last_word_of_a_sentence_ends_with_it_and_its_sentence_stays_until_the_next_is_said) {
  ReplyWords words;
  words.add("Of the **zebra");
  (void)words.take_ended();
  words.add(":**\n");
  EXPECT_THAT(words.take_ended(), ElementsAre("zebra"));
  EXPECT_EQ(words.sentence(), "Of the **zebra:**\n");
  words.add(" - ");
  EXPECT_EQ(words.sentence(), "Of the **zebra:**\n - ");
  words.add("it");
  EXPECT_EQ(words.sentence(), " - it");
}

TEST(ReplyWords, of_scripts_without_spaces_each_character_ends_a_word_with_the_one_before_it) {
  ReplyWords words;
  words.add("\u7ea2");
  (void)words.take_ended();
  words.add("\u8239");
  EXPECT_THAT(words.take_ended(), ElementsAre("\u7ea2\u8239"));
  words.add("\u7684\u4e3b");
  EXPECT_THAT(words.take_ended(), ElementsAre("\u8239\u7684", "\u7684\u4e3b"));
  words.add("\u00fcber");
  EXPECT_THAT(words.take_ended(), testing::Not(testing::Contains("\u00fcber"))) << "it may go on";
}

TEST(ReplyWords, one_without_an_end_keeps_its_last_bytes) {
  ReplyWords words;
  for (int i = 0; i < 1000; ++i) {
    words.add("word ");
    EXPECT_THAT(words.take_ended(), ElementsAre("word"));
  }
  EXPECT_EQ(words.sentence().size(), ReplyWords::kMostBytes);
}

TEST(ReplyWords, bytes_that_are_no_text_are_taken_as_they_are) {
  ReplyWords words;
  for (int i = 0; i < 300; ++i) {
    words.add(std::string(1, static_cast<char>(i)));
    (void)words.take_ended();
  }
  EXPECT_LE(words.sentence().size(), ReplyWords::kMostBytes);
}

}  // namespace
}  // namespace ebb
