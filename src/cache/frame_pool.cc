#include "cache/frame_pool.h"

#include <algorithm>
#include <random>
#include <utility>

namespace ebb {

FramePool::FramePool(std::int32_t n_frames) : in_use_(static_cast<std::size_t>(n_frames), false), limit_(n_frames) {
  EBB_CHECK(n_frames >= 1, "{} frames", n_frames);
  free_.reserve(in_use_.size());
  for (std::int32_t frame = n_frames - 1; frame >= 0; --frame) free_.emplace_back(frame);
}

Status FramePool::acquire(std::span<FrameIndex> out) {
  if (std::cmp_greater(out.size(), n_free())) {
    return error(Code::kOutOfBudget, "{} frames needed, {} of {} free; evict blocks or raise the budget", out.size(),
                 n_free(), limit_);
  }
  for (FrameIndex& frame : out) {
    frame = free_.back();
    free_.pop_back();
    in_use_[frame.index()] = true;
  }
  peak_hot_ = std::max(peak_hot_, n_hot());
  return {};
}

void FramePool::set_limit(std::int32_t n_frames) {
  EBB_CHECK(n_frames >= 0 && n_frames <= this->n_frames(), "a limit of {} frames, of {}", n_frames, this->n_frames());
  limit_ = n_frames;
}

void FramePool::release(std::span<const FrameIndex> frames) {
  for (const FrameIndex frame : frames) {
    EBB_CHECK(frame.value() >= 0 && frame.value() < n_frames() && in_use_[frame.index()],
              "frame {} released, and it is not in use", frame.value());
    in_use_[frame.index()] = false;
    free_.push_back(frame);
  }
}

void FramePool::shuffle_free(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(free_.begin(), free_.end(), random);
}

void FramePool::check_invariants() const {
  const auto n_in_use = std::count(in_use_.begin(), in_use_.end(), true);
  EBB_CHECK(static_cast<std::size_t>(n_in_use) + free_.size() == in_use_.size(), "{} in use, {} free, {} in all",
            n_in_use, free_.size(), in_use_.size());
  std::vector<bool> listed(in_use_.size(), false);
  for (const FrameIndex frame : free_) {
    EBB_CHECK(!in_use_[frame.index()], "frame {} is free and in use", frame.value());
    EBB_CHECK(!listed[frame.index()], "frame {} is free twice", frame.value());
    listed[frame.index()] = true;
  }
  EBB_CHECK(peak_hot_ >= n_hot(), "peak {} below {}", peak_hot_, n_hot());
}

}  // namespace ebb
