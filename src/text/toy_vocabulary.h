// Small vocabularies as GGUF files, for tests only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/toy_header.h"

namespace ebb {

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
  std::vector<std::string> words = {};         // beyond the bytes, marks and merges
  std::vector<std::string> marks = {};         // control tokens behind the words
  std::vector<std::string> user_defined = {};  // behind those
  std::string chat_template =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
};

// Ids: 0..255 bytes, 256 "he", 257 "hel", 258 <|im_start|>, 259 <|im_end|> (eos), 260 <|pad|> (bos, not added), words.
inline ToyHeader toy_bpe(const ToyBpe& toy = {}) {
  std::vector<std::string> tokens;
  for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back(bpe_letter(byte));
  tokens.insert(tokens.end(), {"he", "hel", "<|im_start|>", "<|im_end|>", "<|pad|>"});
  std::vector<std::int32_t> types(tokens.size(), 1);
  for (const std::size_t mark : {258U, 259U, 260U}) types[mark] = 3;
  tokens.insert(tokens.end(), toy.words.begin(), toy.words.end());
  types.resize(tokens.size(), 1);
  tokens.insert(tokens.end(), toy.marks.begin(), toy.marks.end());
  types.resize(tokens.size(), 3);
  tokens.insert(tokens.end(), toy.user_defined.begin(), toy.user_defined.end());
  types.resize(tokens.size(), 4);
  ToyHeader gguf;
  gguf.text("general.architecture", "qwen2").text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", toy.pre);
  gguf.texts("tokenizer.ggml.tokens", tokens).numbers("tokenizer.ggml.token_type", types);
  gguf.texts("tokenizer.ggml.merges", {"h e", "he l"});
  gguf.number("tokenizer.ggml.bos_token_id", 260).number("tokenizer.ggml.eos_token_id", 259);
  gguf.flag("tokenizer.ggml.add_bos_token", false).text("tokenizer.chat_template", toy.chat_template);
  return gguf;
}

// Ids: 0 <unk>, 1 <s> (added), 2 </s>, 3..258 bytes, then the words.
inline ToyHeader toy_sentencepiece(const std::vector<std::string>& words = {"\u2581", "h", "e", "l", "o", "he", "ll",
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
  ToyHeader gguf;
  gguf.text("general.architecture", "llama").text("tokenizer.ggml.model", "llama");
  gguf.texts("tokenizer.ggml.tokens", tokens).numbers("tokenizer.ggml.token_type", types);
  gguf.scores("tokenizer.ggml.scores", scores);
  gguf.number("tokenizer.ggml.bos_token_id", 1).number("tokenizer.ggml.eos_token_id", 2);
  return gguf;
}

}  // namespace ebb
