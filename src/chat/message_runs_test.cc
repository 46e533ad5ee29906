#include "chat/message_runs.h"

#include <gtest/gtest.h>

#include "chat/prompt_piece_test.h"
#include "chat/prompt_tokens.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

PromptPiece said(const std::string& text, std::size_t message) {
  return {.text = text, .from_user = true, .message = message};
}

// The text of each run, in front of its message.
std::vector<std::pair<int, std::string>> texts_of(const Vocabulary& vocabulary, const ChatPrompt& prompt) {
  const std::vector<Token> tokens = *tokenize_prompt(vocabulary, prompt, true);
  std::vector<std::pair<int, std::string>> texts;
  std::span<const Token> rest = tokens;
  for (const MessageRun& run : find_message_runs(vocabulary, prompt, tokens)) {
    const auto n = static_cast<std::size_t>(run.n_tokens);
    texts.emplace_back(run.message ? static_cast<int>(*run.message) : -1,
                       *vocabulary.detokenize(rest.first(n), SpecialTokens::kShow));
    rest = rest.subspan(n);
  }
  EXPECT_TRUE(rest.empty());
  return texts;
}

using Texts = std::vector<std::pair<int, std::string>>;

TEST(MessageRuns, begin_where_the_message_before_ends_its_turn) {
  const ToyFile file(toy_bpe().bytes());
  const auto vocabulary = *Vocabulary::load(file.path());
  const ChatPrompt prompt = {{ours("<|im_start|>system\n"), said("hello", 0),
                              ours("\ntools<|im_end|>\n<|im_start|>user\n"), said("one", 1), said(" two", 1),
                              ours("<|im_end|>\n<|im_start|>assistant\n")}};
  EXPECT_EQ(texts_of(*vocabulary, prompt),
            (Texts{{-1, "<|im_start|>system\n"},
                   {0, "hello\ntools<|im_end|>"},
                   {1, "\n<|im_start|>user\none two<|im_end|>\n<|im_start|>assistant\n"}}));
}

TEST(MessageRuns, without_such_an_end_begin_where_the_message_does) {
  const ToyFile file(toy_bpe().bytes());
  const auto vocabulary = *Vocabulary::load(file.path());
  const ChatPrompt prompt = {{ours("tools: "), said("one", 0), ours("\n"), said("two", 1), ours("\n")}};
  EXPECT_EQ(texts_of(*vocabulary, prompt), (Texts{{-1, "tools: "}, {0, "one\n"}, {1, "two\n"}}));
}

TEST(MessageRuns, what_a_vocabulary_puts_before_a_text_is_of_no_message) {
  const ToyFile file(toy_sentencepiece().bytes());
  const auto vocabulary = *Vocabulary::load(file.path());
  const ChatPrompt prompt = {{said("hello", 0), ours("\n"), said("hello", 1)}};
  EXPECT_EQ(texts_of(*vocabulary, prompt), (Texts{{-1, "<s>"}, {0, "hello\n"}, {1, "hello"}}));
}

TEST(MessageRuns, of_nothing_are_none) {
  const ToyFile file(toy_bpe().bytes());
  const auto vocabulary = *Vocabulary::load(file.path());
  EXPECT_TRUE(texts_of(*vocabulary, {}).empty());
}

// The text of the tokens of each.
std::vector<std::string> found_in(const Vocabulary& vocabulary, const ChatPrompt& prompt,
                                  const std::vector<MessageText>& texts) {
  const std::vector<Token> tokens = *tokenize_prompt(vocabulary, prompt, true);
  std::vector<std::string> found;
  for (const Span span : find_texts(vocabulary, prompt, tokens, texts)) {
    const auto own = std::span(tokens).subspan(span.begin.index(), static_cast<std::size_t>(span.n_tokens()));
    found.push_back(*vocabulary.detokenize(own, SpecialTokens::kShow));
  }
  return found;
}

TEST(MessageTexts, are_found_in_their_messages_each_behind_the_one_before) {
  const ToyFile file(toy_bpe().bytes());
  const auto vocabulary = *Vocabulary::load(file.path());
  const ChatPrompt prompt = {
      {ours("<|im_start|>"), said("one one", 0), ours("<|im_end|><|im_start|>"), said("one", 1), ours("<|im_end|>")}};
  EXPECT_EQ(found_in(*vocabulary, prompt,
                     {{.message = 1, .text = "one"}, {.message = 0, .text = " one\n"}, {.message = 0, .text = "one"}}),
            (std::vector<std::string>{"one", "one", "one"}));
  EXPECT_EQ(found_in(*vocabulary, prompt, {{.message = 0, .text = "two"}, {.message = 7, .text = "one"}, {}}),
            (std::vector<std::string>(3)));
  const std::vector<Token> tokens = *tokenize_prompt(*vocabulary, prompt, true);
  const std::vector<MessageText> both = {{.message = 0, .text = "one"}, {.message = 0, .text = "one"}};
  const std::vector<Span> spans = find_texts(*vocabulary, prompt, tokens, both);
  EXPECT_LT(spans[0].end, spans[1].end);
  EXPECT_LE(spans[0].end, spans[1].begin);
}

TEST(MessageTexts, are_found_as_json_writes_them) {
  const ToyFile file(toy_bpe().bytes());
  const auto vocabulary = *Vocabulary::load(file.path());
  const ChatPrompt prompt = {{said(R"({"text": "a \"b\"\n c"})", 0)}};
  EXPECT_EQ(found_in(*vocabulary, prompt, {{.message = 0, .text = "a \"b\"\n c"}}),
            std::vector<std::string>{R"(a \"b\"\n c)"});
}

}  // namespace
}  // namespace ebb
