// FramePool: which frames are in use, by how many, under the budget that is in force.
//
// One pool serves all layers, KV heads and sessions of a row size. It hands out frame indices and keeps law 1: frames in
// use never exceed what is in force, a limit and what is lent beyond it for a while (to prompts), n_frames in all. A frame that several use counts once and is free again when the last lets go. It does not
// know blocks, sessions or bytes.
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace ebb {

class FramePool {
 public:
  explicit FramePool(std::int32_t n_frames);

  [[nodiscard]] std::int32_t n_frames() const { return static_cast<std::int32_t>(n_users_.size()); }
  [[nodiscard]] std::int32_t n_hot() const { return n_frames() - static_cast<std::int32_t>(free_.size()); }
  // That may be in use now.
  [[nodiscard]] std::int32_t n_in_force() const { return std::min(n_frames(), limit_ + n_lent_); }
  [[nodiscard]] std::int32_t n_free() const { return std::max(0, n_in_force() - n_hot()); }
  // In use beyond what may be.
  [[nodiscard]] std::int32_t n_over() const { return std::max(0, n_hot() - n_in_force()); }
  // A budget below n_frames, at run time. What is in use stays so; above the limit, no frame is free.
  void set_limit(std::int32_t n_frames);
  // Lends as many of n_frames as there are beyond the limit and are not lent yet; how many. Only LentFrames asks.
  std::int32_t lend(std::int32_t n_frames);
  void take_back(std::int32_t n_frames);
  // The most frames that were ever in use at once.
  [[nodiscard]] std::int32_t peak_hot() const { return peak_hot_; }

  // 0 of a free frame.
  [[nodiscard]] std::int32_t n_users(FrameIndex frame) const;

  // Fills `out` with frames of one user, or takes none and says how many were missing.
  Status acquire(std::span<FrameIndex> out);
  // One more user of frames that are in use.
  void share(std::span<const FrameIndex> frames);
  // One user fewer.
  void release(std::span<const FrameIndex> frames);

  // Puts the free frames in another order, so that tests can show that placement changes nothing.
  void shuffle_free(std::uint64_t seed);

  void check_invariants() const;

 private:
  std::vector<FrameIndex> free_;  // the last is handed out first
  std::vector<std::int32_t> n_users_;
  std::int32_t limit_;
  std::int32_t n_lent_ = 0;
  std::int32_t peak_hot_ = 0;
};

// Frames that a pool lends to one session; they go back with it. The pool must outlive it.
class LentFrames {
 public:
  explicit LentFrames(FramePool& pool) : pool_(pool) {}
  ~LentFrames() { set(0); }
  LentFrames(const LentFrames&) = delete;
  LentFrames& operator=(const LentFrames&) = delete;

  [[nodiscard]] std::int32_t n_frames() const { return n_frames_; }
  // Gives back what is over, or borrows what is lacking, as far as there is any.
  void set(std::int32_t n_frames);

 private:
  FramePool& pool_;
  std::int32_t n_frames_ = 0;
};

}  // namespace ebb
