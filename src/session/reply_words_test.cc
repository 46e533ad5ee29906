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

// Of the words that are asked with here, those are rare.
double is_rare(const std::string& word) {
  return word == "code" || word == "zebra" || word == "quagga" || word == "vault" ? 1.0 : 0.0;
}

class MeantCue : public testing::Test {
 protected:
  static Meant find(std::string_view sentence) { return find_meant(kCues, {}, nullptr, sentence, is_rare); }

  inline static const std::vector<Cue> kCues = {{.text = "What is the code of the old vault?"},
                                                {.text = "Tell me the code of the big blue box."},
                                                {.text = "Where does the zebra live?"}};
};

TEST_F(MeantCue, is_the_one_that_the_sentence_repeats_by_its_words_that_have_ended) {
  EXPECT_FALSE(find("The ").says_rare);
  EXPECT_FALSE(find("The code").says_rare) << "it may go on";
  EXPECT_THAT(find("The zebra ").cue, testing::Optional(2U));
  EXPECT_THAT(find("The code of the big ").cue, testing::Optional(1U));
  EXPECT_THAT(find("The code of the old vault ").cue, testing::Optional(0U));
  EXPECT_FALSE(find("The code of the old vault ").is_open);
}

TEST_F(MeantCue, is_none_where_no_rare_word_was_asked_with) {
  EXPECT_EQ(find("The quagga of the house ").cue, std::nullopt);
  EXPECT_TRUE(find("The quagga of the house ").says_rare);
  EXPECT_THAT(find("The quagga of the vault ").cue, testing::Optional(0U));
}

TEST_F(MeantCue, is_open_where_two_say_as_much_unless_they_say_the_same) {
  const std::vector<Cue> twins = {{.text = "the code of the red door"}, {.text = "the code of the tin door"}};
  EXPECT_TRUE(find_meant(twins, {}, nullptr, "The code of ", is_rare).is_open);
  EXPECT_FALSE(find_meant(twins, {}, nullptr, "The code of the tin ", is_rare).is_open);
  EXPECT_THAT(find_meant(twins, {}, nullptr, "The code of the tin ", is_rare).cue, testing::Optional(1U));
  const std::vector<Cue> same = {{.text = "the code of it?"}, {.text = "the code of it"}};
  EXPECT_FALSE(find_meant(same, {}, nullptr, "The code of ", is_rare).is_open);
}

TEST_F(MeantCue, is_the_one_of_whose_rare_words_most_are_said) {
  const std::vector<Cue> cues = {{.text = "the code and the zebra of the tin vault"}, {.text = "where the vault is"}};
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The vault ", is_rare).cue, testing::Optional(1U));
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The vault of the zebra ", is_rare).cue, testing::Optional(0U));
}

// "year" and "founding" stand in several facts, "gaha" in one.
TEST_F(MeantCue, is_the_one_whose_subject_is_said_before_one_that_asks_the_same_of_another) {
  const std::vector<Cue> cues = {{.text = "When was Gaha founded?"},
                                 {.text = "Who does the loud invoice belong to?"},
                                 {.text = "Tell me the founding year of Retdi."},
                                 {.text = "The owner of the royal invoice?"}};
  const auto rarity = [](const std::string& word) {
    if (word == "founding" || word == "year" || word == "owner") return 3.0;
    return word == "gaha" || word == "retdi" || word == "founded" || word == "loud" || word == "royal" ||
                   word == "invoice"
               ? 5.0
               : 0.0;
  };
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The founding year of Gaha ", rarity).cue, testing::Optional(0U));
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The founding year of Retdi ", rarity).cue, testing::Optional(2U));
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The owner of the loud invoice ", rarity).cue, testing::Optional(1U));
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The owner of the royal invoice ", rarity).cue, testing::Optional(3U));
}

TEST_F(MeantCue, is_the_one_that_is_expected_where_as_much_is_said_of_several) {
  const std::vector<Cue> cues = {{.text = "When was Gaha founded?"}, {.text = "Tell me the founding year of Retdi."}};
  const auto rarity = [](const std::string& word) { return word == "the" || word == "of" ? 0.0 : 4.0; };
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The founding year of Gaha ", rarity).cue, testing::Optional(1U));
  EXPECT_THAT(find_meant(cues, {}, cues.data(), "The founding year of Gaha ", rarity).cue, testing::Optional(0U));
  EXPECT_THAT(find_meant(cues, {}, cues.data(), "The founding year of ", rarity).cue, testing::Optional(1U));
}

TEST_F(MeantCue, is_one_that_was_answered_only_where_all_of_it_is_said_again) {
  const std::vector<Cue> cues = {{.text = "the code of the vault"}, {.text = "where the zebra is"}};
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The code of ", is_rare).cue, testing::Optional(0U));
  EXPECT_EQ(find_meant(cues, {0}, nullptr, "The code of ", is_rare).cue, std::nullopt);
  EXPECT_THAT(find_meant(cues, {0}, nullptr, "The code of the zebra ", is_rare).cue, testing::Optional(1U));
  EXPECT_THAT(find_meant(cues, {0}, nullptr, "The code of the vault ", is_rare).cue, testing::Optional(0U));
}

}  // namespace
}  // namespace ebb
