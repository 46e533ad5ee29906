// The flag, or the variable, that somebody may have meant.
//
// Thread rule: functions of their arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace ebb {

// "; did you mean --top-k?" of the command's flags, and of `ebb serve` those of llama.cpp's server; for one of these that another
// command has not, ": " and why; "" where none is near.
[[nodiscard]] std::string hint_at(const CLI::App& command, std::string_view given);

// Of the names of variables that are `set`, those that begin as ebb's ("EBB_") or llama.cpp's ("LLAMA_ARG_") and are none: a line
// each, with the nearest there is.
[[nodiscard]] std::vector<std::string> notes_on_variables(const CLI::App& serve, std::span<const std::string> set);

}  // namespace ebb
