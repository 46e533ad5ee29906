// The flag that somebody may have meant.
//
// Thread rule: functions of their arguments.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace ebb {

// "; did you mean --top-k?" of the command's flags, and of `ebb serve` those of llama.cpp's server that do something; for one of these
// that another command has not, ": " and why; "" where none is near.
[[nodiscard]] std::string hint_at(const CLI::App& command, std::string_view given);

}  // namespace ebb
