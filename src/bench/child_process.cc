#include "bench/child_process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

namespace ebb {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(2);

int open_to_write(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const Program& program) {
  const std::string path = program.path.string();
  if (std::error_code ignored; std::filesystem::is_directory(program.path, ignored)) {
    return error(Code::kNotFound, "{}: no program, but a folder", path);
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return error(Code::kNotFound, "{}: no program ({})", path, std::strerror(errno));
  }
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = open_to_write(program.out);
  const int err = open_to_write(program.err);
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : program.arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    // Nothing but what may stand between fork and exec. It ends with us, however that comes.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(null, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::execv(path.c_str(), words.data());
    ::_exit(127);
  }
  const int failed = errno;
  for (const int descriptor : {null, out, err}) {
    if (descriptor >= 0) ::close(descriptor);
  }
  if (child > 0) return ChildProcess(child);
  return error(Code::kIo, "{}: cannot be started: {}", path, std::strerror(failed));
}

void ChildProcess::swap(ChildProcess& other) noexcept {
  std::swap(child_, other.child_);
  std::swap(status_, other.status_);
  std::swap(peak_resident_bytes_, other.peak_resident_bytes_);
}

bool ChildProcess::reap(int options) {
  if (child_ < 0) return true;
  rusage usage{};
  pid_t ended = 0;
  do {
    ended = ::wait4(child_, &status_, options, &usage);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  peak_resident_bytes_ = std::max(peak_resident_bytes_, static_cast<std::size_t>(usage.ru_maxrss) << 10U);
  child_ = -1;
  return true;
}

bool ChildProcess::has_ended() { return reap(WNOHANG); }

Result<int> ChildProcess::wait(double most_ms) {
  const Stopwatch watch;
  while (!has_ended()) {
    if (watch.elapsed_ms() > most_ms) {
      kill();
      return error(Code::kIo, "it did not end within {:.0f} s", most_ms / 1000.0);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

void ChildProcess::kill() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  reap(0);
}

}  // namespace ebb
