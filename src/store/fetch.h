// Fetch: records on their way out of the cold store, for one who does not wait on a disk.
//
// Made by ColdStore::fetch. A thread of the store reads the records of one fetch after the other, in the order that
// they were asked for in. So that what nobody has taken yet does not fill memory, it stops while more than its bound is
// read and not taken; whoever waits for a fetch lifts that. A fetch that is let go is read no further.
//
// Thread rule: any thread may call anything; a fetch may outlive its store, and is then ready with kCancelled.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "store/record.h"

namespace ebb {

struct RecordRequest {
  RecordKey key;
  std::vector<std::int32_t> frames;  // ascending; none: all
};

// Who reads what is not in memory: a thread of the store, or whoever asks and would wait for it anyway, without two threads'
// handing it to each other.
enum class ReadBy : std::uint8_t { kThread, kCaller };

class FetchThread;

class Fetch {
 public:
  ~Fetch();
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  [[nodiscard]] bool is_ready() const;
  void wait();
  // One for each request, as ColdStore::get gives them. Waits. What is taken is this fetch's no more: the next time, none.
  [[nodiscard]] std::vector<Result<RecordHandle>> take();

 private:
  friend class FetchThread;
  // What all fetches of a store share, and who outlives whom does not matter.
  struct Room {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t held_bytes = 0;  // read, and not taken
    std::int32_t n_waiting = 0;  // who wait for a fetch
  };

  Fetch(std::shared_ptr<Room> room, std::vector<RecordRequest> requests, std::function<void()> notify);
  void give_back();

  const std::shared_ptr<Room> room_;
  const std::vector<RecordRequest> requests_;
  const std::function<void()> notify_;
  // With room_->mutex held.
  std::vector<std::optional<Result<RecordHandle>>> results_;
  std::size_t n_left_;
  std::size_t next_ = 0;  // to be read; those before are there
  std::size_t held_bytes_ = 0;
};

// Reads what fetches lack.
class FetchThread {
 public:
  using Read = std::function<Result<RecordHandle>(const RecordRequest& request)>;

  // Stops while max_bytes and more are held. `read` may wait.
  FetchThread(std::size_t max_bytes, Read read);
  // What is not read by then is kCancelled.
  ~FetchThread();
  FetchThread(const FetchThread&) = delete;
  FetchThread& operator=(const FetchThread&) = delete;

  // `have` gives what lies in memory, at once, or nothing. `notify` is called on the thread, with no lock held, when
  // the rest was read; never where all was in memory. It owns what it uses: nobody waits for it.
  using Have = std::function<std::optional<RecordHandle>(const RecordRequest& request)>;
  [[nodiscard]] std::shared_ptr<Fetch> fetch(std::vector<RecordRequest> requests, std::function<void()> notify,
                                             const Have& have, ReadBy by);

 private:
  void run();
  // Reads the next record of the first fetch that waits; the lock is held again at the end.
  void read_next(std::unique_lock<std::mutex>& lock);
  // Here and now. Its owner waits and takes it at once: the bound is for what the thread reads ahead.
  void read_all(Fetch& fetch);
  void finish(std::shared_ptr<Fetch> fetch, Result<RecordHandle> result, std::unique_lock<std::mutex>& lock);

  const std::size_t max_bytes_;
  const Read read_;
  const std::shared_ptr<Fetch::Room> room_ = std::make_shared<Fetch::Room>();
  std::deque<std::weak_ptr<Fetch>> waiting_;  // with room_->mutex held
  bool stop_ = false;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace ebb
