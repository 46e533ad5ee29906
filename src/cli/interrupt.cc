#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include <poll.h>
#include <unistd.h>

#include "base/check.h"
#include "engine/engine.h"

namespace ebb {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<bool> g_listening{false};
std::atomic<bool> g_interrupted{false};
std::atomic<Engine*> g_engine{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<Engine*>::is_always_lock_free);

void on_interrupt(int /*signal*/) {
  if (g_interrupted.exchange(true)) {
    // Whatever was to stop does not.
    std::signal(SIGINT, SIG_DFL);
    (void)raise(SIGINT);
    return;
  }
  if (Engine* engine = g_engine.load()) engine->request_cancel();
}

}  // namespace

InterruptListener::InterruptListener() {
  EBB_CHECK(!g_listening.exchange(true), "one listener at a time");
  g_interrupted.store(false);
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a read that waits must return
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

InterruptListener::~InterruptListener() {
  std::signal(SIGINT, SIG_DFL);
  g_engine.store(nullptr);
  g_listening.store(false);
}

void InterruptListener::stop_also(Engine& engine) { g_engine.store(&engine); }
bool InterruptListener::interrupted() const { return g_interrupted.load(); }

bool InterruptListener::take() {
  const bool was_interrupted = g_interrupted.exchange(false);
  if (Engine* engine = g_engine.load(); was_interrupted && engine != nullptr) engine->clear_cancel();
  return was_interrupted;
}

bool InterruptListener::wait_for_input() const {
  // Between the look at the flag and the wait the signal is held back, so that none falls in between.
  sigset_t interrupt;
  sigset_t before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(SIG_BLOCK, &interrupt, &before);
  bool has_input = false;
  while (!has_input && !g_interrupted.load()) {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    has_input = ppoll(&input, 1, nullptr, &before) > 0;
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return has_input;
}

}  // namespace ebb
