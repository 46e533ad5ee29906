// Command lines and variables of llama.cpp's server, said as those of `ebb serve`: each of its flags is taken with its meaning, or with
// one line that says why it has no effect, or is refused with what to do instead, where to take it would serve another model than was
// asked for, or serve it less safely. The table is docs/llama_server.md.
//
// It knows names and values, not what they do. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ebb {

struct LlamaFlag {
  enum class Takes : std::uint8_t { kNothing, kMaybeAValue, kAValue, kTwoValues };
  enum class Does : std::uint8_t {
    kSame,      // what the flag `says` of ebb does
    kMember,    // holds for requests that do not have the member `says`
    kOwn,       // as `says` tells
    kNoEffect,  // for the reason that `says` tells
    kRefused,   // `says` tells what to do instead
  };

  // Separated by spaces, each with its dashes.
  std::string_view names;
  Takes takes = Takes::kAValue;
  // Without "LLAMA_ARG_"; "": none. With '!' before it, the flag is given where the variable is off.
  std::string_view variable;
  Does does = Does::kNoEffect;
  std::string_view says;
};

[[nodiscard]] std::span<const LlamaFlag> llama_flags();
// Null: there is none of this name.
[[nodiscard]] const LlamaFlag* find_llama_flag(std::string_view name);
// In Markdown.
[[nodiscard]] std::string llama_flags_table();

struct TranslatedLine {
  std::vector<std::string> arguments;
  // What was taken and has no effect, a line each.
  std::vector<std::string> notes = {};
  // The first short flag of several letters that is none of llama.cpp's, which CLI11 would read as several of one letter.
  std::string unknown = {};
};

// The value of a variable of the environment; none: not set.
using Variable = std::function<std::optional<std::string>(std::string_view name)>;

// `arguments` behind "serve". The command line wins over variables, and those of ebb ("EBB_") over llama.cpp's. kInvalidArgument names what is
// refused.
Result<TranslatedLine> translate_llama_line(std::span<const char* const> arguments, const Variable& variable);

// Short flags of several letters, which are read as several flags of one letter each otherwise: -np, -hf.
[[nodiscard]] bool is_bundled(std::string_view argument);

}  // namespace ebb
