// Words: what of a text words are, for those who look for blocks by them.
//
// It knows scripts and no language. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

// The words of a text, case folded: runs of letters, digits and bytes beyond ASCII. Identifiers count whole and in their
// parts: "config_server.maxItems" gives config_server, config, server, maxitems, max, items. Of scripts that write no spaces between
// words (Han, kana, Thai, ...) every two neighbouring characters are one.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);
// Of a text that goes on: `end`, before which all words have ended whatever comes, and `next`, where those to come begin: of a script
// without spaces they share a character with what has ended.
struct EndedWords {
  std::size_t end = 0;
  std::size_t next = 0;
};
[[nodiscard]] EndedWords find_ended_words(std::string_view text);
// Whether a byte belongs to a word: two such bytes side by side, across a block's border too, are of one word.
[[nodiscard]] bool is_word_byte(char c);

}  // namespace ebb
