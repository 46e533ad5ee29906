// Vocabulary: text to tokens and back, and the chat templates that the model file carries.
//
// It stands on libllama's vocabulary (llama.h stays in the .cc), loads no weights, and does not know models, sessions
// or sampling. It promises: no token id from outside reaches libllama unchecked; any bytes may be tokenized (NUL,
// invalid UTF-8, nothing at all); a sick tokenizer section is a Status, never an abort (text/tokenizer_section.h
// checks, before libllama reads it, what libllama would abort on). The library logs nothing: loading the first
// Vocabulary silences libllama and ggml for the whole process.
//
// Thread rule: immutable once loaded; every const method may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/token_texts.h"

struct llama_model;
struct llama_vocab;

namespace ebb {

struct TokenizeOptions {
  // Puts the beginning-of-text token first, if this vocabulary wants one (adds_bos). Say no for text that continues.
  bool add_bos = true;
  // Reads "<|im_start|>" and the like as the control tokens they name. Say no for text of people, or they forge turns.
  bool parse_special = false;
};

// Whether control tokens appear in the text as they are written in the vocabulary, or not at all.
enum class SpecialTokens : std::uint8_t { kHide, kShow };

class Vocabulary {
 public:
  // Longest text that tokenize takes, in bytes: some 16 million tokens, for which libllama needs gigabytes.
  static constexpr std::size_t kMaxTextBytes = std::size_t{1} << 26;

  // Errors: kIo/kNotFound (no such file), kDamaged (not a GGUF, or a sick tokenizer section), kUnsupported (a tokenizer
  // that libllama does not know).
  [[nodiscard]] static Result<std::unique_ptr<Vocabulary>> load(const std::filesystem::path& gguf);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // Bytes that are not UTF-8 count as U+FFFD. The end-of-text token is never added.
  [[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text, TokenizeOptions options = {}) const;

  // The bytes that a token adds to a text: possibly part of a UTF-8 character, possibly none. kInvalidArgument when the
  // token is not of this vocabulary.
  [[nodiscard]] Result<std::string> piece(Token token, SpecialTokens special = SpecialTokens::kHide) const;
  // The bytes of a whole text: its pieces in a row, without the space that SentencePiece vocabularies put before a
  // text.
  [[nodiscard]] Result<std::string> detokenize(std::span<const Token> tokens,
                                               SpecialTokens special = SpecialTokens::kHide) const;

  [[nodiscard]] std::int32_t n_tokens() const { return n_tokens_; }
  [[nodiscard]] bool contains(Token token) const { return token.value() >= 0 && token.value() < n_tokens_; }
  [[nodiscard]] std::optional<Token> bos() const;
  [[nodiscard]] std::optional<Token> eos() const;
  // End of a turn; many vocabularies have none apart from eos.
  [[nodiscard]] std::optional<Token> eot() const;
  // False for tokens that are not of this vocabulary.
  [[nodiscard]] bool is_end_of_generation(Token token) const;
  // Whether a text begins with bos; false if there is none.
  [[nodiscard]] bool adds_bos() const;

  // The Jinja source that the file carries; chat/model_template.h renders it.
  [[nodiscard]] const std::optional<std::string>& chat_template() const { return chat_template_; }
  // The one for requests with tools, where the file has two.
  [[nodiscard]] const std::optional<std::string>& tool_use_template() const { return tool_use_template_; }

  // The texts that parse_special reads as control tokens.
  [[nodiscard]] const TokenTexts& control_tokens() const { return control_tokens_; }

  // For samplers and grammars of libllama, in .cc files that may include llama.h.
  [[nodiscard]] const llama_vocab* llama() const { return vocab_; }

 private:
  Vocabulary(llama_model* model, const llama_vocab* vocab);

  llama_model* model_;
  const llama_vocab* vocab_;
  std::int32_t n_tokens_;
  bool adds_space_prefix_ = false;
  // The pre-tokenizer runs on std::regex; see tokenize in the .cc.
  bool cuts_stretches_ = false;
  std::optional<std::string> chat_template_;
  std::optional<std::string> tool_use_template_;
  TokenTexts control_tokens_;
  // What is read before all else, with parse_special the latter; see tokenizer_pieces.h.
  TokenTexts user_defined_;
  TokenTexts read_first_;
};

}  // namespace ebb
