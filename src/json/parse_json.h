// parse_json: how JSON that a client or a model wrote becomes a value.
//
// Copying, comparing and writing a value take stack for each of its levels, and a text may have as many levels as bytes; so
// no other way is taken from such text to a value. It knows no fields. Thread rule: a function of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace ebb {

using Json = nlohmann::ordered_json;

// Values and names of members, some 100 bytes each. Fewer: a prompt of a million tokens as an array is refused. More: a
// small body becomes a large value, one for each thread that reads them.
inline constexpr std::size_t kMostJsonValues = std::size_t{1} << 20;

// kInvalidArgument says at which byte it stops being JSON, that it is nested too deeply, that it has too many values, or that a
// number is too large; nothing of the text is repeated.
// `most_values`: another bound for a text that no client sent. `repeated`: what a name is that an object has twice.
enum class RepeatedNames : std::uint8_t { kLastCounts, kRefused };
Result<Json> parse_json(std::string_view text, std::size_t most_values = kMostJsonValues,
                        RepeatedNames repeated = RepeatedNames::kLastCounts);

}  // namespace ebb
