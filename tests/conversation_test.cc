#include "chat/conversation.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/random_model.h"

namespace ebb {
namespace {

class ConversationTest : public testing::Test {
 protected:
  ConversationTest() {
    const Status written = write_random_model({}, path_);
    EXPECT_TRUE(written.ok()) << written.message();
    auto loaded = Vocabulary::load(path_);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    vocabulary_ = std::move(*loaded);
  }
  ~ConversationTest() override { std::filesystem::remove(path_); }

  // Adds the tokens to what a session would hold, and gives that session's text.
  std::string held_with(const Result<std::vector<Token>>& tokens) {
    EXPECT_TRUE(tokens.ok()) << tokens.status().message();
    if (tokens.ok()) session_.insert(session_.end(), tokens->begin(), tokens->end());
    return *vocabulary_->detokenize(session_, SpecialTokens::kShow);
  }

  // A reply as the session holds it; `end` is the control token that ended it, or nothing.
  std::vector<Token> reply_tokens(const std::string& text, const std::string& end) {
    std::vector<Token> tokens = *vocabulary_->tokenize(text, {.add_bos = false});
    const std::vector<Token> last = *vocabulary_->tokenize(end, {.add_bos = false, .parse_special = true});
    tokens.insert(tokens.end(), last.begin(), last.end());
    session_.insert(session_.end(), tokens.begin(), tokens.end());
    return tokens;
  }

  std::string rendered(std::span<const ChatMessage> messages) {
    return render_messages(*vocabulary_, messages, true)->text();
  }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("ebb_conversation_test_" + std::to_string(getpid()) + ".gguf");
  std::unique_ptr<Vocabulary> vocabulary_;
  std::vector<Token> session_;
};

TEST_F(ConversationTest, the_first_message_brings_the_whole_template) {
  Conversation conversation(*vocabulary_, "Be brief.");
  const std::string text = held_with(conversation.ask("Hi"));
  EXPECT_EQ(text, rendered(conversation.messages()));
  ASSERT_EQ(conversation.messages().size(), 2U);
  EXPECT_EQ(conversation.messages()[0].role, "system");
}

TEST_F(ConversationTest, later_messages_add_exactly_what_the_session_does_not_hold) {
  Conversation conversation(*vocabulary_, "");
  held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer(reply_tokens("Hello!", "<|im_end|>"), "Hello!").ok());
  const std::string text = held_with(conversation.ask("How are you?"));
  EXPECT_EQ(text, rendered(conversation.messages()));
}

TEST_F(ConversationTest, a_reply_that_was_cut_short_is_ended_by_the_next_message) {
  Conversation conversation(*vocabulary_, "");
  held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer(reply_tokens("Hello, my", ""), "Hello, my").ok());
  const std::string text = held_with(conversation.ask("Go on"));
  EXPECT_EQ(text, rendered(conversation.messages()));
}

TEST_F(ConversationTest, a_reply_that_never_began_leaves_an_empty_turn) {
  Conversation conversation(*vocabulary_, "");
  held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer({}, "").ok());
  const std::string text = held_with(conversation.ask("Are you there?"));
  EXPECT_EQ(text, rendered(conversation.messages()));
}

TEST_F(ConversationTest, what_a_stop_string_hid_stays_in_the_session_and_the_template_goes_on_behind_it) {
  Conversation conversation(*vocabulary_, "");
  const std::string before = held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer(reply_tokens("Hello STOP", ""), "Hello ").ok());
  EXPECT_EQ(held_with(conversation.ask("Next")),
            before + "Hello STOP<|im_end|>\n<|im_start|>user\nNext<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ConversationTest, a_turn_that_ended_in_another_way_than_the_templates_is_ended_in_both) {
  Conversation conversation(*vocabulary_, "");
  const std::string before = held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer(reply_tokens("Hello", "<|endoftext|>"), "Hello").ok());
  EXPECT_EQ(held_with(conversation.ask("Next")),
            before + "Hello<|endoftext|><|im_end|>\n<|im_start|>user\nNext<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace ebb
