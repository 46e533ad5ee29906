// The wall bench's session: seeded sections, questions and answers.
//
// It computes nothing. Thread rule: immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/vocabulary.h"

namespace ebb {

struct WallSection {
  std::string text;  // reading matter, and somewhere in it the fact
  std::string question;
  std::string answer;
};

// Sections of about n_tokens each, as this vocabulary counts them. Names and values of facts are all different.
Result<std::vector<WallSection>> make_wall_sections(const Vocabulary& vocabulary, std::int32_t n_sections,
                                                    std::int32_t n_tokens, std::uint64_t seed);

}  // namespace ebb
