#include "cache/frame_pool.h"

#include <algorithm>
#include <random>
#include <utility>

namespace ebb {

FramePool::FramePool(std::int32_t n_frames) : n_users_(static_cast<std::size_t>(n_frames), 0), limit_(n_frames) {
  EBB_CHECK(n_frames >= 1, "{} frames", n_frames);
  free_.reserve(n_users_.size());
  for (std::int32_t frame = n_frames - 1; frame >= 0; --frame) free_.emplace_back(frame);
}

Status FramePool::acquire(std::span<FrameIndex> out) {
  if (std::cmp_greater(out.size(), n_free())) {
    return error(Code::kOutOfBudget, "{} frames needed, {} of {} free; evict blocks or raise the budget", out.size(),
                 n_free(), n_in_force());
  }
  for (FrameIndex& frame : out) {
    frame = free_.back();
    free_.pop_back();
    n_users_[frame.index()] = 1;
  }
  peak_hot_ = std::max(peak_hot_, n_hot());
  return {};
}

void FramePool::set_limit(std::int32_t n_frames) {
  EBB_CHECK(n_frames >= 0 && n_frames <= this->n_frames(), "a limit of {} frames, of {}", n_frames, this->n_frames());
  limit_ = n_frames;
}

std::int32_t FramePool::lend(std::int32_t n_frames) {
  const std::int32_t n_lent = std::clamp(this->n_frames() - limit_ - n_lent_, 0, n_frames);
  n_lent_ += n_lent;
  return n_lent;
}

void FramePool::take_back(std::int32_t n_frames) {
  EBB_CHECK(n_frames >= 0 && n_frames <= n_lent_, "{} frames come back, and {} are lent", n_frames, n_lent_);
  n_lent_ -= n_frames;
}

void LentFrames::set(std::int32_t n_frames) {
  if (n_frames > n_frames_) n_frames_ += pool_.lend(n_frames - n_frames_);
  if (n_frames < n_frames_) pool_.take_back(std::exchange(n_frames_, n_frames) - n_frames);
}

std::int32_t FramePool::n_users(FrameIndex frame) const {
  EBB_CHECK(frame.value() >= 0 && frame.value() < n_frames(), "frame {} of {}", frame.value(), n_frames());
  return n_users_[frame.index()];
}

void FramePool::share(std::span<const FrameIndex> frames) {
  for (const FrameIndex frame : frames) {
    EBB_CHECK(n_users(frame) > 0, "frame {} shared, and it is not in use", frame.value());
    ++n_users_[frame.index()];
  }
}

void FramePool::release(std::span<const FrameIndex> frames) {
  for (const FrameIndex frame : frames) {
    EBB_CHECK(n_users(frame) > 0, "frame {} released, and it is not in use", frame.value());
    if (--n_users_[frame.index()] == 0) free_.push_back(frame);
  }
}

void FramePool::shuffle_free(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(free_.begin(), free_.end(), random);
}

void FramePool::check_invariants() const {
  const auto n_unused = std::count(n_users_.begin(), n_users_.end(), 0);
  EBB_CHECK(static_cast<std::size_t>(n_unused) == free_.size(), "{} without a user, {} free, {} in all", n_unused,
            free_.size(), n_users_.size());
  std::vector<bool> listed(n_users_.size(), false);
  for (const FrameIndex frame : free_) {
    EBB_CHECK(n_users(frame) == 0, "frame {} is free and has {} users", frame.value(), n_users(frame));
    EBB_CHECK(!listed[frame.index()], "frame {} is free twice", frame.value());
    listed[frame.index()] = true;
  }
  EBB_CHECK(peak_hot_ >= n_hot(), "peak {} below {}", peak_hot_, n_hot());
}

}  // namespace ebb
