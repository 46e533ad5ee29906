#include "cli/line_reader.h"

#include <array>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.h"

namespace ebb {
namespace {

constexpr std::string_view kContinuedPrompt = "... ";

void show(std::string_view prompt) {
  if (isatty(STDIN_FILENO) != 1) return;
  fmt::print(stderr, "{}", prompt);
  std::fflush(stderr);
}

}  // namespace

LineReader::Outcome LineReader::read(std::string_view prompt, std::string& line) {
  line.clear();
  show(prompt);
  while (true) {
    std::string part;
    const Outcome outcome = read_one(part);
    if (outcome != Outcome::kLine) return outcome;
    line += part;
    if (!line.ends_with('\\')) return Outcome::kLine;
    line.back() = '\n';
    show(kContinuedPrompt);
  }
}

LineReader::Outcome LineReader::read_one(std::string& line) {
  while (true) {
    if (const std::size_t newline = buffer_.find('\n'); newline != std::string::npos) {
      line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return Outcome::kLine;
    }
    if (at_end_) {
      if (buffer_.empty()) return Outcome::kEnd;
      line.swap(buffer_);  // a last line without a newline
      buffer_.clear();
      return Outcome::kLine;
    }
    if (!interrupt_.wait_for_input()) {
      buffer_.clear();
      return Outcome::kInterrupted;
    }
    std::array<char, 4096> bytes;
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n > 0) {
      buffer_.append(bytes.data(), static_cast<std::size_t>(n));
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      at_end_ = true;
    }
  }
}

}  // namespace ebb
