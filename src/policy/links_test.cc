#include "policy/links.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

class Links : public testing::Test {
 protected:
  // Blocks of one text each.
  void tell(std::vector<std::string> texts) {
    for (std::string& text : texts) {
      words_.add(BlockIndex(static_cast<std::int32_t>(texts_.size())), text);
      texts_.push_back(std::move(text));
    }
  }

  // Of which none says anything that is asked.
  void fill(int n = 8) {
    for (int i = 0; i < n; ++i) tell({fmt::format("Grey w{} over the hills.", i)});
  }

  std::vector<CueRanking> follow(const std::vector<Cue>& cues) {
    std::vector<CueRanking> found;
    for (const Cue& cue : cues) found.push_back({.weight = cue.weight, .ranked = words_.rank(cue.text)});
    return follow_links(cues, found, source());
  }

  // Each block's own text and nothing around it.
  BlockTexts source() {
    return {.words = words_, .passage = [this](BlockIndex block) {
              ++n_passages_;
              const std::string& text = texts_[block.index()];
              return Passage{.text = text, .end = text.size()};
            }};
  }

  std::vector<std::int32_t> firsts(const std::vector<Cue>& cues) {
    std::vector<std::int32_t> blocks;
    for (const CueRanking& one : follow(cues)) blocks.push_back(one.ranked.front().block.value());
    return blocks;
  }

  WordIndex words_;
  std::vector<std::string> texts_;
  int n_passages_ = 0;
};

TEST_F(Links, one_fact_leads_to_the_next) {
  fill();
  tell({"The wind rose. The owner of the boat is Ada. It rained.", "We sang. Ada lives in Athens."});
  const std::vector<CueRanking> linked = follow({{.text = "Where does the owner of the boat live?", .weight = 0.8}});
  ASSERT_EQ(linked.size(), 1U);
  EXPECT_EQ(linked.front().ranked.front().block, BlockIndex(9));
  EXPECT_TRUE(linked.front().is_linked);
  EXPECT_LT(linked.front().weight, 0.8);
  EXPECT_EQ(linked.front().ranked.size(), 1U) << "what led there is not found again";
}

TEST_F(Links, a_chain_is_followed_so_far_and_no_further) {
  fill(40);
  tell({"Let alpha be 77.", "Let bravo be alpha.", "Let carol be bravo.", "Let delta be carol.", "Let echo be delta.",
        "Let foxtrot be echo."});
  EXPECT_EQ(firsts({{.text = "Which are 77?"}}), (std::vector<std::int32_t>{41, 42, 43, 44}));
}

TEST_F(Links, a_sentence_that_says_little_of_what_is_asked_leads_nowhere) {
  fill();
  tell({"The owner of the boat is Ada.", "Ada lives in Athens.", "A heavy coat was sold."});
  EXPECT_TRUE(firsts({{.text = "Was the heavy green zebra in the wide boat sold on Sunday?"}}).empty());
}

TEST_F(Links, what_was_asked_and_what_many_blocks_say_is_no_link) {
  tell({"The owner of the boat is Ada.", "Ada lives in Athens."});
  for (int i = 0; i < 40; ++i) tell({"The boat is old."});
  EXPECT_TRUE(firsts({{.text = "Is Ada the owner of it?"}}).empty());
  EXPECT_EQ(firsts({{.text = "Who is the owner of it?"}}), (std::vector<std::int32_t>{1}));
}

TEST_F(Links, where_the_best_block_names_nothing_the_next_is_tried) {
  fill();
  tell({"The owner of the boat!", "The owner of the boat was asked for and is Ada.", "Ada lives in Athens."});
  const std::vector<std::int32_t> blocks = firsts({{.text = "owner of the boat"}});
  EXPECT_TRUE(std::ranges::find(blocks, 10) != blocks.end());
}

TEST_F(Links, cues_that_do_not_lead_and_many_cues_cost_nothing) {
  fill();
  tell({"The owner of the boat is Ada.", "Ada lives in Athens.", "Kiosk."});
  EXPECT_TRUE(firsts({{.text = "kiosk"}, {.text = "owner of the boat", .weight = 0.1}}).empty());
  n_passages_ = 0;
  std::vector<Cue> cues;
  for (int i = 0; i < 24; ++i) cues.push_back({.text = "owner of the boat"});
  follow(cues);
  EXPECT_LE(n_passages_, 4 * 4 * 3);
  EXPECT_TRUE(follow({}).empty());
}

TEST_F(Links, where_several_are_as_good_what_one_leads_to_comes_behind_them) {
  fill();
  for (const char* const text : {"The boat has a price of 329.", "The boat now lies in old Athens.",
                                 "The boat is due on a Sunday.", "Ask Bert for 329."}) {
    tell({text, "We sang."});
  }
  const std::vector<CueRanking> linked = follow({{.text = "Who took the boat?", .weight = 0.9}});
  ASSERT_EQ(linked.size(), 1U);
  EXPECT_LE(linked.front().weight, 0.3);
}

TEST_F(Links, a_sentence_that_a_border_parts_is_one_place) {
  fill();
  tell({"The red boat", "The red boat belongs to Ada.", "We sang a song there.", "Ada lives in Athens."});
  const std::vector<CueRanking> linked = follow({{.text = "Where is the red boat?", .weight = 1.0}});
  ASSERT_EQ(linked.size(), 1U);
  EXPECT_DOUBLE_EQ(linked.front().weight, 0.85);
}

TEST_F(Links, a_sentence_that_a_border_cuts_does_not_lead_to_its_own_end) {
  fill();
  tell({"We sang. The price of the boat is", "329 pounds. It rained.", "The sun came out."});
  const std::vector<Cue> cues = {{.text = "What is the price of the boat?", .weight = 0.9}};
  const std::vector<CueRanking> found = {{.weight = 0.9, .ranked = words_.rank(cues.front().text)}};
  const BlockTexts source{.words = words_, .passage = [this](BlockIndex block) {
                            const std::string& own = texts_[block.index()];
                            return Passage{.text = own + " " + texts_[block.index() + 1], .end = own.size()};
                          }};
  EXPECT_TRUE(follow_links(cues, found, source).empty());
}

TEST_F(Links, text_that_cannot_be_told_leads_nowhere) {
  fill();
  tell({"The owner of the boat is Ada.", "Ada lives in Athens."});
  const std::vector<Cue> cues = {{.text = "owner of the boat"}};
  const std::vector<CueRanking> found = {{.ranked = words_.rank(cues.front().text)}};
  EXPECT_TRUE(follow_links(cues, found, {.words = words_, .passage = [](BlockIndex) { return Passage(); }}).empty());
}

}  // namespace
}  // namespace ebb
