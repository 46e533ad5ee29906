#include "engine/text_stream.h"

#include <random>

#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

constexpr std::int32_t kStart = 258;
constexpr std::int32_t kEnd = 259;

class TextStreamTest : public testing::Test {
 protected:
  [[nodiscard]] TextStream make(std::vector<std::string> stop_strings = {},
                                SpecialTokens special = SpecialTokens::kHide) const {
    return TextStream::create(*vocabulary_, {.stop_strings = std::move(stop_strings), .special = special}).value();
  }
  [[nodiscard]] std::vector<Token> tokens_of(std::string_view text) const {
    std::vector<Token> tokens;
    for (const char byte : text) tokens.emplace_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  // All text of the pushes, while the stream goes on.
  static std::string push_all(TextStream& stream, const std::vector<Token>& tokens) {
    std::string text;
    for (const Token token : tokens) text += stream.push(token).value().text;
    return text;
  }

  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = Vocabulary::load(file_.path()).value();
};

TEST_F(TextStreamTest, shows_whole_characters_only) {
  TextStream stream = make();
  EXPECT_EQ(stream.push(Token(0xE2)).value().text, "");
  EXPECT_EQ(stream.push(Token(0x82)).value().text, "");
  EXPECT_EQ(stream.push(Token(0xAC)).value().text, "\xE2\x82\xAC");
  EXPECT_EQ(stream.push(Token(257)).value().text, "hel");
  EXPECT_FALSE(stream.finished());
}

TEST_F(TextStreamTest, ends_at_the_token_that_ends_the_generation) {
  TextStream stream = make({"stop"});
  EXPECT_EQ(push_all(stream, tokens_of("yes, st")), "yes, ");
  const TextDelta last = stream.push(Token(kEnd)).value();
  EXPECT_EQ(last.text, "st");
  EXPECT_EQ(last.finished, FinishReason::kEndOfGeneration);
  const TextDelta after = stream.push(Token('x')).value();
  EXPECT_EQ(after.text, "");
  EXPECT_EQ(after.finished, FinishReason::kEndOfGeneration);
}

TEST_F(TextStreamTest, shows_control_tokens_when_asked) {
  TextStream hidden = make();
  EXPECT_EQ(hidden.push(Token(kStart)).value().text, "");
  TextStream marked = TextStream::create(*vocabulary_, {.marks = {Token(kStart)}}).value();
  EXPECT_EQ(marked.push(Token(kStart)).value().text, "<|im_start|>");
  EXPECT_EQ(marked.push(Token(kEnd)).value().text, "");
  TextStream shown = make({}, SpecialTokens::kShow);
  EXPECT_EQ(shown.push(Token(kStart)).value().text, "<|im_start|>");
  const TextDelta last = shown.push(Token(kEnd)).value();
  EXPECT_EQ(last.text, "<|im_end|>");
  EXPECT_EQ(last.finished, FinishReason::kEndOfGeneration);
}

TEST_F(TextStreamTest, stops_at_a_stop_string_across_tokens) {
  TextStream stream = make({"\nUser:", "###"});
  EXPECT_EQ(push_all(stream, tokens_of("fine.\nUser")), "fine.");
  const TextDelta last = stream.push(Token(':')).value();
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(last.finished, FinishReason::kStopString);
  EXPECT_EQ(stream.finished(), FinishReason::kStopString);
  EXPECT_EQ(stream.finish(FinishReason::kLength).finished, FinishReason::kStopString);
}

TEST_F(TextStreamTest, stops_inside_a_character_string_too) {
  TextStream stream = make({"\xE2\x82\xAC"});
  EXPECT_EQ(push_all(stream, tokens_of("1 \xE2\x82\xAC 2")), "1 ");
  EXPECT_EQ(stream.finished(), FinishReason::kStopString);
}

TEST_F(TextStreamTest, gives_out_what_was_held_back_when_the_caller_ends) {
  TextStream stream = make({"stop"});
  EXPECT_EQ(push_all(stream, tokens_of("ab sto")), "ab ");
  const TextDelta last = stream.finish(FinishReason::kLength);
  EXPECT_EQ(last.text, "sto");
  EXPECT_EQ(last.finished, FinishReason::kLength);
  EXPECT_EQ(stream.finish(FinishReason::kCancelled).text, "");

  TextStream cut = make();
  EXPECT_EQ(push_all(cut, tokens_of("a\xE2\x82")), "a");
  EXPECT_EQ(cut.finish(FinishReason::kCancelled).text, "\xEF\xBF\xBD");

  TextStream waiting = make({"ab", "abc"});
  EXPECT_EQ(push_all(waiting, tokens_of("xab")), "x");
  const TextDelta stopped = waiting.finish(FinishReason::kLength);
  EXPECT_EQ(stopped.text, "");
  EXPECT_EQ(stopped.finished, FinishReason::kStopString);
}

TEST_F(TextStreamTest, refuses_foreign_tokens_and_goes_on) {
  TextStream stream = make();
  EXPECT_EQ(stream.push(Token(-1)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(stream.push(Token(261)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(stream.push(Token('x')).value().text, "x");
  EXPECT_EQ(TextStream::create(*vocabulary_, {.stop_strings = {""}}).status().code(), Code::kInvalidArgument);
}

TEST_F(TextStreamTest, shows_random_tokens_as_their_whole_text_would) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<Token> tokens;
    for (int i = 0; i < 40; ++i) tokens.emplace_back(static_cast<std::int32_t>(random() % 259));
    TextStream stream = make();
    std::string text = push_all(stream, tokens);
    text += stream.finish(FinishReason::kLength).text;
    EXPECT_EQ(text, to_valid_utf8(vocabulary_->detokenize(tokens).value()));
  }
}

TEST_F(TextStreamTest, names_its_reasons) {
  EXPECT_EQ(finish_reason_name(FinishReason::kStopString), "stop string");
  EXPECT_EQ(finish_reason_name(FinishReason::kLength), "length");
}

TEST_F(TextStreamTest, tells_the_stop_string_that_ended_the_text) {
  TextStream stream = make({"zz", "b"});
  EXPECT_EQ(push_all(stream, tokens_of("a")), "a");
  EXPECT_EQ(stream.stop_string(), "");
  EXPECT_EQ(push_all(stream, tokens_of("ba")), "");
  EXPECT_EQ(stream.stop_string(), "b");
}

}  // namespace
}  // namespace ebb
