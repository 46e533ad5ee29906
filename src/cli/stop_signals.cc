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
volatile std::sig_atomic_t g_hung_up = 0;

void wake() {
  const int before = errno;
  const char byte = 0;
  (void)!write(g_pipe[1], &byte, 1);
  errno = before;
}

void on_hangup(int) {
  g_hung_up = 1;
  wake();
}

void on_stop(int signal) {
  if (g_stopped != 0) {
    std::signal(signal, SIG_DFL);
    (void)raise(signal);
    return;
  }
  g_stopped = 1;
  wake();
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  EBB_CHECK(g_pipe[0] < 0, "one at a time");
  // A full pipe wakes as well as one byte does, and neither end may hold up who uses it.
  EBB_CHECK(pipe2(g_pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0, "no pipe: errno {}", errno);
  g_stopped = 0;
  g_hung_up = 0;
  handle(SIGINT, on_stop);
  handle(SIGTERM, on_stop);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_DFL);
  close(g_pipe[0]);
  close(g_pipe[1]);
  g_pipe = {-1, -1};
}

void StopSignals::hear_hangup() { handle(SIGHUP, on_hangup); }

bool StopSignals::take_hangup() {
  // One that comes between the two lines is not lost: it is taken now.
  if (g_hung_up == 0) return false;
  g_hung_up = 0;
  return true;
}

bool StopSignals::wait_for(std::chrono::milliseconds time) const {
  pollfd entry{.fd = g_pipe[0], .events = POLLIN, .revents = 0};
  (void)poll(&entry, 1, static_cast<int>(time.count()));
  std::array<char, 64> bytes{};
  (void)!read(g_pipe[0], bytes.data(), bytes.size());
  return g_stopped != 0;
}

}  // namespace ebb
