// What commands say to people on stderr, beside the text on stdout: errors, and how far long work has come.
//
// On a terminal progress is one line that is drawn over; elsewhere (a log, a pipe) it is a plain line now and then.
// Thread rule: the main thread only.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "cli/exit_code.h"

namespace ebb {

// "ebb: MESSAGE" on a line of its own.
void print_error(std::string_view message);
// Prints a Status as an error; returns the exit code that it means. kCancelled prints nothing: who pressed Ctrl-C
// knows.
ExitCode fail(const Status& status);

class ProgressBar {
 public:
  // Shows nothing until quiet_ms have passed, so that quick work leaves no trace.
  explicit ProgressBar(double quiet_ms = 1000.0) : quiet_ms_(quiet_ms) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // share: 0..1.
  void update(std::string_view what, double share);
  // Takes the bar off the screen.
  void clear();

 private:
  void draw(std::string_view what, double share);
  void print_line(std::string_view what, double share);

  double quiet_ms_;
  Stopwatch since_start_;
  double shown_ms_ = -1.0;  // when it was drawn last; negative: never
};

}  // namespace ebb
