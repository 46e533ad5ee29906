// RandomRounds: how often a random test runs. Normally `n` rounds, each from a seed of its own, so that all runs are the
// same and a failure names the round; with EBB_RANDOM_SECONDS=60 each such test goes on with further seeds for a minute.
//
//   for (RandomRounds rounds(1500); rounds.next();) {
//     SCOPED_TRACE(rounds.seed());
//     std::mt19937 random(rounds.seed());
//
// For tests only. Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace ebb {

class RandomRounds {
 public:
  explicit RandomRounds(std::uint32_t n) : n_(n) {
    const char* seconds = std::getenv("EBB_RANDOM_SECONDS");
    if (seconds != nullptr) end_ += std::chrono::seconds(std::atoi(seconds));
  }

  bool next() { return ++seed_ <= n_ || std::chrono::steady_clock::now() < end_; }
  // 1, 2, ...
  [[nodiscard]] std::uint32_t seed() const { return seed_; }

 private:
  std::uint32_t n_;
  std::uint32_t seed_ = 0;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now();
};

}  // namespace ebb
