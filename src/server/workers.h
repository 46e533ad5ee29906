// Workers: threads for what is too slow for the thread that reads sockets and is not the engine's work: rendering and tokenizing
// prompts.
//
// Some renderings take seconds, as those of a hostile request do. Another thread takes the place of one that works for longer than a
// moment, until there are as many as may be; and who takes much processor time gets less of it from then on. An owner who has fewer at
// work comes first. Of large bodies together only so many bytes are worked on at once, since a rendering takes some ten times those; they
// hold no small ones.
// Thread rule: post() from any thread; what is posted must not throw.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace ebb {

class Workers {
 public:
  struct Size {
    int n_threads = 1;  // that are not held up by long work
    int n_most = 1;     // with those that are
  };
  explicit Workers(Size size);
  // What waits is dropped.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  enum class Room : std::uint8_t { kTaken, kNone, kNoneOfOwner };
  struct Most {
    std::size_t all = 0;
    std::size_t of_owner = 0;
  };
  // Nothing is posted where as many wait already as may, of all or of this owner's. n_bytes: of what is worked on.
  Room post(std::string_view owner, std::size_t n_bytes, std::function<void()> work, const Most& most);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::string owner;
    std::size_t n_bytes = 0;
    std::function<void()> work;
  };
  struct Working {
    std::string owner;
    std::size_t n_bytes = 0;
    Clock::time_point since;
    std::chrono::nanoseconds processor_time_before{};  // of its thread
  };
  struct Thread {
    std::jthread thread;
    pid_t id = 0;
    bool is_working = false;
    bool is_held_up = false;  // another took its place, and it leaves when its work is done
    bool is_put_back = false;
    bool has_left = false;
    Working working;
  };

  // Fewer do where the system gives none.
  void add_thread();
  void work(const std::stop_token& stop, Thread& self);
  void watch(const std::stop_token& stop);
  void hold_up(Clock::time_point now);
  [[nodiscard]] bool keeps_watch() const;
  [[nodiscard]] std::deque<Waiting>::iterator find_next();

  const Size size_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Waiting> waiting_;
  std::list<Thread> threads_;
  // Last, so that it is joined first: it is what adds threads and takes them away.
  std::jthread watch_;
};

}  // namespace ebb
