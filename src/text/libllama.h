// What libllama needs once per process, and where its complaints go.
//
// libllama says why it failed only in its log. The log is dropped, except for the errors of the thread that asks: they
// become part of a Status. Nothing is ever printed.
//
// Thread rule: any thread; each has its own errors.
#pragma once

#include <string>

namespace ebb {

// Starts libllama, and takes over its log and ggml's for the whole process. Cheap when done already.
void start_libllama();

// The errors that libllama logged on this thread since the last call, in one line; empty if there were none.
[[nodiscard]] std::string take_libllama_errors();

}  // namespace ebb
