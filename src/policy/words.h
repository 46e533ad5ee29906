// Words: what of a text words are, for those who look for blocks by them.
//
// It knows scripts and no language. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ebb {

// The words of a text, case folded: runs of letters, digits and bytes beyond ASCII. Identifiers count whole and in their
// parts: "config_server.maxItems" gives config_server, config, server, maxitems, max, items. Of scripts that write no spaces between
// words (Han, kana, Thai, ...) every two neighbouring characters are one.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);
// Whether a byte belongs to a word: two such bytes side by side, across a block's border too, are of one word.
[[nodiscard]] bool is_word_byte(char c);

}  // namespace ebb
