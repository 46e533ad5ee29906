#include "policy/behind_question.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;

// Blocks that are cut where a text is, with what follows around them.
class BehindQuestion : public ::testing::Test {
 protected:
  void tell(std::string text) {
    words_.add(BlockIndex(static_cast<std::int32_t>(texts_.size())), text);
    texts_.push_back(std::move(text));
  }
  void fill(int n) {
    for (int i = 0; i < n; ++i) tell(fmt::format("Grey w{} over the hills.", i));
  }

  std::vector<BlockIndex> left(std::string_view question, std::vector<BlockIndex> asking) {
    const Cue cue{.text = std::string(question)};
    std::vector<CueRanking> found = {{.ranked = words_.rank(question)}};
    leave_out_questions({&cue, 1}, found, asking, {.words = words_, .passage = [this](BlockIndex block) {
                                                     const std::string& text = texts_[block.index()];
                                                     const bool has_next = block.index() + 1 < texts_.size();
                                                     return Passage{
                                                         .text = text + (has_next ? texts_[block.index() + 1] : ""),
                                                         .end = text.size()};
                                                   }});
    std::vector<BlockIndex> blocks;
    for (const Scored& scored : found[0].ranked) blocks.push_back(scored.block);
    return blocks;
  }

  WordIndex words_;
  std::vector<std::string> texts_;
};

constexpr std::string_view kQuestion = "How much does the broken chest cost";

TEST_F(BehindQuestion, what_answers_and_goes_on_in_the_next_block_is_found) {
  tell("How much does the broken chest cost?\n\nThe broken chest");
  tell(" costs 506 dollars. In room 0 people sat.");
  tell("The iron lamp does cost 284 dollars.");
  fill(20);
  EXPECT_THAT(left(kQuestion, {BlockIndex(0)}), ElementsAre(BlockIndex(1), BlockIndex(2)));
}

TEST_F(BehindQuestion, what_ends_in_its_block_or_speaks_of_something_else_does_not_go_on) {
  tell("How much does the broken chest cost?\n\nThe broken chest costs 506 dollars. In room");
  tell(" 0 people sat.");
  fill(20);
  EXPECT_THAT(left(kQuestion, {BlockIndex(0)}), ElementsAre());
  texts_[0] = "How much does the broken chest cost?\n\nThe iron lamp";
  EXPECT_THAT(left(kQuestion, {BlockIndex(0)}), ElementsAre());
}

TEST_F(BehindQuestion, what_stands_in_front_of_the_question_is_no_answer_of_it) {
  tell("The broken chest was seen. How much does the broken chest cost");
  tell("? In room 0 people sat.");
  fill(20);
  EXPECT_THAT(left(kQuestion, {BlockIndex(0)}), ElementsAre());
}

}  // namespace
}  // namespace ebb
