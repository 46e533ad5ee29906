#include "bench/document_request.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int32_t kBlockSize = 16;

DocumentCase a_case() {
  DocumentCase one{.text = "hello hello hello. The gate opens with 417. hello hello.\n"};
  one.probes = {{.text = "How does the gate open?", .answers = {"417"}, .facts = {"The gate opens with 417."}}};
  return one;
}

std::string text_of(const Vocabulary& vocabulary, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += *vocabulary.piece(token, SpecialTokens::kShow);
  return text;
}

class DocumentRequests : public ::testing::Test {
 protected:
  ToyFile file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = *Vocabulary::load(file_.path());
  DocumentCase case_ = a_case();
};

TEST_F(DocumentRequests, the_question_stands_where_it_is_put) {
  const auto text_at = [&](QuestionPlace place) {
    return text_of(*vocabulary_,
                   make_document_request(*vocabulary_, case_, case_.probes[0], place, kBlockSize)->tokens);
  };
  EXPECT_THAT(text_at(QuestionPlace::kLast), HasSubstr("hello.\nHow does the gate open?<|im_end|>"));
  EXPECT_THAT(text_at(QuestionPlace::kFirst), HasSubstr("user\nHow does the gate open?\nhello"));
  EXPECT_THAT(text_at(QuestionPlace::kNext), ::testing::Not(HasSubstr("417")));
  EXPECT_THAT(text_at(QuestionPlace::kTool), HasSubstr("Go on.<|im_end|>"));
  EXPECT_THAT(text_at(QuestionPlace::kTool), HasSubstr("tool\nHow does the gate open?<|im_end|>"));
}

// Whatever the request: what is needed are the blocks that hold a token of the fact, and what recall looks for names the gate.
TEST_F(DocumentRequests, the_needed_blocks_tell_the_fact) {
  for (const QuestionPlace place : {QuestionPlace::kLast, QuestionPlace::kFirst, QuestionPlace::kMiddle,
                                    QuestionPlace::kInstructed, QuestionPlace::kNext, QuestionPlace::kTool}) {
    const DocumentRequest request = *make_document_request(*vocabulary_, case_, case_.probes[0], place, kBlockSize);
    const std::vector<Token>& tokens = request.before.empty() ? request.tokens : request.before.front();
    std::string told;
    for (const std::string& name : request.needed) {
      ASSERT_TRUE(name.starts_with("turn1#"));
      const std::size_t begin = std::stoul(name.substr(6)) * kBlockSize;
      ASSERT_LT(begin, tokens.size());
      told += text_of(*vocabulary_,
                      std::span(tokens).subspan(begin, std::min<std::size_t>(kBlockSize, tokens.size() - begin)));
    }
    EXPECT_THAT(told, HasSubstr("The gate opens with 417."));
    EXPECT_LE(request.needed.size(), 3U);
    EXPECT_TRUE(
        std::ranges::any_of(request.cues, [](const Cue& cue) { return cue.text.find("gate") != std::string::npos; }));
  }
}

// Pieces of SentencePiece words begin with their spaces, which a text of one piece does not show.
TEST_F(DocumentRequests, facts_are_found_in_sentencepiece_words_too) {
  const ToyFile file(toy_sentencepiece().bytes());
  const std::unique_ptr<Vocabulary> vocabulary = *Vocabulary::load(file.path());
  DocumentCase one{.text = "he hello he hello\n"};
  one.probes = {{.text = "hell", .answers = {"o"}, .facts = {"hello he"}}};
  const Result<DocumentRequest> request =
      make_document_request(*vocabulary, one, one.probes[0], QuestionPlace::kLast, 64);
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_THAT(request->needed, ElementsAre("turn1#0"));
}

// A block is of the message that most of it is of.
TEST_F(DocumentRequests, what_was_said_in_messages_of_their_own_is_named_by_them) {
  case_.messages = {{.text = "hello hello hello.", .reply = "hello"},
                    {.text = "The gate opens with 417.", .reply = "hello"},
                    {.text = "hello hello.", .reply = "hello"}};
  const DocumentRequest request =
      *make_document_request(*vocabulary_, case_, case_.probes[0], QuestionPlace::kNext, kBlockSize);
  ASSERT_EQ(request.before.size(), 3U);
  ASSERT_FALSE(request.needed.empty());
  const std::size_t begin = request.before[0].size();
  for (const std::string& name : request.needed)
    EXPECT_THAT(name, ::testing::AnyOf(HasSubstr("turn1#"), HasSubstr("turn2#")));
  EXPECT_EQ(request.needed.back().substr(0, 6), "turn2#");
  EXPECT_LE(std::stoul(request.needed.back().substr(6)), (request.before[1].size() + begin % kBlockSize) / kBlockSize);
}

TEST_F(DocumentRequests, an_agent_reads_files_by_calls_and_is_asked_as_each_place_says) {
  case_.text = "hello hello. The gate opens with 417.\nhello hello.\n";
  case_.files = {{.name = "config.py", .text = "hello hello. The gate opens with 417.\n"},
                 {.name = "utils.go", .text = "hello hello.\n"}};
  const auto request_at = [&](QuestionPlace place) {
    return *make_document_request(*vocabulary_, case_, case_.probes[0], place, kBlockSize);
  };
  EXPECT_THAT(text_of(*vocabulary_, request_at(QuestionPlace::kLast).tokens),
              HasSubstr("user\nHow does the gate open?<|im_end|>"));
  EXPECT_THAT(text_of(*vocabulary_, request_at(QuestionPlace::kFirst).tokens),
              HasSubstr("user\nHow does the gate open? Read the files.<|im_end|>"));
  EXPECT_THAT(text_of(*vocabulary_, request_at(QuestionPlace::kTool).tokens),
              HasSubstr("tool\nHow does the gate open?<|im_end|>"));
  const DocumentRequest next = request_at(QuestionPlace::kNext);
  ASSERT_EQ(next.before.size(), 1U);
  EXPECT_THAT(text_of(*vocabulary_, next.before[0]), HasSubstr("tool\nhello hello. The gate opens with 417."));
  EXPECT_THAT(text_of(*vocabulary_, next.tokens), ::testing::Not(HasSubstr("417")));
  EXPECT_EQ(next.needed, request_at(QuestionPlace::kLast).needed);
  EXPECT_EQ(
      make_document_request(*vocabulary_, case_, case_.probes[0], QuestionPlace::kMiddle, kBlockSize).status().code(),
      Code::kInvalidArgument);
}

TEST_F(DocumentRequests, what_follows_a_reply_needs_blocks_of_the_first_message) {
  const DocumentRequest first =
      *make_document_request(*vocabulary_, case_, case_.probes[0], QuestionPlace::kLast, kBlockSize);
  const DocumentRequest next =
      *next_document_request(*vocabulary_, first, case_.probes[0], Before::kEndedReply, kBlockSize);
  EXPECT_EQ(next.needed, first.needed);
  EXPECT_LT(next.tokens.size(), first.tokens.size());
}

TEST_F(DocumentRequests, a_fact_that_is_not_told_is_an_error) {
  case_.probes[0].facts = {"The gate is shut."};
  EXPECT_EQ(
      make_document_request(*vocabulary_, case_, case_.probes[0], QuestionPlace::kLast, kBlockSize).status().code(),
      Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
