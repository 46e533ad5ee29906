// SIGTERM and Ctrl-C, as something that a server waits for. A second signal ends the program at once.
// Thread rule: one at a time, in the main thread.
#pragma once

#include <chrono>

namespace ebb {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether one comes within that time, or has come.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const;
};

}  // namespace ebb
