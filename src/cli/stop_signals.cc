#include "cli/stop_signals.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/check.h"

namespace ebb {
namespace {

// A signal handler reaches nothing but globals; a pipe is how it wakes a thread.
std::array<int, 2> g_pipe = {-1, -1};
volatile std::sig_atomic_t g_stopped = 0;

void on_stop(int signal) {
  if (g_stopped != 0) {
    std::signal(signal, SIG_DFL);
    (void)raise(signal);
    return;
  }
  g_stopped = 1;
  const int before = errno;
  const char byte = 0;
  (void)!write(g_pipe[1], &byte, 1);
  errno = before;
}

}  // namespace

StopSignals::StopSignals() {
  EBB_CHECK(g_pipe[0] < 0, "one at a time");
  EBB_CHECK(pipe2(g_pipe.data(), O_CLOEXEC) == 0, "no pipe: errno {}", errno);
  g_stopped = 0;
  struct sigaction action {};
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  close(g_pipe[0]);
  close(g_pipe[1]);
  g_pipe = {-1, -1};
}

bool StopSignals::wait_for(std::chrono::milliseconds time) const {
  pollfd entry{.fd = g_pipe[0], .events = POLLIN, .revents = 0};
  (void)poll(&entry, 1, static_cast<int>(time.count()));
  return g_stopped != 0;
}

}  // namespace ebb
