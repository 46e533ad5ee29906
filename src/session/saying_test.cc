#include "session/saying.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

// Of the words that are asked with here, those are rare.
double rarity_of(const std::string& word) {
  return word == "code" || word == "zebra" || word == "quagga" || word == "vault" ? 1.0 : 0.0;
}

class MeantCue : public testing::Test {
 protected:
  static Meant find(std::string_view sentence) { return find_meant(kCues, {}, nullptr, sentence, rarity_of); }

  inline static const std::vector<Cue> kCues = {{.text = "What is the code of the old vault?"},
                                                {.text = "Tell me the code of the big blue box."},
                                                {.text = "Where does the zebra live?"}};
};

TEST_F(MeantCue, is_the_one_that_the_sentence_repeats_by_its_words_that_have_ended) {
  EXPECT_FALSE(find("The ").says_telling);
  EXPECT_FALSE(find("The code").says_telling) << "it may go on";
  EXPECT_THAT(find("The zebra ").cue, testing::Optional(2U));
  EXPECT_THAT(find("The code of the big ").cue, testing::Optional(1U));
  EXPECT_THAT(find("The code of the old vault ").cue, testing::Optional(0U));
  EXPECT_FALSE(find("The code of the old vault ").is_open);
}

TEST_F(MeantCue, is_none_where_no_rare_word_was_asked_with) {
  EXPECT_EQ(find("The quagga of the house ").cue, std::nullopt);
  EXPECT_TRUE(find("The quagga of the house ").says_telling);
  EXPECT_THAT(find("The quagga of the vault ").cue, testing::Optional(0U));
}

TEST_F(MeantCue, is_open_where_two_say_as_much_unless_they_say_the_same) {
  const std::vector<Cue> twins = {{.text = "the code of the red door"}, {.text = "the code of the tin door"}};
  EXPECT_TRUE(find_meant(twins, {}, nullptr, "The code of ", rarity_of).is_open);
  EXPECT_FALSE(find_meant(twins, {}, nullptr, "The code of the tin ", rarity_of).is_open);
  EXPECT_THAT(find_meant(twins, {}, nullptr, "The code of the tin ", rarity_of).cue, testing::Optional(1U));
  const std::vector<Cue> same = {{.text = "the code of it?"}, {.text = "the code of it"}};
  EXPECT_FALSE(find_meant(same, {}, nullptr, "The code of ", rarity_of).is_open);
}

TEST_F(MeantCue, is_the_one_of_whose_rare_words_most_are_said) {
  const std::vector<Cue> cues = {{.text = "the code and the zebra of the tin vault"}, {.text = "where the vault is"}};
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The vault ", rarity_of).cue, testing::Optional(1U));
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The vault of the zebra ", rarity_of).cue, testing::Optional(0U));
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
  EXPECT_THAT(find_meant(cues, {}, nullptr, "The code of ", rarity_of).cue, testing::Optional(0U));
  EXPECT_EQ(find_meant(cues, {0}, nullptr, "The code of ", rarity_of).cue, std::nullopt);
  EXPECT_THAT(find_meant(cues, {0}, nullptr, "The code of the zebra ", rarity_of).cue, testing::Optional(1U));
  EXPECT_THAT(find_meant(cues, {0}, nullptr, "The code of the vault ", rarity_of).cue, testing::Optional(0U));
}

class Sayings : public testing::Test {
 protected:
  // What is to be looked for behind each word that `text` ends: the cue's place, -1 for the sentence itself, -2 for nothing.
  std::vector<int> say(std::string_view text) {
    std::vector<int> news;
    for (const char c : text) {
      saying_.add(std::string_view(&c, 1));
      saying_.end_words(rarity_);
      if (!saying_.has_ended_words()) continue;
      const std::optional<Saying::News> found = saying_.find_news(cues_, rarity_);
      news.push_back(!found ? -2 : found->cue ? static_cast<int>(*found->cue) : -1);
    }
    return news;
  }

  std::vector<Cue> cues_ = {{.text = "Where does the zebra live?", .place = 2, .asks = true},
                            {.text = "What is the code of the vault?", .place = 1, .asks = true}};
  RarityOf rarity_ = rarity_of;
  Saying saying_;
};

TEST_F(Sayings, expect_the_first_of_several_and_then_the_next) {
  EXPECT_EQ(say("The vault of it "), (std::vector<int>{1, -2, -2, -2}));
  EXPECT_TRUE(saying_.repeats_cue());
  EXPECT_EQ(say("is 7. So the zebra is "), (std::vector<int>{-2, -2, 0, -2, -2, -2}));
  EXPECT_EQ(say("there. Good day to "), (std::vector<int>{-2, -2, -2, -2})) << "nothing else was asked";
}

TEST_F(Sayings, look_for_another_cue_as_soon_as_it_is_said) {
  EXPECT_EQ(say("The zebra is "), (std::vector<int>{1, 0, -2}));
  EXPECT_EQ(say("there. The vault is "), (std::vector<int>{-2, -2, 1, -2})) << "nothing stands behind the zebra";
}

// "Who does the loud kitchen belong to? What is the owner of the west gate?"
TEST_F(Sayings, stay_with_what_is_expected_until_a_rarer_word_says_otherwise) {
  cues_ = {{.text = "Who does the vault belong to?", .place = 1, .asks = true},
           {.text = "What is the code of the zebra?", .place = 2, .asks = true}};
  rarity_ = [](const std::string& word) { return word == "code" ? 0.5 : rarity_of(word); };
  EXPECT_EQ(say("The code of the "), (std::vector<int>{0, -2, -2, -2}));
  EXPECT_EQ(say("zebra "), (std::vector<int>{1}));
}

TEST_F(Sayings, expect_nothing_of_what_only_tells) {
  for (Cue& cue : cues_) cue.asks = false;
  EXPECT_EQ(say("The vault of it is 7. So the zebra "), (std::vector<int>{-2, 1, -2, -2, -2, -2, -2, -2, 0}));
}

TEST_F(Sayings, look_for_a_sentence_that_repeats_none_by_its_own_words) {
  cues_.pop_back();
  EXPECT_EQ(say("A quagga is a quagga "), (std::vector<int>{-2, -1, -2, -2, -1}));
  EXPECT_FALSE(saying_.repeats_cue());
}

}  // namespace
}  // namespace ebb
