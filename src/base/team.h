// Team: threads that share the parts of one piece of work after another, and wait politely in between.
//
// A part is taken by whoever comes first, the caller included, and a piece is done when its parts are. So a thread that other programs keep
// from running delays the part that it has begun and nothing else. Whoever has nothing to do looks for work for some microseconds and then
// sleeps: its core is free for others, also for the thread that it waits for. It does not know what the work is.
// Thread rule: one thread at a time calls run(); parts may not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace ebb {

class Team {
 public:
  // The caller of run() is one of n_threads, at least 1.
  explicit Team(std::int32_t n_threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] std::int32_t n_threads() const { return static_cast<std::int32_t>(threads_.size()) + 1; }

  // work(part) once for each part of [0, n_parts); returns when all have ended, and what they wrote is there to read. Nothing may be thrown.
  template <class Work>
  void run(std::int32_t n_parts, const Work& work) {
    run_parts(n_parts, {[](const void* given, std::int32_t part) { (*static_cast<const Work*>(given))(part); }, &work});
  }

 private:
  // Of a cache: what all threads write does not lie beside what they read.
  static constexpr std::size_t kLine = 64;

  struct Task {
    void (*call)(const void* work, std::int32_t part) = nullptr;
    const void* work = nullptr;
  };

  void run_parts(std::int32_t n_parts, const Task& task);
  bool do_part();
  void serve();
  void wait_for_work();

  // The number of the piece above, the parts of it that nobody has taken below. task_ and n_parts_ are read by those alone who have taken a part,
  // and change only when no part is under way.
  alignas(kLine) std::atomic<std::uint64_t> left_{0};
  Task task_;
  std::int32_t n_parts_ = 0;
  alignas(kLine) std::atomic<std::int32_t> n_done_{0};
  std::atomic<bool> caller_sleeps_{false};
  // What threads sleep on, and how many do.
  std::atomic<std::int32_t> n_calls_{0};
  std::atomic<std::int32_t> n_asleep_{0};
  std::atomic<bool> ends_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace ebb
