// Tokenizer sections that are mutated or made of random keys, as a model file may carry them: each is refused, or is what
// libllama survives.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/toy_rounds.h"
#include "gguf/gguf_file.h"
#include "text/tokenizer_section.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

ToyHeader random_header(std::mt19937& random) {
  static const std::vector<std::string> kKeys = {
      "tokenizer.ggml.model",  "tokenizer.ggml.pre", "tokenizer.ggml.add_space_prefix",
      "tokenizer.ggml.scores", "split.count",        "general.architecture"};
  static const std::vector<std::string> kTexts = {"llama", "gpt2", "bert", "rwkv", "whitespace", "qwen2", ""};
  ToyHeader header;
  if (random() % 8 != 0) {
    std::vector<std::string> tokens;
    for (auto n = random() % 6; n > 0; --n)
      tokens.push_back(std::string(random() % 3, static_cast<char>('a' + random() % 26)));
    header.texts("tokenizer.ggml.tokens", tokens);
  }
  if (random() % 2 == 0) header.text("tokenizer.ggml.model", kTexts[random() % 3]);
  for (auto n = random() % 4; n > 0; --n) {
    const std::string& key = kKeys[random() % kKeys.size()];
    switch (random() % 5) {
      case 0: header.text(key, kTexts[random() % kTexts.size()]); break;
      case 1: header.number(key, static_cast<std::uint32_t>(random() % 3)); break;
      case 2: header.flag(key, random() % 2 == 0); break;
      case 3: header.texts(key, kTexts); break;
      default: header.scores(key, {0, 1});
    }
  }
  return header;
}

void expect_survivable(const GgufFile& file, const TokenizerSection& section) {
  EXPECT_TRUE(section.model == "llama" || section.model == "gpt2" || section.model == "bert") << section.model;
  const auto tokens = file.find_strings("tokenizer.ggml.tokens").value().value();
  EXPECT_EQ(section.n_tokens, static_cast<std::int64_t>(tokens.size()));
  const std::set<std::string_view> words(tokens.begin(), tokens.end());
  const auto n_empty = std::count(tokens.begin(), tokens.end(), std::string_view());
  EXPECT_EQ(words.size() + static_cast<std::size_t>(n_empty > 0 ? n_empty - 1 : 0), tokens.size());
}

TEST(TokenizerSectionRandom, is_refused_or_is_what_libllama_survives) {
  const std::vector<std::string> whole = {toy_bpe().bytes(), toy_sentencepiece().bytes()};
  int n_read = 0;
  for (RandomRounds rounds(4000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    std::string bytes = random() % 2 == 0 ? random_header(random).bytes() : whole[random() % 2];
    for (auto n = random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    const ToyFile toy(bytes);
    const Result<GgufFile> file = GgufFile::open(toy.path());
    if (!file.ok()) continue;
    const Result<TokenizerSection> section = read_tokenizer_section(*file);
    if (!section.ok()) {
      ASSERT_TRUE(section.status().code() == Code::kDamaged || section.status().code() == Code::kUnsupported);
      continue;
    }
    ++n_read;
    expect_survivable(*file, *section);
  }
  EXPECT_GT(n_read, 300);
}

}  // namespace
}  // namespace ebb
