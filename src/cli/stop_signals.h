// SIGTERM and Ctrl-C, as something that a server waits for, and SIGHUP where it asks for that. A second signal to stop ends
// the program at once.
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

  // SIGHUP no longer ends the program, from now on.
  void hear_hangup();
  // Whether one came since this was asked last.
  [[nodiscard]] bool take_hangup();

  // Whether one to stop comes within that time, or has come. A hangup ends the waiting.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const;
};

}  // namespace ebb
