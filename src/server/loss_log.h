// Loss log: tells whoever runs the server what requests lose (fields without an effect, tools left out), which their answers tell
// as warnings that few clients show. A kind of loss is told once, for each plain name in it, and again now and then with how often it came since:
// a flood of requests is a few lines.
//
// It knows warnings, and no prompt: what they quote is told where it is a plain name, which cannot begin a line of its own.
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace ebb {

class LossLog {
 public:
  using Clock = std::chrono::steady_clock;
  // Told again after so long. Shorter: the log says the same more often. Longer: nobody sees that it goes on.
  static constexpr std::chrono::minutes kPause{10};
  // Kinds that are told apart; further ones are one kind.
  static constexpr std::size_t kMostKinds = 128;
  static constexpr std::size_t kMostBytes = 200;

  // `tell` may be none: then nothing is told.
  explicit LossLog(std::function<void(std::string_view line)> tell, std::function<Clock::time_point()> now = Clock::now)
      : tell_(std::move(tell)), now_(std::move(now)) {}

  void note(std::span<const std::string> warnings);

 private:
  struct Kind {
    Clock::time_point told_at;
    std::int64_t n_since = 0;
  };

  void note_one(const std::string& warning);

  std::function<void(std::string_view)> tell_;
  std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace ebb
