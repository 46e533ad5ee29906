// Tokenizer pieces: cuts of a text where libllama would not bear all of it at once.
//
// It knows what libllama costs, and makes no tokens. What it promises is said at each function.
// Thread rule: functions of their arguments.
#pragma once

#include <string_view>
#include <vector>

#include "text/token_texts.h"

namespace ebb {

// Cuts the text behind tokens that libllama looks for before all others, so that no piece holds many: for each that it
// finds it walks a list from its beginning, and 20 000 took 16 seconds. `read_first` are those tokens. The pieces' tokens
// in a row are the text's: no other of `read_first` overlaps the one that a cut stands behind, so that it is found with or
// without the cut, and what follows such a token is read as what begins a text is. Texts of some kilobytes are one piece.
[[nodiscard]] std::vector<std::string_view> cut_behind_tokens(std::string_view text, const TokenTexts& read_first);

// Cuts the text where a stretch without (or of nothing but) white space is longer than std::regex bears, between
// characters. Ordinary text is one piece; the others have other tokens at the cuts.
[[nodiscard]] std::vector<std::string_view> cut_stretches(std::string_view text);

}  // namespace ebb
