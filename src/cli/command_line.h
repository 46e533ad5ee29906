// The command line of `ebb`: finds the command, parses its flags, runs it, and maps what comes of it to an exit code.
//
// Thread rule: called once, from main.
#pragma once

namespace ebb {

[[nodiscard]] int run_command_line(int argc, const char* const* argv);

}  // namespace ebb
