// SIGTERM and Ctrl-C, as something that a server waits for. A second signal ends the program at once.
// Thread rule: one at a time, in the main thread.
#pragma once

namespace ebb {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Until one comes, or has come.
  void wait() const;
};

}  // namespace ebb
