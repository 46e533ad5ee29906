#include "chat/prompt_thinking.h"

#include "gtest/gtest.h"

namespace ebb {
namespace {

PromptThinking find(std::vector<PromptPiece> pieces, bool continues = false) {
  return find_prompt_thinking({.pieces = std::move(pieces)}, {}, continues);
}

TEST(PromptThinking, is_what_the_templates_last_words_say) {
  const PromptPiece user{.text = "Hello", .from_user = true};
  EXPECT_EQ(find({user, {.text = "<|im_end|>\n<|im_start|>assistant\n"}}), PromptThinking::kNotBegun);
  EXPECT_EQ(find({user, {.text = "<|im_end|>\n<|im_start|>assistant\n<think>\n"}}), PromptThinking::kOpen);
  EXPECT_EQ(find({user, {.text = "assistant\n<think>\n\n</think>\n\n"}}), PromptThinking::kOver);
  EXPECT_EQ(find({}), PromptThinking::kNotBegun);
}

TEST(PromptThinking, is_not_what_people_say) {
  const PromptPiece user{.text = "What does <think> mean?", .from_user = true};
  EXPECT_EQ(find({{.text = "<think>"}, user, {.text = "assistant\n"}}), PromptThinking::kNotBegun);
  EXPECT_EQ(find({{.text = "user\n"}, user}), PromptThinking::kNotBegun);
}

// gpt-oss: what ends its thinking ends the system's and the user's messages as well.
TEST(PromptThinking, is_not_over_where_other_messages_end_as_it_does) {
  const ThinkTags tags = {.open = "<|channel|>analysis<|message|>",
                          .close = "<|end|>",
                          .reopen = "<|start|>assistant<|channel|>analysis<|message|>"};
  const auto find = [&](std::vector<PromptPiece> pieces) {
    return find_prompt_thinking({.pieces = std::move(pieces)}, tags, false);
  };
  const PromptPiece user{.text = "Hello", .from_user = true};
  EXPECT_EQ(find({{.text = "system<|end|>user"}, user, {.text = "<|end|><|start|>assistant"}}),
            PromptThinking::kNotBegun);
  EXPECT_EQ(find({user, {.text = "<|end|><|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>"}}),
            PromptThinking::kOver);
}

TEST(PromptThinking, goes_on_in_an_answer_that_the_client_began) {
  const PromptPiece begun{.text = "Let me see. ", .from_user = true};
  EXPECT_EQ(find({{.text = "assistant\n<think>\n"}, begun}, true), PromptThinking::kOpen);
  EXPECT_EQ(find({{.text = "assistant\n"}, {.text = "<think>Hm.</think>So", .from_user = true}}, true),
            PromptThinking::kOver);
}

}  // namespace
}  // namespace ebb
