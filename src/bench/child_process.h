// ChildProcess: another program that we start, whose output goes to files, and which ends with us, however that comes.
//
// It knows no program. Thread rule: one thread at a time, which lives as long as the child is to: the system ends the child with it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace ebb {

class ChildProcess {
 public:
  struct Program {
    std::filesystem::path path;
    std::vector<std::string> arguments;
    std::filesystem::path out;  // written anew
    std::filesystem::path err;  // may be the same file
  };

  ChildProcess() = default;
  // kNotFound where there is no such program; kIo where it cannot be started.
  static Result<ChildProcess> start(const Program& program);
  // Killed where it still runs.
  ~ChildProcess() { kill(); }
  ChildProcess(ChildProcess&& other) noexcept { swap(other); }
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    swap(other);
    return *this;
  }

  // By itself, or by kill(); also where none was started.
  [[nodiscard]] bool has_ended();
  // What it ended with, 0 for well, -1 where a signal ended it; kIo where it takes longer, and then it is killed.
  Result<int> wait(double most_ms);
  // As kill -9 does. Idempotent.
  void kill();
  // The most memory that it had in RAM at once; known once it has ended.
  [[nodiscard]] std::size_t peak_resident_bytes() const { return peak_resident_bytes_; }

 private:
  explicit ChildProcess(pid_t child) : child_(child) {}
  void swap(ChildProcess& other) noexcept;
  // Whether it has ended now; waits for that where `options` do not say otherwise.
  bool reap(int options);

  pid_t child_ = -1;
  int status_ = 0;
  std::size_t peak_resident_bytes_ = 0;
};

}  // namespace ebb
