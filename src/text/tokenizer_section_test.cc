#include "text/tokenizer_section.h"

#include "gguf/gguf_file.h"
#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

Result<TokenizerSection> read(const std::string& bytes) {
  const ToyFile file(bytes);
  EBB_ASSIGN_OR_RETURN(const GgufFile gguf, GgufFile::open(file.path()));
  return read_tokenizer_section(gguf);
}
Code code_of(const ToyHeader& gguf) { return read(gguf.bytes()).status().code(); }

ToyHeader words(const std::vector<std::string>& tokens) {
  return ToyHeader().text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", tokens);
}

TEST(TokenizerSection, says_what_it_read) {
  const auto bpe = read(toy_bpe().bytes()).value();
  EXPECT_EQ(bpe.model, "gpt2");
  EXPECT_EQ(bpe.pre_tokenizer, "qwen2");
  EXPECT_EQ(bpe.n_tokens, 261);
  EXPECT_FALSE(bpe.adds_space_prefix);
  EXPECT_TRUE(read(toy_sentencepiece().bytes()).value().adds_space_prefix);
  EXPECT_FALSE(
      read(toy_sentencepiece().flag("tokenizer.ggml.add_space_prefix", false).bytes()).value().adds_space_prefix);
}

TEST(TokenizerSection, refuses_every_cut) {
  const std::string whole = toy_bpe().text("last.key", "x").bytes();
  // The last bytes pad the header; all others are needed.
  for (std::size_t n = 0; n + 32 < whole.size(); n += n < 200 ? 1 : 37) {
    EXPECT_EQ(read(whole.substr(0, n)).status().code(), Code::kDamaged) << n;
  }
}

TEST(TokenizerSection, refuses_words_that_occur_twice_as_libllama_reads_them) {
  EXPECT_EQ(code_of(words({"a", "b"})), Code::kOk);
  EXPECT_EQ(code_of(words({"a", "b", "a"})), Code::kDamaged);
  EXPECT_EQ(code_of(words({std::string("a\0x", 3), std::string("a\0y", 3)})), Code::kDamaged);
  EXPECT_EQ(code_of(words({"", ""})), Code::kOk);
  EXPECT_EQ(code_of(words({"[EMPTY_1]", ""})), Code::kDamaged);
}

TEST(TokenizerSection, refuses_vocabularies_that_libllama_would_not_survive) {
  EXPECT_EQ(code_of(toy_bpe({.pre = "whitespace"})), Code::kUnsupported);
  EXPECT_EQ(code_of(toy_bpe({.pre = std::string("whitespace\0!", 12)})), Code::kUnsupported);
  EXPECT_EQ(code_of(words({std::string(5000, 'x')})), Code::kDamaged);
  std::vector<std::string> long_words;
  for (int i = 0; i < 20; ++i) long_words.push_back(std::string(4000, static_cast<char>('a' + i)));
  EXPECT_EQ(code_of(words(long_words)), Code::kDamaged);
}

TEST(TokenizerSection, refuses_other_tokenizers_and_parts) {
  EXPECT_EQ(code_of(ToyHeader().text("tokenizer.ggml.model", "rwkv").texts("tokenizer.ggml.tokens", {"a"})),
            Code::kUnsupported);
  EXPECT_EQ(code_of(ToyHeader().texts("tokenizer.ggml.tokens", {"a"})), Code::kDamaged);
  EXPECT_EQ(code_of(ToyHeader().text("tokenizer.ggml.model", "llama")), Code::kDamaged);
  EXPECT_EQ(code_of(words({})), Code::kDamaged);
  EXPECT_EQ(code_of(words({"a"}).number("split.count", 2)), Code::kUnsupported);
  EXPECT_EQ(code_of(words({"a"}).number("split.count", 256)), Code::kUnsupported);
  EXPECT_EQ(code_of(words({"a"}).number("split.count", 1)), Code::kOk);
  EXPECT_EQ(code_of(words({"a"}).text("split.count", "2")), Code::kDamaged);
  EXPECT_EQ(code_of(ToyHeader().text("tokenizer.ggml.model", "llama").numbers("tokenizer.ggml.tokens", {1})),
            Code::kDamaged);
}

// Writes `value` over the 8 bytes that follow the text `after`, `skip` bytes further on.
std::string with_count(std::string bytes, const std::string& after, std::size_t skip, std::uint64_t value) {
  bytes.replace(bytes.find(after) + after.size() + skip, sizeof value, reinterpret_cast<const char*>(&value),
                sizeof value);
  return bytes;
}

TEST(TokenizerSection, is_not_impressed_by_huge_counts) {
  const std::string bytes = toy_sentencepiece().bytes();
  for (const std::uint64_t huge : {std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    // Behind an array's key come its type and the type of its elements, then their count.
    EXPECT_EQ(read(with_count(bytes, "tokenizer.ggml.tokens", 8, huge)).status().code(), Code::kDamaged);
    EXPECT_EQ(read(with_count(bytes, "tokenizer.ggml.scores", 8, huge)).status().code(), Code::kDamaged);
    EXPECT_EQ(read(with_count(bytes, "general.architecture", 4, huge)).status().code(), Code::kDamaged);
    EXPECT_EQ(read(with_count(bytes, "GGUF", 12, huge)).status().code(), Code::kDamaged);  // keys
  }
}

}  // namespace
}  // namespace ebb
