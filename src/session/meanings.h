// Meanings: what texts mean, as vectors of their passages by an embedding model, and who computes them.
//
// A session asks for those of its blocks behind the turn, by exact name, and for those of what was just said when it looks; it never
// waits by itself: a wait (MeaningWait) tells when enough is there. Whoever computes them (engine/meaning_thread.h) keeps them beside the
// blocks' records and counts their memory in a room that all sessions share: while somebody holds a meaning, it is there.
//
// It knows no model and no store. Thread rule: a meaning is set once, by who computes it; everything else any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/byte_room.h"
#include "base/clock.h"
#include "base/hash.h"
#include "policy/sentences.h"

namespace ebb {

// Vectors of length 1, each as a scale (f32, little-endian) and 8 bits a dimension. A cosine of two is off by some 0.001 for that, which
// changes no rank that anything goes by.
class MeaningVectors {
 public:
  MeaningVectors() = default;
  // n_vectors of bytes_of(n_dimensions) each. Not finite scales are zero.
  MeaningVectors(std::size_t n_dimensions, std::vector<std::byte> bytes);
  void add(std::span<const float> vector);

  [[nodiscard]] static std::size_t bytes_of(std::size_t n_dimensions) { return sizeof(float) + n_dimensions; }
  [[nodiscard]] std::size_t size() const { return n_dimensions_ == 0 ? 0 : bytes_.size() / bytes_of(n_dimensions_); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // Of its i-th and the other's j-th, which have as many dimensions.
  [[nodiscard]] double cosine(std::size_t i, const MeaningVectors& other, std::size_t j) const;

 private:
  std::size_t n_dimensions_ = 0;
  std::vector<std::byte> bytes_;
};

class Meaning {
 public:
  // `name`: of a block's exact name and these texts; zero of what is no block's.
  Meaning(const Hash128& name, Passages passages);
  // Its memory goes back to the room that it was taken from.
  ~Meaning();
  Meaning(const Meaning&) = delete;
  Meaning& operator=(const Meaning&) = delete;

  [[nodiscard]] const Hash128& name() const { return name_; }
  // By who computes it, until it is done: texts are kept no longer.
  [[nodiscard]] const std::vector<std::string>& texts() const { return passages_.texts; }
  // Passages::first_begins_before.
  [[nodiscard]] bool begins_before() const { return passages_.first_begins_before; }
  // Made, or never to be.
  [[nodiscard]] bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  // Of one that is done; none where there was no room, or no vector to be had.
  [[nodiscard]] const MeaningVectors& vectors() const { return vectors_; }

  // By who computes it, once. `room`: where the vectors' bytes were taken; null: not counted.
  void set(MeaningVectors vectors, ByteRoom* room);
  void give_up() { set({}, nullptr); }

 private:
  Hash128 name_;
  Passages passages_;
  MeaningVectors vectors_;
  ByteRoom* room_ = nullptr;
  std::atomic<bool> is_done_ = false;
};

// What a look waits for. Ready once all is done, or time is over.
class MeaningWait {
 public:
  MeaningWait(double most_ms, std::function<void()> notify) : most_ms_(most_ms), notify_(std::move(notify)) {}
  [[nodiscard]] bool is_ready() const;
  void wait();
  // From the beginning until it was ready.
  [[nodiscard]] double ms() const;

  // By who computes: whether its time is over; and it is ready, whoever waits is woken.
  [[nodiscard]] bool is_over() const { return since_.elapsed_ms() >= most_ms_; }
  void finish();

 private:
  const Stopwatch since_;
  const double most_ms_;
  const std::function<void()> notify_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  double ms_ = 0.0;
  bool is_ready_ = false;
};

class MeaningSource {
 public:
  virtual ~MeaningSource() = default;
  // Of a block's text, computed when nothing else is to be, or had from where it was kept. Null while too many wait already: ask again
  // later. What nobody holds any more is not computed.
  [[nodiscard]] virtual std::shared_ptr<Meaning> ask_behind(const Hash128& exact_name, Passages passages) = 0;
  // Of what was just said, before all others.
  [[nodiscard]] virtual std::shared_ptr<Meaning> ask_now(std::string_view text) = 0;
  // Brings those of blocks forward, in their order. `notify` is called on another thread, and not where all is done already.
  [[nodiscard]] virtual std::shared_ptr<MeaningWait> await(std::vector<std::shared_ptr<Meaning>> wanted, double most_ms,
                                                           std::function<void()> notify) = 0;
};

}  // namespace ebb
