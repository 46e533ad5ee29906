#include "text/tokenizer_pieces.h"

#include <random>
#include <string>

#include "llama.h"

#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"
#include "text/vocabulary.h"

namespace ebb {
namespace {

std::unique_ptr<Vocabulary> vocabulary_of(const ToyHeader& gguf) {
  const ToyFile file(gguf.bytes());
  return Vocabulary::load(file.path()).value();
}

// Marks that lie in each other and overlap: the longest is looked for first, wherever it stands.
const ToyBpe kOverlapping = {.marks = {"<a>", "<a><b>", "b><c", "<c>"},
                             .user_defined = {"\n\n", "\n\n\n", "<t>", "> <t"}};
std::unique_ptr<Vocabulary> overlapping() { return vocabulary_of(toy_bpe(kOverlapping)); }
// By its name libllama takes white space behind each mark but three, all of which it looks up.
std::unique_ptr<Vocabulary> stripping() {
  ToyBpe toy = kOverlapping;
  toy.marks.insert(toy.marks.end(), {"<s>", "</s>", "<unk>", "<|endoftext|>"});
  return vocabulary_of(toy_bpe(toy).text("general.name", "phi-3"));
}

std::vector<Token> by_libllama(const Vocabulary& vocabulary, const std::string& text, bool special) {
  std::vector<llama_token> ids(text.size() + 16);
  const std::int32_t n = llama_tokenize(vocabulary.llama(), text.data(), static_cast<std::int32_t>(text.size()),
                                        ids.data(), static_cast<std::int32_t>(ids.size()), false, special);
  return {ids.begin(), ids.begin() + n};
}

std::string random_text(std::mt19937_64& random, std::initializer_list<const char*> words) {
  std::string text;
  for (int i = 0; i < 8000; ++i) text += words.begin()[random() % words.size()];
  return text;
}

TEST(TokenizerPieces, have_the_tokens_of_the_whole_text) {
  std::mt19937_64 random(7);
  const auto bpe = overlapping();
  const auto phi = stripping();
  const auto spm = vocabulary_of(toy_sentencepiece());
  ASSERT_TRUE(phi->control_tokens().find("<a>", 0)->strips_right);
  std::size_t n_pieces = 0;
  for (int i = 0; i < 10; ++i) {
    // Every second text has many marks that overlap.
    const std::string text =
        i % 2 == 0 ? random_text(random, {"<a>", "<b>", "<c>", "<t>", "<", ">", "hello", "he", " ", "\n", "\n\n", " <",
                                          "<a><", "b>", "<|im_end|>", "x", "<s>", "\xC3\xA9"})
                   : random_text(random, {"<t>", " ", "<t> <t>", "<a><b><c>"});
    for (const bool special : {false, true}) {
      const TokenizeOptions options = {.add_bos = false, .parse_special = special};
      EXPECT_EQ(bpe->tokenize(text, options).value(), by_libllama(*bpe, text, special)) << i;
      EXPECT_EQ(phi->tokenize(text, options).value(), by_libllama(*phi, text, special)) << i;
      EXPECT_EQ(spm->tokenize(text, options).value(), by_libllama(*spm, text, special)) << i;
    }
    n_pieces += cut_behind_tokens(text, TokenTexts(bpe->llama(), TokenTexts::Kinds::kBoth)).size();
  }
  EXPECT_GT(n_pieces, 10U * 10U);
}

TEST(TokenizerPieces, hold_few_tokens_each) {
  const auto bpe = overlapping();
  const auto phi = stripping();
  const TokenTexts both(bpe->llama(), TokenTexts::Kinds::kBoth);
  const TokenTexts both_of_phi(phi->llama(), TokenTexts::Kinds::kBoth);
  const TokenTexts user_defined(bpe->llama(), TokenTexts::Kinds::kUserDefined);
  const auto most = [](const std::string& text, const TokenTexts& tokens) {
    std::size_t n_most = 0;
    std::size_t n_bytes = 0;
    for (const std::string_view piece : cut_behind_tokens(text, tokens)) {
      std::size_t n = 0;
      for (auto match = tokens.find(piece, 0); match; match = tokens.find(piece, match->end)) ++n;
      n_most = std::max(n_most, n);
      n_bytes += piece.size();
    }
    EXPECT_EQ(n_bytes, text.size());
    return n_most;
  };
  std::string turns;
  std::string tags;
  for (int i = 0; i < 20000; ++i) {
    turns += "<|im_start|>user\nx<|im_end|>\n";
    tags += "<t>x";
  }
  EXPECT_LE(most(turns, both), 300U);
  EXPECT_LE(most(turns, both_of_phi), 300U);
  EXPECT_LE(most(tags, user_defined), 300U);
}

TEST(TokenizerPieces, leave_short_texts_whole) {
  const auto bpe = overlapping();
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "<a>";
  EXPECT_EQ(cut_behind_tokens(text, bpe->control_tokens()).size(), 1U);
  EXPECT_EQ(cut_behind_tokens("", bpe->control_tokens()).size(), 1U);
}

}  // namespace
}  // namespace ebb
