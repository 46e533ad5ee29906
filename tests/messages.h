// What clients say in tests of the API.
//
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "json/json_fields.h"

namespace ebb {

inline Json message(std::string_view role, std::string_view content) { return {{"role", role}, {"content", content}}; }

inline Json user(std::string_view text) { return message("user", text); }

// Text that nobody asks about.
inline std::string filler(int n_sentences) {
  std::string text = "Read this:";
  for (int i = 0; i < n_sentences; ++i) text += " The shepherd crossed the quiet harbour before the rain began.";
  return text;
}

}  // namespace ebb
