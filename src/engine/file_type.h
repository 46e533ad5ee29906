// File type: what a GGUF file calls the way in which its weights are quantised.
//
// Thread rule: a function of its argument.
#pragma once

#include <string>

#include "gguf/gguf_file.h"

namespace ebb {

// As llama.cpp names it, "Q4_K - Medium"; where the file does not say, the type that most of its bytes have.
[[nodiscard]] std::string file_type_name(const GgufFile& file);

}  // namespace ebb
