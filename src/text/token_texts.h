// TokenTexts: the texts that a vocabulary reads as one token, before it cuts the rest into words, and where they stand.
//
// Control tokens ("<|im_end|>" and the like) are read so where that is asked for, so that text of people must be kept from
// naming them; a file's user-defined ones in every text.
// Thread rule: immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.h"

struct llama_vocab;

namespace ebb {

class TokenTexts {
 public:
  enum class Kinds : std::uint8_t { kControl, kUserDefined, kBoth };

  struct Match {
    std::size_t begin;
    std::size_t end;
    Token token;
    // Takes the white space before, or behind, it with it.
    bool strips_left;
    bool strips_right;
  };

  // Tokens with empty text are none.
  TokenTexts(const llama_vocab* vocabulary, Kinds kinds);

  // The first in text at or behind `from`, and the longest of those that begin there.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;
  // Where the longest that begins at `at` ends; `at`: none does.
  [[nodiscard]] std::size_t longest_at(std::string_view text, std::size_t at) const;
  // Bytes of the longest; 0: there is none.
  [[nodiscard]] std::size_t longest() const { return longest_; }
  // The one that is written so.
  [[nodiscard]] std::optional<Token> find_token(std::string_view text) const;
  [[nodiscard]] bool contains(Token token) const { return tokens_.contains(token); }

 private:
  struct Entry {
    Token token;
    bool strips_left;
    bool strips_right;
  };
  // Texts are looked up without a copy.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;

  [[nodiscard]] Entries::const_iterator entry_at(std::string_view text, std::size_t at) const;

  Entries entries_;
  std::unordered_set<Token> tokens_;
  std::array<std::vector<std::size_t>, 256> sizes_;  // of those with this first byte, largest first
  std::size_t longest_ = 0;
};

}  // namespace ebb
