#include "chat/model_template.h"

#include <random>

#include "chat/prompt_tokens.h"
#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

Result<std::unique_ptr<Vocabulary>> load(const std::string& bytes) {
  const ToyFile file(bytes);
  return Vocabulary::load(file.path());
}
std::unique_ptr<Vocabulary> must_load(const ToyHeader& gguf) { return load(gguf.bytes()).value(); }

TEST(ModelTemplate, renders_what_the_file_carries) {
  const auto bpe = must_load(toy_bpe());
  const std::vector<ChatMessage> messages = {{"system", "Be brief."}, {"user", std::string(5000, 'u')}};
  EXPECT_EQ(render_messages(*bpe, messages, true)->text(),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n" + messages[1].content +
                "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_FALSE(render_messages(*bpe, messages, false)->text().ends_with("assistant\n"));
  EXPECT_EQ(render_messages(*bpe, {}, false)->text(), "");
}

TEST(ModelTemplate, says_why_it_cannot_render_a_chat) {
  const std::vector<ChatMessage> hello = {{"user", "hello"}};
  EXPECT_EQ(render_messages(*must_load(toy_sentencepiece()), hello, true).status().code(), Code::kUnsupported);
  const auto strange = must_load(toy_bpe({.chat_template = "{% something_new %}"}));
  EXPECT_EQ(render_messages(*strange, hello, true).status().code(), Code::kUnsupported);
}

TEST(ModelTemplate, survives_mutated_files) {
  std::mt19937 random(11);
  const std::vector<ChatMessage> messages = {{"user", "hello"}};
  const std::string whole = toy_bpe().bytes();
  int n_rendered = 0;
  for (int round = 0; round < 500; ++round) {
    std::string bytes = whole;
    for (auto n = 1 + random() % 4; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto vocabulary = load(bytes);
    if (!vocabulary.ok()) continue;
    const auto prompt = render_messages(**vocabulary, messages, true);
    if (!prompt.ok()) continue;
    ++n_rendered;
    (void)tokenize_prompt(**vocabulary, *prompt, true);
  }
  EXPECT_GT(n_rendered, 50);  // or the mutations would test the reader of headers only
}

}  // namespace
}  // namespace ebb
