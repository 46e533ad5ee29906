#include "bench/busy_cores.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ebb {
namespace {

// In the child of a fork, where other threads of ours are no more: it takes no lock and no memory.
[[noreturn]] void go_round(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before that was asked for.
  if (::getppid() != parent) ::_exit(0);
  ::raise(SIGSTOP);
  while (true) asm volatile("");
}

// Or until it has ended, where somebody else ended it.
void wait_until_stopped(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) {}
}

}  // namespace

Result<BusyCores> BusyCores::start(std::int32_t n_cores) {
  BusyCores busy;
  const pid_t parent = ::getpid();
  for (std::int32_t i = 0; i < n_cores; ++i) {
    const pid_t child = ::fork();
    if (child == 0) go_round(parent);
    if (child < 0) return error(Code::kIo, "no process to keep a core busy: {}", std::strerror(errno));
    busy.children_.push_back(child);
    // It stops itself: resumed before, it would stop after.
    wait_until_stopped(child);
  }
  return busy;
}

BusyCores::~BusyCores() {
  for (const pid_t child : children_) {
    ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  }
}

void BusyCores::swap(BusyCores& other) noexcept {
  children_.swap(other.children_);
  std::swap(runs_, other.runs_);
}

void BusyCores::resume() {
  if (std::exchange(runs_, true)) return;
  for (const pid_t child : children_) ::kill(child, SIGCONT);
}

void BusyCores::pause() {
  if (!std::exchange(runs_, false)) return;
  for (const pid_t child : children_) ::kill(child, SIGSTOP);
  for (const pid_t child : children_) wait_until_stopped(child);
}

double BusyCores::seconds_run() const {
  double seconds = 0.0;
  for (const pid_t child : children_) {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &time) != 0) continue;
    seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  return seconds;
}

}  // namespace ebb
