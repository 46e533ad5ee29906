// FramePool: which frames are in use, by how many, under the budget.
//
// One pool serves all layers, KV heads and sessions of a row size. It hands out frame indices and keeps law 1: frames in
// use never exceed n_frames. A frame that several use counts once and is free again when the last lets go. It does not
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
  [[nodiscard]] std::int32_t n_free() const { return std::max(0, limit_ - n_hot()); }
  // A budget below n_frames, at run time. What is in use stays so; above the limit, no frame is free.
  void set_limit(std::int32_t n_frames);
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
  std::int32_t peak_hot_ = 0;
};

}  // namespace ebb
