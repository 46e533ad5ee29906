// PeerServer: a server as people run it, a program of its own on a free port of this machine, and requests to it over a socket.
//
// It knows no bench and no program's flags: who starts it says them. What the program prints goes to a file. Each request has a
// connection of its own, so that a pause before it, however long, leaves none that the server has closed meanwhile.
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/child_process.h"

namespace ebb {

struct PeerAnswer {
  int status = 0;  // of HTTP
  std::string body;
  double ms = 0.0;  // from the connection's begin until the last byte came
};

class PeerServer {
 public:
  struct Program {
    std::filesystem::path path;
    std::vector<std::string> arguments;  // --host and --port are added
    std::filesystem::path log;
  };

  // Waits until it says at /health that it is ready. kIo where it cannot be started, ends before or takes longer than 10 minutes; the
  // message holds the last lines that it printed.
  static Result<std::unique_ptr<PeerServer>> start(Program program);
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

  // kIo where no whole answer comes, with what the program printed last.
  Result<PeerAnswer> post(std::string_view path, std::string_view body, std::string_view session) const;
  // As kill -9 does. Idempotent.
  void kill() { child_.kill(); }
  // The most memory that it had in RAM at once; known once it was killed.
  [[nodiscard]] std::size_t peak_resident_bytes() const { return child_.peak_resident_bytes(); }

 private:
  PeerServer(Program program, std::uint16_t port) : program_(std::move(program)), port_(port) {}

  Status wait_until_ready();
  [[nodiscard]] std::string last_lines() const;

  Program program_;
  std::uint16_t port_;
  // Killed where it still runs.
  ChildProcess child_;
};

}  // namespace ebb
