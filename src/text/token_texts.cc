#include "text/token_texts.h"

#include <algorithm>

#include "llama.h"

namespace ebb {
namespace {

bool is_of(TokenTexts::Kinds kinds, unsigned attributes) {
  const bool is_control = (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
  const bool is_user_defined = (attributes & LLAMA_TOKEN_ATTR_USER_DEFINED) != 0;
  switch (kinds) {
    case TokenTexts::Kinds::kControl: return is_control;
    case TokenTexts::Kinds::kUserDefined: return is_user_defined;
    case TokenTexts::Kinds::kBoth: return is_control || is_user_defined;
  }
  return false;
}

}  // namespace

TokenTexts::TokenTexts(const llama_vocab* vocabulary, Kinds kinds) {
  for (llama_token id = 0; id < llama_vocab_n_tokens(vocabulary); ++id) {
    const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocabulary, id));
    if (!is_of(kinds, attributes)) continue;
    const char* text = llama_vocab_get_text(vocabulary, id);
    if (text == nullptr || *text == '\0') continue;
    tokens_.insert(Token(id));
    const bool is_new = entries_
                            .try_emplace(text, Entry{.token = Token(id),
                                                     .strips_left = (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0,
                                                     .strips_right = (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0})
                            .second;
    if (!is_new) continue;
    const std::size_t size = std::string_view(text).size();
    sizes_[static_cast<unsigned char>(*text)].push_back(size);
    longest_ = std::max(longest_, size);
  }
  for (std::vector<std::size_t>& sizes : sizes_) {
    std::ranges::sort(sizes, std::greater());
    const auto repeated = std::ranges::unique(sizes);
    sizes.erase(repeated.begin(), repeated.end());
  }
}

std::optional<Token> TokenTexts::find_token(std::string_view text) const {
  const auto entry = entries_.find(text);
  return entry == entries_.end() ? std::nullopt : std::optional(entry->second.token);
}

TokenTexts::Entries::const_iterator TokenTexts::entry_at(std::string_view text, std::size_t at) const {
  for (const std::size_t size : sizes_[static_cast<unsigned char>(text[at])]) {
    if (size > text.size() - at) continue;
    const auto entry = entries_.find(text.substr(at, size));
    if (entry != entries_.end()) return entry;
  }
  return entries_.end();
}

std::size_t TokenTexts::longest_at(std::string_view text, std::size_t at) const {
  const auto entry = entry_at(text, at);
  return entry == entries_.end() ? at : at + entry->first.size();
}

std::optional<TokenTexts::Match> TokenTexts::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto entry = entry_at(text, at);
    if (entry == entries_.end()) continue;
    return Match{.begin = at,
                 .end = at + entry->first.size(),
                 .token = entry->second.token,
                 .strips_left = entry->second.strips_left,
                 .strips_right = entry->second.strips_right};
  }
  return std::nullopt;
}

}  // namespace ebb
