#include "tests/program.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/files.h"

namespace ebb {
namespace {

// Beside the tests, where the build puts it.
std::filesystem::path program_path() {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "bin" / "ebb";
  EBB_CHECK(std::filesystem::exists(path), "{} is not built; build the target ebb", path.string());
  return path;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Streams {
  int in = -1;
  int out = -1;
  int err = -1;
};

pid_t start(const std::vector<std::string>& arguments, const Streams& streams) {
  const std::string program = program_path().string();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  EBB_CHECK(child >= 0, "no process for {}", program);
  if (child != 0) return child;
  dup2(streams.in, STDIN_FILENO);
  dup2(streams.out, STDOUT_FILENO);
  dup2(streams.err, STDERR_FILENO);
  execv(program.c_str(), argv.data());
  _exit(127);
}

void wait_for(pid_t child, ProgramResult& result) {
  int status = 0;
  rusage usage{};
  EBB_CHECK(wait4(child, &status, 0, &usage) == child, "process {} is gone", child);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_resident_bytes = static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

// Closes itself; not inherited by the programs under test but as one of their standard streams.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) { EBB_CHECK(descriptor >= 0, "a file does not open"); }
  ~Descriptor() { close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

int open_new(const TemporaryFile& file) {
  return open(file.path().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

}  // namespace

ProgramResult run_ebb(const std::vector<std::string>& arguments, const std::string& input) {
  const TemporaryFile in_file(".in");
  const TemporaryFile out_file(".out");
  const TemporaryFile err_file(".err");
  std::ofstream(in_file.path(), std::ios::binary) << input;
  ProgramResult result;
  {
    const Descriptor in(open(in_file.path().c_str(), O_RDONLY | O_CLOEXEC));
    const Descriptor out(open_new(out_file));
    const Descriptor err(open_new(err_file));
    wait_for(start(arguments, {.in = in.get(), .out = out.get(), .err = err.get()}), result);
  }
  result.out = contents(out_file.path());
  result.err = contents(err_file.path());
  return result;
}

RunningEbb::RunningEbb(const std::vector<std::string>& arguments) {
  std::array<int, 2> pipe_ends{};
  EBB_CHECK(pipe2(pipe_ends.data(), O_CLOEXEC) == 0, "no pipe");
  err_ = pipe_ends[0];
  const Descriptor writer(pipe_ends[1]);
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  child_ = start(arguments, {.in = null.get(), .out = null.get(), .err = writer.get()});
}

RunningEbb::~RunningEbb() {
  if (child_ >= 0) {
    send_signal(SIGKILL);
    (void)wait();
  }
  close(err_);
}

std::string RunningEbb::read_line_with(std::string_view text) {
  std::array<char, 4096> bytes;
  while (true) {
    for (std::size_t end = 0; (end = unread_.find('\n')) != std::string::npos;) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      if (line.find(text) != std::string::npos) return line;
    }
    const ssize_t n = read(err_, bytes.data(), bytes.size());
    if (n <= 0) return {};
    unread_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

void RunningEbb::send_signal(int number) const { kill(child_, number); }

ProgramResult RunningEbb::wait() {
  ProgramResult result;
  std::array<char, 4096> bytes;
  for (ssize_t n = 0; (n = read(err_, bytes.data(), bytes.size())) > 0;) {
    unread_.append(bytes.data(), static_cast<std::size_t>(n));
  }
  wait_for(child_, result);
  child_ = -1;
  result.err = std::move(unread_);
  return result;
}

ProgramResult interrupt_ebb(const std::vector<std::string>& arguments) {
  const TemporaryFile err_file(".err");
  std::array<int, 2> pipe_ends{};
  EBB_CHECK(pipe2(pipe_ends.data(), O_CLOEXEC) == 0, "no pipe");
  const Descriptor reader(pipe_ends[0]);
  ProgramResult result;
  pid_t child = -1;
  {
    const Descriptor writer(pipe_ends[1]);
    const Descriptor in(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Descriptor err(open_new(err_file));
    child = start(arguments, {.in = in.get(), .out = writer.get(), .err = err.get()});
  }
  std::array<char, 4096> bytes;
  bool was_interrupted = false;
  for (ssize_t n = 0; (n = read(reader.get(), bytes.data(), bytes.size())) > 0;) {
    result.out.append(bytes.data(), static_cast<std::size_t>(n));
    if (!was_interrupted) kill(child, SIGINT);
    was_interrupted = true;
  }
  wait_for(child, result);
  result.err = contents(err_file.path());
  return result;
}

}  // namespace ebb
