#include "cli/terminal.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ebb {
namespace {

constexpr double kRedrawMs = 100.0;
constexpr double kPlainLineMs = 15'000.0;
constexpr std::size_t kBarWidth = 24;

bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

void print_error(std::string_view message) { fmt::print(stderr, "ebb: {}\n", message); }

ExitCode fail(const Status& status) {
  if (status.code() != Code::kCancelled) print_error(status.message());
  return exit_code_of(status.code());
}

void ProgressBar::update(std::string_view what, double share) {
  const double now_ms = since_start_.elapsed_ms();
  if (now_ms < quiet_ms_) return;
  const bool is_new = shown_ms_ < 0.0;
  if (stderr_is_terminal()) {
    if (!is_new && now_ms - shown_ms_ < kRedrawMs) return;
    draw(what, std::clamp(share, 0.0, 1.0));
  } else {
    if (!is_new && now_ms - shown_ms_ < kPlainLineMs) return;
    print_line(what, std::clamp(share, 0.0, 1.0));
  }
  shown_ms_ = now_ms;
}

void ProgressBar::draw(std::string_view what, double share) {
  const auto n_full = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  std::string line = fmt::format("[{}{}] {:3.0f}% {}", std::string(n_full, '#'), std::string(kBarWidth - n_full, '.'),
                                 100.0 * share, what);
  // A line that wraps could not be drawn over.
  line.resize(std::min(line.size(), terminal_width() - 1));
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

void ProgressBar::print_line(std::string_view what, double share) {
  fmt::print(stderr, "ebb: {} ({:.0f}%)\n", what, 100.0 * share);
}

void ProgressBar::clear() {
  if (shown_ms_ >= 0.0 && stderr_is_terminal()) fmt::print(stderr, "\r\033[K");
  shown_ms_ = -1.0;
}

}  // namespace ebb
