#include "engine/thinking.h"

#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

class ThinkingTest : public testing::Test {
 protected:
  [[nodiscard]] Thinking make(ThinkingOptions options) const {
    if (options.close_mark.empty()) options.open_mark = "<think>", options.close_mark = "</think>";
    return Thinking::create(*vocabulary_, std::move(options)).value();
  }
  // Byte by byte: every mark lies across tokens.
  static void push(Thinking& thinking, std::string_view text) {
    for (const char c : text) EXPECT_TRUE(thinking.push(Token(static_cast<unsigned char>(c))).ok());
  }
  // What is forced until nothing is.
  [[nodiscard]] std::string forced_text(Thinking& thinking) const {
    std::string text;
    while (const auto token = thinking.forced()) {
      EXPECT_TRUE(thinking.push(*token).ok());
      text += vocabulary_->piece(*token, SpecialTokens::kShow).value();
    }
    return text;
  }

  ToyFile file_{toy_bpe({.words = {"k>\n\n", "nk></th"}}).bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = Vocabulary::load(file_.path()).value();
};

TEST_F(ThinkingTest, begins_with_the_mark_as_the_first_text_and_ends_with_the_other) {
  Thinking thinking = make({});
  push(thinking, "\n <think");
  EXPECT_FALSE(thinking.is_open());
  push(thinking, ">Hm.</think");
  EXPECT_TRUE(thinking.is_open());
  push(thinking, ">");
  EXPECT_FALSE(thinking.is_open());
  push(thinking, "Yes. <think>");
  EXPECT_FALSE(thinking.is_open());
  EXPECT_EQ(thinking.n_tokens(), 12);  // from the one that completes the mark on

  Thinking none = make({});
  push(none, "Yes. <think>");
  EXPECT_FALSE(none.is_open());
  EXPECT_EQ(none.n_tokens(), 0);
}

TEST_F(ThinkingTest, sees_marks_that_begin_and_end_inside_tokens) {
  const Token close_behind(261);
  const Token both(262);
  EXPECT_EQ(vocabulary_->piece(both).value(), "nk></th");
  Thinking thinking = make({});
  push(thinking, "<thi");
  EXPECT_TRUE(thinking.push(both).ok());
  EXPECT_TRUE(thinking.is_open());
  push(thinking, "in");
  EXPECT_TRUE(thinking.push(close_behind).ok());
  EXPECT_FALSE(thinking.is_open());
}

TEST_F(ThinkingTest, is_ended_when_it_is_long_enough) {
  Thinking thinking = make({.is_open = true, .max_tokens = 5});
  push(thinking, "abcd");
  EXPECT_FALSE(thinking.forced());
  push(thinking, "e");
  EXPECT_EQ(forced_text(thinking), "</think>");
  EXPECT_FALSE(thinking.is_open());
  Thinking at_once = make({.is_open = true, .max_tokens = 0});
  EXPECT_EQ(forced_text(at_once), "</think>");
  Thinking not_begun = make({.max_tokens = 0});
  EXPECT_FALSE(not_begun.forced());
  push(not_begun, "<think>");
  EXPECT_EQ(forced_text(not_begun), "</think>");
}

TEST_F(ThinkingTest, is_not_ended_inside_a_character) {
  Thinking thinking = make({.is_open = true, .max_tokens = 1});
  push(thinking, "\xE2");
  EXPECT_FALSE(thinking.forced());
  push(thinking, "\x82\xAC");
  EXPECT_TRUE(thinking.forced());
}

TEST_F(ThinkingTest, ends_where_a_call_begins) {
  Thinking thinking = make({.other_ends = {"<tool_call>"}, .is_open = true, .max_tokens = 20});
  push(thinking, "I call. <tool_call>{\"name\": \"read\"}");
  EXPECT_FALSE(thinking.is_open());
  EXPECT_FALSE(thinking.forced());
  EXPECT_EQ(thinking.n_tokens(), 19);
}

TEST_F(ThinkingTest, cannot_be_limited_without_a_mark) {
  EXPECT_EQ(Thinking::create(*vocabulary_, {.max_tokens = 5}).status().code(), Code::kInvalidArgument);
  Thinking none = Thinking::create(*vocabulary_, {}).value();
  push(none, "<think>");
  EXPECT_FALSE(none.is_open());
}

}  // namespace
}  // namespace ebb
