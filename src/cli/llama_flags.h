// Flags of llama.cpp's server that usual command lines have and that say nothing to ebb: some ask for what is always so, and
// are taken; others ask for what ebb has under another name and meaning, and are refused with that name.
//
// Thread rule: the main thread only.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ebb {

// Hidden from the help. `notes`, which must live as long as the app, gets a line for each that was taken.
void add_llama_flags(CLI::App& app, std::vector<std::string>& notes);

// What CLI11 can read of a short flag with several letters, "-np"; others as they are.
[[nodiscard]] const char* long_name(const char* argument);

}  // namespace ebb
