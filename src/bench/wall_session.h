// The wall bench's session: seeded sections, questions and answers, and the turns that they make in a model's chat template.
//
// It computes nothing. Thread rule: immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

// What a user's message adds to a session in the model's chat template: behind nothing, behind a reply that ended by
// itself, or behind one that was cut.
enum class Before : std::uint8_t { kNothing, kEndedReply, kCutReply };
Result<std::vector<Token>> turn_tokens(const Vocabulary& vocabulary, std::string_view message, Before before);

}  // namespace ebb
