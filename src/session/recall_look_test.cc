#include "session/recall_look.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

RecallLook look(std::string_view selector, const std::vector<std::pair<std::int32_t, Verdict>>& told) {
  RecallLook one{.selector = selector};
  for (const auto& [block, verdict] : told)
    one.told.push_back({.considered = {.block = BlockIndex(block), .verdict = verdict}});
  return one;
}

std::vector<std::int32_t> chosen(const std::vector<RecallLook>& looks) {
  std::vector<std::int32_t> blocks;
  for (const BlockIndex block : chosen_blocks(looks)) blocks.push_back(block.value());
  return blocks;
}

TEST(RecallLook, selectors_take_turns_behind_the_question_and_what_was_named) {
  const std::vector<RecallLook> looks = {
      look("lexical", {{4, Verdict::kRecall}, {5, Verdict::kRecall}, {6, Verdict::kBeyond}}),
      look(kQuestionLook, {{0, Verdict::kAsks}}), look(kIdentity, {{9, Verdict::kKeep}, {8, Verdict::kRecall}}),
      look("digest", {{4, Verdict::kKeep}, {7, Verdict::kRecall}, {3, Verdict::kWeak}})};
  EXPECT_EQ(chosen(looks), (std::vector{0, 9, 8, 4, 5, 7}));
  EXPECT_EQ(looks[0].n_chosen(), 2);
  EXPECT_EQ(looks[1].n_chosen(), 1);
}

TEST(RecallLook, nothing_chosen_is_nothing) {
  EXPECT_TRUE(chosen({}).empty());
  EXPECT_TRUE(chosen({look("lexical", {{4, Verdict::kWeak}})}).empty());
  EXPECT_FALSE(is_told({}, BlockIndex(4)));
}

}  // namespace
}  // namespace ebb
