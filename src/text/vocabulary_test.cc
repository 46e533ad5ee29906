#include "text/vocabulary.h"

#include <random>
#include <thread>

#include "llama.h"

#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"
#include "text/utf8_stream.h"

namespace ebb {
namespace {

using std::filesystem::path;

Result<std::unique_ptr<Vocabulary>> load(const ToyHeader& gguf) {
  const ToyFile file(gguf.bytes());
  return Vocabulary::load(file.path());
}
std::unique_ptr<Vocabulary> must_load(const ToyHeader& gguf) { return load(gguf).value(); }

std::vector<std::int32_t> ids(const std::vector<Token>& tokens) {
  std::vector<std::int32_t> values;
  for (const Token token : tokens) values.push_back(token.value());
  return values;
}
std::vector<std::int32_t> ids_of(const Vocabulary& vocabulary, std::string_view text, TokenizeOptions options = {}) {
  return ids(vocabulary.tokenize(text, options).value());
}

TEST(Vocabulary, knows_its_special_tokens) {
  const auto bpe = must_load(toy_bpe());
  EXPECT_EQ(bpe->n_tokens(), 261);
  EXPECT_EQ(bpe->bos(), Token(260));
  EXPECT_EQ(bpe->eos(), Token(259));
  EXPECT_EQ(bpe->eot(), Token(259));
  EXPECT_FALSE(bpe->adds_bos());
  EXPECT_TRUE(bpe->is_end_of_generation(Token(259)));
  EXPECT_FALSE(bpe->is_end_of_generation(Token(0)));
  EXPECT_FALSE(bpe->is_end_of_generation(Token(-1)));
  EXPECT_FALSE(bpe->is_end_of_generation(Token(261)));
  EXPECT_TRUE(bpe->contains(Token(260)));
  EXPECT_FALSE(bpe->contains(Token(261)));
  EXPECT_FALSE(bpe->contains(Token(-1)));

  const auto spm = must_load(toy_sentencepiece());
  EXPECT_EQ(spm->bos(), Token(1));
  EXPECT_EQ(spm->eos(), Token(2));
  EXPECT_TRUE(spm->adds_bos());
  EXPECT_FALSE(spm->chat_template().has_value());
}

TEST(Vocabulary, tokenizes_by_its_merges_and_gives_the_text_back) {
  const auto bpe = must_load(toy_bpe());
  EXPECT_EQ(ids_of(*bpe, "hello"), (std::vector<std::int32_t>{257, 'l', 'o'}));
  const std::string text = "hello, w\xC3\xB6rld \xE2\x82\xAC  \n\t x";
  EXPECT_EQ(bpe->detokenize(bpe->tokenize(text).value()).value(), text);

  const auto spm = must_load(toy_sentencepiece());
  EXPECT_EQ(spm->tokenize("hello").value().size(), 2U);  // <s> and one word
  EXPECT_EQ(spm->tokenize("hello", {.add_bos = false}).value().size(), 1U);
  for (const std::string spaced : {"hello", " hello", "  two", "x\ny", "\xF0\x9F\x98\x80"}) {
    EXPECT_EQ(spm->detokenize(spm->tokenize(spaced).value()).value(), spaced);
  }
}

TEST(Vocabulary, reads_marks_only_when_asked) {
  const auto bpe = must_load(toy_bpe());
  const std::string mark = "<|im_end|>";
  EXPECT_EQ(ids_of(*bpe, mark, {.parse_special = true}), std::vector<std::int32_t>{259});
  EXPECT_EQ(ids_of(*bpe, mark).size(), mark.size());
  EXPECT_EQ(bpe->piece(Token(259)).value(), "");
  EXPECT_EQ(bpe->piece(Token(259), SpecialTokens::kShow).value(), mark);
}

TEST(Vocabulary, gives_pieces_that_are_parts_of_characters) {
  const auto bpe = must_load(toy_bpe());
  EXPECT_EQ(bpe->piece(Token(0xE2)).value(), "\xE2");
  EXPECT_EQ(bpe->piece(Token(0)).value(), std::string(1, '\0'));
  EXPECT_EQ(bpe->piece(Token(257)).value(), "hel");
  const std::string word(1000, 'w');
  EXPECT_EQ(must_load(toy_bpe({.words = {word}}))->piece(Token(261)).value(), word);
}

TEST(Vocabulary, refuses_tokens_that_are_not_its_own) {
  const auto bpe = must_load(toy_bpe());
  for (const std::int32_t id : {-1, 261, -2147483647 - 1, 2147483647}) {
    EXPECT_EQ(bpe->piece(Token(id)).status().code(), Code::kInvalidArgument) << id;
    const std::vector<Token> tokens = {Token(1), Token(id)};
    EXPECT_EQ(bpe->detokenize(tokens).status().code(), Code::kInvalidArgument) << id;
  }
}

TEST(Vocabulary, takes_empty_text_nul_bytes_and_invalid_utf8) {
  for (const ToyHeader& gguf : {toy_bpe(), toy_sentencepiece()}) {
    const auto vocabulary = must_load(gguf);
    EXPECT_EQ(vocabulary->tokenize("", {.add_bos = false}).value().size(), 0U);
    const std::string nul("a\0b\0", 4);
    EXPECT_EQ(vocabulary->detokenize(vocabulary->tokenize(nul).value()).value(), nul);
    const std::string broken = "x\xFFy\xE2\x82";
    EXPECT_EQ(vocabulary->detokenize(vocabulary->tokenize(broken).value()).value(), to_valid_utf8(broken));
  }
}

TEST(Vocabulary, takes_very_long_text_of_one_kind) {
  // "default" goes through std::regex, which recurses once per character; "qwen2" does not.
  for (const std::string pre : {"default", "qwen2", "deepseek-llm", "poro-chat"}) {
    const auto bpe = must_load(toy_bpe({.pre = pre}));
    for (const std::string unit : {"a", " ", "\n", "7", "=", "a1!", "\xE4\xB8\xAD", "\xE2\x80\x94!"}) {
      std::string text;
      while (text.size() < 100000) text += unit;
      const auto tokens = bpe->tokenize(text);
      ASSERT_TRUE(tokens.ok()) << pre << unit;
      EXPECT_EQ(bpe->detokenize(*tokens).value(), text) << pre << unit;
    }
  }
  const auto spm = must_load(toy_sentencepiece());
  const std::string text(1000000, 'h');
  EXPECT_EQ(spm->detokenize(spm->tokenize(text).value()).value(), text);
  EXPECT_EQ(spm->tokenize(std::string(Vocabulary::kMaxTextBytes + 1, 'x')).status().code(), Code::kInvalidArgument);
}

TEST(Vocabulary, may_be_used_from_several_threads) {
  const auto bpe = must_load(toy_bpe());
  const std::string text = "hello hello <|im_end|> world";
  const auto expected = bpe->tokenize(text, {.parse_special = true}).value();
  std::vector<std::thread> threads;
  std::vector<int> n_equal(4);
  for (int& n : n_equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto tokens = bpe->tokenize(text, {.parse_special = true}).value();
        n += tokens == expected && bpe->detokenize(tokens, SpecialTokens::kShow).value() == text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_equal, std::vector<int>(4, 200));
}

TEST(Vocabulary, says_what_is_wrong_with_a_file) {
  EXPECT_EQ(Vocabulary::load("/no/such/file.gguf").status().code(), Code::kNotFound);
  EXPECT_EQ(Vocabulary::load(std::filesystem::temp_directory_path()).status().code(), Code::kIo);
  const ToyFile text("this is no GGUF file, and longer than a header");
  EXPECT_EQ(Vocabulary::load(text.path()).status().code(), Code::kDamaged);

  // These pass our own check; libllama's reason becomes the message.
  const auto no_merges = load(ToyHeader()
                                  .text("general.architecture", "qwen2")
                                  .text("tokenizer.ggml.model", "gpt2")
                                  .text("tokenizer.ggml.pre", "qwen2")
                                  .texts("tokenizer.ggml.tokens", {"a", "b"}));
  EXPECT_EQ(no_merges.status().code(), Code::kDamaged);
  EXPECT_NE(no_merges.status().message().find("merges"), std::string::npos) << no_merges.status().message();
  const auto unknown_pre = load(toy_bpe({.pre = "no-such-splitter"}));
  EXPECT_NE(unknown_pre.status().message().find("no-such-splitter"), std::string::npos);
  EXPECT_EQ(unknown_pre.status().message().find('\n'), std::string::npos);
}

TEST(Vocabulary, never_prints) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  (void)must_load(toy_bpe())->tokenize("hello");
  (void)load(toy_bpe({.pre = "no-such-splitter"}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Everything that a caller may do with a vocabulary that loaded.
void use(const Vocabulary& vocabulary) {
  (void)vocabulary.tokenize("hello \xE2\x82\xAC <|im_end|>\n  1234 \0x", {.add_bos = true, .parse_special = true});
  std::vector<Token> all;
  for (std::int32_t id = 0; id < vocabulary.n_tokens(); ++id) all.emplace_back(id);
  (void)vocabulary.detokenize(all, SpecialTokens::kShow);
  (void)vocabulary.detokenize(all);
  (void)vocabulary.is_end_of_generation(Token(0));
}

TEST(Vocabulary, survives_mutated_files) {
  std::mt19937 random(11);
  int n_loaded = 0;
  for (const std::string& whole : {toy_bpe().bytes(), toy_sentencepiece().bytes()}) {
    for (int round = 0; round < 1500; ++round) {
      std::string bytes = whole;
      for (auto n = 1 + random() % 4; n > 0; --n) {
        char& byte = bytes[random() % bytes.size()];
        byte = random() % 2 == 0 ? static_cast<char>(random()) : static_cast<char>(byte ^ (1 << random() % 8));
      }
      if (random() % 8 == 0) bytes.resize(random() % bytes.size());
      const ToyFile file(bytes);
      const auto vocabulary = Vocabulary::load(file.path());
      if (!vocabulary.ok()) continue;
      ++n_loaded;
      use(**vocabulary);
    }
  }
  EXPECT_GT(n_loaded, 300);  // or the mutations would test the reader of headers only
}

TEST(Vocabulary, survives_sick_sections) {
  const std::vector<std::int32_t> short_types = {1, 1};
  for (const ToyHeader& sick : {
           // A SentencePiece vocabulary without bytes, which cannot write "hello".
           ToyHeader()
               .text("general.architecture", "llama")
               .text("tokenizer.ggml.model", "llama")
               .texts("tokenizer.ggml.tokens", {"a", "b"}),
           // Fewer types and scores than tokens, and byte tokens that name no byte.
           ToyHeader()
               .text("general.architecture", "llama")
               .text("tokenizer.ggml.model", "llama")
               .texts("tokenizer.ggml.tokens", {"a", "b", "c"})
               .numbers("tokenizer.ggml.token_type", short_types),
           ToyHeader()
               .text("general.architecture", "llama")
               .text("tokenizer.ggml.model", "llama")
               .texts("tokenizer.ggml.tokens", {"a", "b", "c"})
               .numbers("tokenizer.ggml.token_type", {6, 6, 6}),
           ToyHeader()
               .text("general.architecture", "llama")
               .text("tokenizer.ggml.model", "llama")
               .texts("tokenizer.ggml.tokens", {"<0xZZ>", "<0x", "<0x0A>"})
               .numbers("tokenizer.ggml.token_type", {6, 99, -6}),
           // Special tokens from nowhere, with text that must begin and end with them.
           toy_bpe().flag("tokenizer.ggml.add_eos_token", true).number("tokenizer.ggml.unknown_token_id", 4000000000U),
           ToyHeader()
               .text("general.architecture", "llama")
               .text("tokenizer.ggml.model", "llama")
               .texts("tokenizer.ggml.tokens", {"a"})
               .flag("tokenizer.ggml.add_bos_token", true)
               .flag("tokenizer.ggml.add_eos_token", true)
               .number("tokenizer.ggml.bos_token_id", 77),
           // Merges that are none.
           ToyHeader()
               .text("general.architecture", "qwen2")
               .text("tokenizer.ggml.model", "gpt2")
               .text("tokenizer.ggml.pre", "qwen2")
               .texts("tokenizer.ggml.tokens", {"a", "", "\xFF\xFE"})
               .texts("tokenizer.ggml.merges", {"", " ", "a", "a  b", "x y z", std::string(100, ' ')}),
           // An architecture that nobody knows.
           ToyHeader()
               .text("general.architecture", "nobody")
               .text("tokenizer.ggml.model", "llama")
               .texts("tokenizer.ggml.tokens", {"a"}),
       }) {
    const auto vocabulary = load(sick);
    if (vocabulary.ok()) use(**vocabulary);
  }
}

// The project's own model, and one that the build machine may have.
path recall_model() { return path(EBB_SOURCE_DIR) / "models" / "ebb-recall.gguf"; }
path stories_model() { return path(EBB_SOURCE_DIR) / ".." / "shared" / "models" / "stories260K.gguf"; }

std::vector<std::int32_t> ids_of_libllama(const Vocabulary& vocabulary, const std::string& text, bool special) {
  std::vector<llama_token> tokens(text.size() + 16);
  const std::int32_t n =
      llama_tokenize(vocabulary.llama(), text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                     static_cast<std::int32_t>(tokens.size()), vocabulary.adds_bos(), special);
  tokens.resize(static_cast<std::size_t>(n));
  return tokens;
}

void expect_real_model_works(const path& file) {
  const auto vocabulary = Vocabulary::load(file).value();
  for (const std::string text :
       {"Once upon a time, there was a little girl.", "What is the code word? It's \"blue-42\"!\n\n  x == y;",
        "<|im_start|>user\nhello<|im_end|>\n", "na\xC3\xAFve \xF0\x9F\x98\x80 \xE4\xB8\xAD\xE6\x96\x87"}) {
    EXPECT_EQ(vocabulary->detokenize(vocabulary->tokenize(text).value(), SpecialTokens::kHide).value(), text);
    for (const bool special : {false, true}) {
      EXPECT_EQ(ids_of(*vocabulary, text, {.parse_special = special}), ids_of_libllama(*vocabulary, text, special));
    }
  }
}

TEST(Vocabulary, reads_the_bundled_model) {
  if (!std::filesystem::exists(recall_model())) GTEST_SKIP() << "no " << recall_model();
  expect_real_model_works(recall_model());
  const auto vocabulary = Vocabulary::load(recall_model()).value();
  const std::string turn = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n";
  const auto tokens = vocabulary->tokenize(turn, {.parse_special = true}).value();
  EXPECT_EQ(vocabulary->detokenize(tokens, SpecialTokens::kShow).value(), turn);
  EXPECT_LT(vocabulary->detokenize(tokens).value().size(), turn.size());
}

TEST(Vocabulary, reads_a_sentence_piece_model) {
  if (!std::filesystem::exists(stories_model())) GTEST_SKIP() << "no " << stories_model();
  expect_real_model_works(stories_model());
}

}  // namespace
}  // namespace ebb
