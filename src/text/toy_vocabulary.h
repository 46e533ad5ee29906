// Small vocabularies as GGUF files, for tests only: written key by key, so that a test can also write them wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace ebb {

// A GGUF header under construction; no tensors.
class ToyGguf {
 public:
  ToyGguf& text(std::string_view key, std::string_view value) {
    put_key(key, 8);
    put_text(value);
    return *this;
  }
  ToyGguf& number(std::string_view key, std::uint32_t value) {
    put_key(key, 4);
    put(value);
    return *this;
  }
  ToyGguf& flag(std::string_view key, bool value) {
    put_key(key, 7);
    put(static_cast<std::uint8_t>(value));
    return *this;
  }
  ToyGguf& texts(std::string_view key, const std::vector<std::string>& values) {
    put_array(key, 8, values.size());
    for (const std::string& value : values) put_text(value);
    return *this;
  }
  ToyGguf& numbers(std::string_view key, const std::vector<std::int32_t>& values) {
    put_array(key, 5, values.size());
    for (const std::int32_t value : values) put(value);
    return *this;
  }
  ToyGguf& scores(std::string_view key, const std::vector<float>& values) {
    put_array(key, 6, values.size());
    for (const float value : values) put(value);
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    ToyGguf head;
    head.body_ = "GGUF";
    head.put(std::uint32_t{3});
    head.put(std::uint64_t{0});
    head.put(n_keys_);
    std::string all = head.body_ + body_;
    all.resize((all.size() + 31) / 32 * 32);  // the (empty) tensor data begins aligned
    return all;
  }

 private:
  template <class T>
  void put(T value) {
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view value) {
    put(static_cast<std::uint64_t>(value.size()));
    body_ += value;
  }
  void put_key(std::string_view key, std::uint32_t type) {
    put_text(key);
    put(type);
    ++n_keys_;
  }
  void put_array(std::string_view key, std::uint32_t type, std::size_t n) {
    put_key(key, 9);
    put(type);
    put(static_cast<std::uint64_t>(n));
  }

  std::string body_;
  std::uint64_t n_keys_ = 0;
};

// The letter that byte-level BPE writes for a byte, in UTF-8.
inline std::string bpe_letter(unsigned byte) {
  const auto printable = [](unsigned b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  unsigned letter = byte;
  if (!printable(byte)) {
    letter = 256;
    for (unsigned b = 0; b < byte; ++b) letter += printable(b) ? 0 : 1;
  }
  if (letter < 0x80) return std::string(1, static_cast<char>(letter));
  return {static_cast<char>(0xC0 | (letter >> 6)), static_cast<char>(0x80 | (letter & 0x3F))};
}

struct ToyBpe {
  std::string pre = "qwen2";
  std::vector<std::string> words = {};  // beyond the bytes, marks and merges
  std::string chat_template =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
};

// Ids: 0..255 bytes, 256 "he", 257 "hel", 258 <|im_start|>, 259 <|im_end|> (eos), 260 <|pad|> (bos, not added), words.
inline ToyGguf toy_bpe(const ToyBpe& toy = {}) {
  std::vector<std::string> tokens;
  for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back(bpe_letter(byte));
  tokens.insert(tokens.end(), {"he", "hel", "<|im_start|>", "<|im_end|>", "<|pad|>"});
  std::vector<std::int32_t> types(tokens.size(), 1);
  for (const std::size_t mark : {258U, 259U, 260U}) types[mark] = 3;
  tokens.insert(tokens.end(), toy.words.begin(), toy.words.end());
  types.resize(tokens.size(), 1);
  ToyGguf gguf;
  gguf.text("general.architecture", "qwen2").text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", toy.pre);
  gguf.texts("tokenizer.ggml.tokens", tokens).numbers("tokenizer.ggml.token_type", types);
  gguf.texts("tokenizer.ggml.merges", {"h e", "he l"});
  gguf.number("tokenizer.ggml.bos_token_id", 260).number("tokenizer.ggml.eos_token_id", 259);
  gguf.flag("tokenizer.ggml.add_bos_token", false).text("tokenizer.chat_template", toy.chat_template);
  return gguf;
}

// Ids: 0 <unk>, 1 <s> (added), 2 </s>, 3..258 bytes, then the words.
inline ToyGguf toy_sentencepiece(const std::vector<std::string>& words = {"\u2581", "h", "e", "l", "o", "he", "ll",
                                                                          "\u2581he", "llo", "\u2581hello"}) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {2, 3, 3};
  for (unsigned byte = 0; byte < 256; ++byte) {
    tokens.push_back(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">");
    types.push_back(6);
  }
  tokens.insert(tokens.end(), words.begin(), words.end());
  types.resize(tokens.size(), 1);
  std::vector<float> scores;
  for (std::size_t i = 0; i < tokens.size(); ++i) scores.push_back(static_cast<float>(tokens[i].size()));
  ToyGguf gguf;
  gguf.text("general.architecture", "llama").text("tokenizer.ggml.model", "llama");
  gguf.texts("tokenizer.ggml.tokens", tokens).numbers("tokenizer.ggml.token_type", types);
  gguf.scores("tokenizer.ggml.scores", scores);
  gguf.number("tokenizer.ggml.bos_token_id", 1).number("tokenizer.ggml.eos_token_id", 2);
  return gguf;
}

// Removes its file when it goes.
class ToyFile {
 public:
  explicit ToyFile(const std::string& bytes) {
    static int n_files = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("ebb-toy-" + std::to_string(getpid()) + "-" + std::to_string(n_files++) + ".gguf");
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~ToyFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ToyFile(const ToyFile&) = delete;
  ToyFile& operator=(const ToyFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ebb
