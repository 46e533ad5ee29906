// Program: the built `ebb`, run as people run it: arguments and standard input in, output and exit code out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ebb {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
  // The most memory that the process had in RAM at once, mapped files included.
  std::size_t peak_resident_bytes = 0;
};

// Waits for its end.
ProgramResult run_ebb(const std::vector<std::string>& arguments, const std::string& input = "");

// Sends SIGINT once the program has written its first byte to stdout, and waits for its end.
ProgramResult interrupt_ebb(const std::vector<std::string>& arguments);

// The program while it runs, for servers. Killed at the end if it is still there.
class RunningEbb {
 public:
  explicit RunningEbb(const std::vector<std::string>& arguments);
  ~RunningEbb();
  RunningEbb(const RunningEbb&) = delete;
  RunningEbb& operator=(const RunningEbb&) = delete;

  // The next line of its stderr that holds `text`; "" when it ends before.
  std::string read_line_with(std::string_view text);
  void send_signal(int number) const;
  // Its end; `out` is empty.
  ProgramResult wait();

 private:
  pid_t child_ = -1;
  int err_ = -1;
  std::string unread_;
};

}  // namespace ebb
