#include "text/vocabulary.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "llama.h"

#include "gguf/gguf_file.h"
#include "text/libllama.h"
#include "text/tokenizer_pieces.h"
#include "text/tokenizer_section.h"
#include "text/utf8_stream.h"

namespace ebb {
namespace {

// Pre-tokenizers for which libllama has code of its own. The others go through std::regex, which recurses once per
// character of a match.
constexpr std::array<std::string_view, 8> kLinearPreTokenizers = {
    "llama3", "llama-v3", "llama-bpe", "qwen2", "qwen35", "gpt-2", "smaug-bpe", "deepseek-r1-qwen",
};
Status append_tokens(const llama_vocab* vocab, std::string_view text, bool parse_special, std::vector<Token>& tokens) {
  const auto n_bytes = static_cast<std::int32_t>(text.size());
  std::vector<llama_token> ids(text.size() + 16);
  std::int32_t n = llama_tokenize(vocab, text.data(), n_bytes, ids.data(), static_cast<std::int32_t>(ids.size()), false,
                                  parse_special);
  if (n < 0 && n != std::numeric_limits<std::int32_t>::min()) {  // SentencePiece may need three bytes for a space
    ids.resize(static_cast<std::size_t>(-n));
    n = llama_tokenize(vocab, text.data(), n_bytes, ids.data(), -n, false, parse_special);
  }
  if (n < 0) return error(Code::kInvalidArgument, "a text of {} bytes makes more tokens than can be counted", n_bytes);
  tokens.reserve(tokens.size() + static_cast<std::size_t>(n));
  for (std::int32_t i = 0; i < n; ++i) tokens.emplace_back(ids[static_cast<std::size_t>(i)]);
  return {};
}

std::optional<Token> optional_token(llama_token id) {
  if (id == LLAMA_TOKEN_NULL) return std::nullopt;
  return Token(id);
}

}  // namespace

Result<std::unique_ptr<Vocabulary>> Vocabulary::load(const std::filesystem::path& gguf) {
  EBB_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(gguf));
  EBB_ASSIGN_OR_RETURN(const TokenizerSection section, read_tokenizer_section(file));
  start_libllama();
  (void)take_libllama_errors();

  std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  params.devices = no_devices.data();
  llama_model* model = nullptr;
  try {
    model = llama_model_load_from_file(gguf.string().c_str(), params);
  } catch (const std::exception& failure) {
    return error(Code::kDamaged, "{}: libllama cannot read the vocabulary: {}", gguf.filename().string(),
                 failure.what());
  }
  if (model == nullptr) {
    return error(Code::kDamaged, "{}: libllama cannot read the vocabulary: {}", gguf.filename().string(),
                 take_libllama_errors());
  }
  const llama_vocab* vocab = llama_model_get_vocab(model);
  std::unique_ptr<Vocabulary> result(new Vocabulary(model, vocab));
  if (result->n_tokens_ != section.n_tokens) {
    return error(Code::kDamaged, "{}: {} tokens were checked, but libllama read {}; did the file change meanwhile?",
                 gguf.filename().string(), section.n_tokens, result->n_tokens_);
  }
  result->adds_space_prefix_ = section.adds_space_prefix;
  result->cuts_stretches_ =
      section.model == "gpt2" && std::find(kLinearPreTokenizers.begin(), kLinearPreTokenizers.end(),
                                           section.pre_tokenizer) == kLinearPreTokenizers.end();
  return result;
}

Vocabulary::Vocabulary(llama_model* model, const llama_vocab* vocab)
    : model_(model),
      vocab_(vocab),
      n_tokens_(llama_vocab_n_tokens(vocab)),
      control_tokens_(vocab, TokenTexts::Kinds::kControl),
      user_defined_(vocab, TokenTexts::Kinds::kUserDefined),
      read_first_(vocab, TokenTexts::Kinds::kBoth) {
  if (const char* source = llama_model_chat_template(model, nullptr); source != nullptr) chat_template_ = source;
  if (const char* source = llama_model_chat_template(model, "tool_use"); source != nullptr) tool_use_template_ = source;
}

Vocabulary::~Vocabulary() { llama_model_free(model_); }

Result<std::vector<Token>> Vocabulary::tokenize(std::string_view text, TokenizeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    return error(Code::kInvalidArgument, "the text has {} bytes; at most {} are taken at once", text.size(),
                 kMaxTextBytes);
  }
  std::string mended;
  if (!is_valid_utf8(text)) text = mended = to_valid_utf8(text);

  std::vector<Token> tokens;
  if (options.add_bos && adds_bos()) tokens.push_back(*bos());
  if (text.empty()) return tokens;
  try {
    for (const std::string_view part : cut_behind_tokens(text, options.parse_special ? read_first_ : user_defined_)) {
      const auto pieces = cuts_stretches_ ? cut_stretches(part) : std::vector<std::string_view>{part};
      for (const std::string_view piece : pieces) {
        EBB_RETURN_IF_ERROR(append_tokens(vocab_, piece, options.parse_special, tokens));
      }
    }
  } catch (const std::exception& failure) {  // e.g. SentencePiece without tokens for single bytes
    return error(Code::kUnsupported, "the vocabulary has no tokens for this text ({})", failure.what());
  }
  return tokens;
}

Result<std::string> Vocabulary::piece(Token token, SpecialTokens special) const {
  if (!contains(token)) {
    return error(Code::kInvalidArgument, "token {} is not one of the vocabulary's {}", token.value(), n_tokens_);
  }
  const bool show = special == SpecialTokens::kShow;
  std::string bytes(32, '\0');
  try {
    std::int32_t n =
        llama_token_to_piece(vocab_, token.value(), bytes.data(), static_cast<std::int32_t>(bytes.size()), 0, show);
    if (n < 0) {
      bytes.resize(static_cast<std::size_t>(-n));
      n = llama_token_to_piece(vocab_, token.value(), bytes.data(), -n, 0, show);
    }
    bytes.resize(static_cast<std::size_t>(std::max(n, 0)));
  } catch (const std::exception& failure) {
    return error(Code::kDamaged, "token {} has no text ({})", token.value(), failure.what());
  }
  return bytes;
}

Result<std::string> Vocabulary::detokenize(std::span<const Token> tokens, SpecialTokens special) const {
  std::string text;
  for (const Token token : tokens) {
    EBB_ASSIGN_OR_RETURN(const std::string bytes, piece(token, special));
    text += bytes;
  }
  if (adds_space_prefix_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::optional<Token> Vocabulary::bos() const { return optional_token(llama_vocab_bos(vocab_)); }
std::optional<Token> Vocabulary::eos() const { return optional_token(llama_vocab_eos(vocab_)); }
std::optional<Token> Vocabulary::eot() const { return optional_token(llama_vocab_eot(vocab_)); }

bool Vocabulary::is_end_of_generation(Token token) const {
  return contains(token) && llama_vocab_is_eog(vocab_, token.value());
}

bool Vocabulary::adds_bos() const { return llama_vocab_get_add_bos(vocab_) && bos().has_value(); }

}  // namespace ebb
