#include "text/control_tokens.h"

#include <algorithm>
#include <functional>

#include "llama.h"

namespace ebb {

ControlTokens::ControlTokens(const llama_vocab* vocabulary) {
  for (llama_token id = 0; id < llama_vocab_n_tokens(vocabulary); ++id) {
    const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocabulary, id));
    if ((attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) == 0) continue;
    const char* text = llama_vocab_get_text(vocabulary, id);
    if (text == nullptr || *text == '\0') continue;
    tokens_.insert(Token(id));
    const bool is_new = entries_
                            .try_emplace(text, Entry{.token = Token(id),
                                                     .strips_left = (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0,
                                                     .strips_right = (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0})
                            .second;
    if (!is_new) continue;
    begins_[static_cast<unsigned char>(*text)] = true;
    sizes_.push_back(std::string_view(text).size());
  }
  std::ranges::sort(sizes_, std::greater());
  const auto repeated = std::ranges::unique(sizes_);
  sizes_.erase(repeated.begin(), repeated.end());
}

std::optional<Token> ControlTokens::find_token(std::string_view text) const {
  const auto entry = entries_.find(std::string(text));
  return entry == entries_.end() ? std::nullopt : std::optional(entry->second.token);
}

std::optional<ControlTokens::Match> ControlTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!begins_[static_cast<unsigned char>(text[at])]) continue;
    for (const std::size_t size : sizes_) {
      if (size > text.size() - at) continue;
      const auto entry = entries_.find(std::string(text.substr(at, size)));
      if (entry == entries_.end()) continue;
      return Match{at, at + size, entry->second.token, entry->second.strips_left, entry->second.strips_right};
    }
  }
  return std::nullopt;
}

}  // namespace ebb
