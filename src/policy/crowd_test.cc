#include "policy/crowd.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

class Crowd : public testing::Test {
 protected:
  // Blocks of one text each.
  void tell(std::vector<std::string> texts) {
    for (std::string& text : texts) {
      words_.add(BlockIndex(static_cast<std::int32_t>(texts_.size())), text);
      texts_.push_back(std::move(text));
    }
  }

  // Of which none says anything that is asked.
  void fill(int n) {
    for (int i = 0; i < n; ++i) tell({fmt::format("Grey w{} over the hills.", i)});
  }

  // Which block comes first for it, where those that tell more come in front.
  std::int32_t best_telling(const Cue& cue) {
    std::vector<CueRanking> found = {{.ranked = words_.rank(cue.text)}};
    prefer_telling({&cue, 1}, found, texts());
    EXPECT_TRUE(std::ranges::is_sorted(found.front().ranked, std::ranges::greater(), &Scored::score));
    return found.front().ranked.front().block.value();
  }

  // Each block's own text and nothing around it.
  BlockTexts texts() {
    return {.words = words_, .passage = [this](BlockIndex block) {
              ++n_passages_;
              const std::string& text = texts_[block.index()];
              return Passage{.text = text, .end = text.size()};
            }};
  }

  WordIndex words_;
  std::vector<std::string> texts_;
  int n_passages_ = 0;
};

TEST_F(Crowd, of_a_crowd_that_speaks_of_what_is_asked_what_says_more_comes_first) {
  const Cue cue{.text = "What is the code of the stone tower?"};
  fill(60);
  tell(
      {"It rained. The code of the stone tower is 4711. We sang, and the long day of the week went by without a "
       "word."});
  for (int i = 0; i < 12; ++i) tell({"Nobody knows the code of the stone tower, the code of the stone tower."});
  EXPECT_GT(words_.rank(cue.text).front().block, BlockIndex(60));
  EXPECT_EQ(best_telling(cue), 60);
}

TEST_F(Crowd, what_says_more_of_something_else_does_not) {
  const Cue cue{.text = "What is the code of the stone tower?"};
  fill(60);
  tell({"The tower is 4711 feet high.", "The code of the stone tower was told to Ada."});
  for (int i = 0; i < 12; ++i) tell({"Nobody knows the code of the stone tower, the code of the stone tower."});
  EXPECT_EQ(best_telling(cue), 61);
}

TEST_F(Crowd, where_few_speak_of_it_the_order_stays) {
  const Cue cue{.text = "What is the code of the stone tower?"};
  fill(60);
  tell({"It rained. The code of the stone tower is 4711. We sang, and the long day of the week went by without a word.",
        "Nobody knows the code of the stone tower, the code of the stone tower."});
  n_passages_ = 0;
  EXPECT_EQ(best_telling(cue), 61);
  EXPECT_EQ(n_passages_, 0);
}

TEST_F(Crowd, a_line_below_a_heading_tells_more_than_what_only_speaks_of_both) {
  const Cue cue{.text = "What is retries in config.py?"};
  fill(200);
  tell({"# config.py\nport = 801\nretries = 17\ntimeout = 433"});
  for (int i = 0; i < 40; ++i) tell({"Nobody has changed retries in config.py since the morning, in config.py."});
  EXPECT_EQ(best_telling(cue), 200);
}

TEST_F(Crowd, what_says_a_number_or_a_name_comes_before_what_says_other_rare_words) {
  fill(60);
  tell({"The home city of Anna is Rome."});
  const std::vector<std::string> rare = {"letter", "candle", "garden", "ladder",
                                         "window", "basket", "needle", "hammer"};
  for (const std::string& word : rare) tell({"Anna had a " + word + ", and went home with it that evening."});
  EXPECT_EQ(best_telling({.text = "Where does Anna live?"}), 60);
  tell({"The code of the stone tower is 4711, they said to Ada that day."});
  for (const std::string& word : rare) tell({"The " + word + " was beside the code of the stone tower."});
  EXPECT_EQ(best_telling({.text = "What is the code of the stone tower?"}), 69);
  // Where nothing says any, what says most does.
  tell({"The owner of the long pier is the miller."});
  for (int i = 0; i < 12; ++i) tell({"They were at the long pier, by the long pier."});
  EXPECT_EQ(best_telling({.text = "Who is the owner of the long pier?"}), 78);
}

// A sentence beside the block is another block's.
TEST_F(Crowd, what_stands_around_a_block_is_not_its_own) {
  const Cue cue{.text = "What is the code of the stone tower?"};
  fill(60);
  tell({"A red house has number 4711."});
  for (int i = 0; i < 12; ++i) tell({"Nobody knows the code of the stone tower."});
  std::vector<CueRanking> found = {{.ranked = words_.rank(cue.text)}};
  const std::vector<Scored> before = found.front().ranked;
  const auto beside = [](BlockIndex) {
    const std::string told = "The code of the stone tower is 4711. ";
    const std::string own = "Nobody knows the code of the stone tower.";
    return Passage{.text = told + own, .begin = told.size(), .end = told.size() + own.size()};
  };
  prefer_telling({&cue, 1}, found, {.words = words_, .passage = beside});
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(found.front().ranked[i].score, before[i].score);
}

}  // namespace
}  // namespace ebb
