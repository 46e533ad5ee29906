#include "text/tokenizer_section.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "gguf/gguf_file.h"

namespace ebb {
namespace {

// libllama's grammars recurse once per character of a token.
constexpr std::size_t kMaxTokenBytes = 4096;
// libllama writes a token of n bytes that are not in the byte alphabet as up to n*n bytes. 150000 tokens of 10 bytes add
// up to 2^24.
constexpr std::size_t kMaxSquaredTokenBytes = std::size_t{1} << 28;

// These pass "gpt2" and then break libllama: it stops at the first run of spaces, or its expression backtracks without
// end.
constexpr std::array<std::string_view, 2> kBrokenPreTokenizers = {"whitespace", "exaone-moe"};

constexpr std::array<std::string_view, 3> kModels = {"llama", "gpt2", "bert"};

template <std::size_t n>
bool is_one_of(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_names(const TokenizerSection& section, const std::string& file) {
  if (section.model.empty()) {
    return error(Code::kDamaged, "{}: no tokenizer.ggml.model; the file carries no vocabulary", file);
  }
  if (!is_one_of(section.model, kModels)) {
    return error(Code::kUnsupported,
                 "{}: tokenizer '{}' is not served; 'llama' (SentencePiece), 'gpt2' (BPE) and 'bert' (WordPiece) are",
                 file, printable(section.model));
  }
  if (is_one_of(section.pre_tokenizer, kBrokenPreTokenizers)) {
    return error(Code::kUnsupported, "{}: pre-tokenizer '{}' is not served", file, section.pre_tokenizer);
  }
  return {};
}

Status check_tokens(const std::vector<std::string_view>& tokens, const std::string& file) {
  std::unordered_set<std::string> seen;
  seen.reserve(tokens.size());
  std::size_t squared_bytes = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].size() > kMaxTokenBytes) {
      return error(Code::kDamaged, "{}: token {} has {} bytes (at most {})", file, i, tokens[i].size(), kMaxTokenBytes);
    }
    squared_bytes += tokens[i].size() * tokens[i].size();
    // libllama reads words up to their first NUL, and gives empty ones this name.
    std::string word(tokens[i].substr(0, tokens[i].find('\0')));
    if (word.empty()) word = fmt::format("[EMPTY_{}]", i);
    if (!seen.insert(std::move(word)).second) {
      return error(Code::kDamaged, "{}: token {} has the text of an earlier one", file, i);
    }
  }
  if (squared_bytes > kMaxSquaredTokenBytes) {
    return error(Code::kDamaged, "{}: the tokens are too long for a vocabulary", file);
  }
  return {};
}

}  // namespace

Result<TokenizerSection> read_tokenizer_section(const GgufFile& file) {
  EBB_ASSIGN_OR_RETURN(const auto model, file.find_string("tokenizer.ggml.model"));
  EBB_ASSIGN_OR_RETURN(const auto pre_tokenizer, file.find_string("tokenizer.ggml.pre"));
  TokenizerSection section{.model = model.value_or(""), .pre_tokenizer = pre_tokenizer.value_or("")};
  EBB_RETURN_IF_ERROR(check_names(section, file.name()));

  EBB_ASSIGN_OR_RETURN(const auto tokens, file.find_strings("tokenizer.ggml.tokens"));
  if (!tokens.has_value() || tokens->empty()) {
    return error(Code::kDamaged, "{}: no tokenizer.ggml.tokens; the file carries no vocabulary", file.name());
  }
  EBB_RETURN_IF_ERROR(check_tokens(*tokens, file.name()));
  section.n_tokens = static_cast<std::int64_t>(tokens->size());

  EBB_ASSIGN_OR_RETURN(const auto space_prefix, file.find_bool("tokenizer.ggml.add_space_prefix"));
  section.adds_space_prefix = space_prefix.value_or(section.model == "llama");
  return section;
}

}  // namespace ebb
