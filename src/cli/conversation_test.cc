#include "cli/conversation.h"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

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

  std::vector<Token> reply_tokens(const std::string& text, bool ended) {
    std::vector<Token> tokens = *vocabulary_->tokenize(text, {.add_bos = false});
    if (ended) tokens.push_back(vocabulary_->eot().value_or(*vocabulary_->eos()));
    session_.insert(session_.end(), tokens.begin(), tokens.end());
    return tokens;
  }

  std::string rendered(std::span<const ChatMessage> messages) { return *vocabulary_->render_chat(messages, true); }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("ebb_conversation_test_" + std::to_string(getpid()) + ".gguf");
  std::unique_ptr<Vocabulary> vocabulary_;
  std::vector<Token> session_;
};

TEST_F(ConversationTest, TheFirstMessageBringsTheWholeTemplate) {
  Conversation conversation(*vocabulary_, "Be brief.");
  EXPECT_EQ(held_with(conversation.ask("Hi")), rendered(conversation.messages()));
  ASSERT_EQ(conversation.messages().size(), 2U);
  EXPECT_EQ(conversation.messages()[0].role, "system");
}

TEST_F(ConversationTest, LaterMessagesAddExactlyWhatTheSessionDoesNotHold) {
  Conversation conversation(*vocabulary_, "");
  held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer(reply_tokens("Hello!", true), "Hello!").ok());
  EXPECT_EQ(held_with(conversation.ask("How are you?")), rendered(conversation.messages()));
}

TEST_F(ConversationTest, AReplyThatWasCutShortIsEndedByTheNextMessage) {
  Conversation conversation(*vocabulary_, "");
  held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer(reply_tokens("Hello, my", false), "Hello, my").ok());
  EXPECT_EQ(held_with(conversation.ask("Go on")), rendered(conversation.messages()));
}

TEST_F(ConversationTest, AReplyThatNeverBeganLeavesAnEmptyTurn) {
  Conversation conversation(*vocabulary_, "");
  held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer({}, "").ok());
  EXPECT_EQ(held_with(conversation.ask("Are you there?")), rendered(conversation.messages()));
}

TEST_F(ConversationTest, WhatAStopStringHidStaysInTheSessionAndTheTemplateGoesOnBehindIt) {
  Conversation conversation(*vocabulary_, "");
  held_with(conversation.ask("Hi"));
  ASSERT_TRUE(conversation.answer(reply_tokens("Hello STOP", false), "Hello ").ok());
  const std::string text = held_with(conversation.ask("Next"));
  const std::string end = *vocabulary_->piece(vocabulary_->eot().value_or(*vocabulary_->eos()), SpecialTokens::kShow);
  EXPECT_NE(text.find("Hello STOP" + end), std::string::npos) << text;
  EXPECT_NE(text.find("Next"), std::string::npos) << text;
}

}  // namespace
}  // namespace ebb
