#include "policy/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Sentences, end_at_marks_and_not_within_numbers_or_names) {
  EXPECT_EQ(sentence_mark_bytes("a. b", 1), 1U);
  EXPECT_EQ(sentence_mark_bytes("a.", 1), 1U);
  EXPECT_EQ(sentence_mark_bytes("3.5", 1), 0U);
  EXPECT_EQ(sentence_mark_bytes("a?b", 1), 1U);
  EXPECT_EQ(sentence_mark_bytes("a\nb", 1), 1U);
  EXPECT_EQ(sentence_mark_bytes("a\u3002b", 1), 3U);
}

TEST(Passages, are_the_sentences_of_a_block) {
  const Passages passages = split_passages("The gate is in the north. The lamp is blue and old! ", 0);
  EXPECT_THAT(passages.texts, ElementsAre("The gate is in the north.", "The lamp is blue and old!"));
  EXPECT_FALSE(passages.first_begins_before);
}

TEST(Passages, begin_with_the_sentence_that_the_border_cuts_and_leave_the_last_cut_one_to_the_next_block) {
  const std::string before = "Rain fell all day. The code of the ";
  const Passages passages = split_passages(before + "gate is 4711. The lamp is bl", before.size());
  EXPECT_THAT(passages.texts, ElementsAre("The code of the gate is 4711."));
  EXPECT_TRUE(passages.first_begins_before);
}

TEST(Passages, begin_with_the_block_where_the_sentence_before_ended) {
  const std::string before = "Rain fell all day. ";
  const Passages passages = split_passages(before + "The code of the gate is 4711.", before.size());
  EXPECT_THAT(passages.texts, ElementsAre("The code of the gate is 4711."));
  EXPECT_FALSE(passages.first_begins_before);
}

TEST(Passages, are_the_whole_block_where_no_sentence_ends_and_begin_with_a_whole_word) {
  const Passages passages = split_passages(
      "one two thr"
      "ee four five",
      11);
  EXPECT_THAT(passages.texts, ElementsAre("three four five"));
  EXPECT_TRUE(passages.first_begins_before);
}

TEST(Passages, of_few_words_go_with_the_one_before) {
  EXPECT_THAT(split_passages("Who opened the north gate? In spring. And then?", 0).texts,
              ElementsAre("Who opened the north gate? In spring. And then?"));
  EXPECT_THAT(split_passages(" \n .. !", 0).texts, IsEmpty());
  EXPECT_THAT(split_passages("", 0).texts, IsEmpty());
}

}  // namespace
}  // namespace ebb
