// ControlTokens: the texts that a vocabulary reads as control tokens when it is told to ("<|im_end|>" and the like).
//
// It says where they stand, so that text of people can be kept from naming them. Tokens that are read in every text, also
// without parse_special (a file's user-defined ones), are not among them.
// Thread rule: immutable.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.h"

struct llama_vocab;

namespace ebb {

class ControlTokens {
 public:
  struct Match {
    std::size_t begin;
    std::size_t end;
    Token token;
    // Takes the white space before, or behind, it with it.
    bool strips_left;
    bool strips_right;
  };

  // Tokens with empty text are none.
  explicit ControlTokens(const llama_vocab* vocabulary);

  // The first in text at or behind `from`, and the longest of those that begin there.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;
  // The one that is written so.
  [[nodiscard]] std::optional<Token> find_token(std::string_view text) const;
  [[nodiscard]] bool contains(Token token) const { return tokens_.contains(token); }

 private:
  struct Entry {
    Token token;
    bool strips_left;
    bool strips_right;
  };

  std::unordered_map<std::string, Entry> entries_;
  std::unordered_set<Token> tokens_;
  std::vector<std::size_t> sizes_;  // that occur, largest first
  std::array<bool, 256> begins_{};  // by first byte
};

}  // namespace ebb
