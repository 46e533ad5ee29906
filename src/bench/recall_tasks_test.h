// What tests of tasks count in their texts.
//
// Thread rule: a pure function.
#pragma once

#include <cstddef>
#include <string_view>

#include "bench/recall_names.h"

namespace ebb {

// How often the word stands in the text (find_word).
inline std::size_t n_times(std::string_view text, std::string_view word) {
  std::size_t n = 0;
  for (std::size_t at = find_word(text, word); at != std::string_view::npos; at = find_word(text, word)) {
    ++n;
    text.remove_prefix(at + word.size());
  }
  return n;
}

}  // namespace ebb
