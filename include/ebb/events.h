// Events: what a session tells while it replies.
#pragma once

#include <functional>
#include <string>

namespace ebb::api {

struct Event {
  // Text that can be shown: whole UTF-8 characters, no part of a stop string. May be empty.
  std::string text;
  // Blocks that left and came back since the last event.
  int n_evicted_blocks = 0;
  int n_recalled_blocks = 0;
};

// Called after every step, on the thread that called Session::say. False ends the reply.
using Listener = std::function<bool(const Event&)>;

}  // namespace ebb::api
