// PrefixHash: a hash of the first n of a sequence of leaves, for every n, that follows a changed leaf in O(log n).
//
// A binary tree over the leaves whose nodes stand only where both halves are whole; the first n leaves are then at most
// log2(n) + 1 whole trees, the peaks, and their hash is that of the peaks in order. What it is depends on the n leaves
// alone.
//
//   leaves   0 1 2 3 4 5 6     first 7:  [0..3] [4..5] [6]      first 5:  [0..3] [4]
//
// A zero leaf stands for nothing; a tree of nothing but zeros is zero. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"

namespace ebb {

class PrefixHash {
 public:
  // The peaks of a prefix, to which leaves can be put without changing the tree.
  class Peaks {
   public:
    void push(Hash128 leaf) {
      for (std::size_t n = n_leaves_++; (n & 1U) != 0; n >>= 1) {
        leaf = join(peaks_.back(), leaf);
        peaks_.pop_back();
      }
      peaks_.push_back(leaf);
    }
    [[nodiscard]] Hash128 hash() const { return hash_bytes(std::as_bytes(std::span(peaks_))); }

   private:
    friend class PrefixHash;
    std::size_t n_leaves_ = 0;
    std::vector<Hash128> peaks_;
  };

  [[nodiscard]] std::size_t size() const { return levels_.empty() ? 0 : levels_.front().size(); }
  [[nodiscard]] const Hash128& leaf(std::size_t i) const { return levels_.front()[i]; }

  void push(const Hash128& leaf) {
    if (levels_.empty()) levels_.emplace_back();
    levels_.front().push_back(leaf);
    for (std::size_t k = 0; levels_[k].size() % 2 == 0; ++k) {
      if (k + 1 == levels_.size()) levels_.emplace_back();
      const std::size_t n = levels_[k].size();
      levels_[k + 1].push_back(join(levels_[k][n - 2], levels_[k][n - 1]));
    }
  }
  void set(std::size_t i, const Hash128& leaf) {
    EBB_CHECK(i < size(), "leaf {} of {}", i, size());
    if (levels_.front()[i] == leaf) return;
    levels_.front()[i] = leaf;
    for (std::size_t k = 0; k + 1 < levels_.size() && i / 2 < levels_[k + 1].size(); ++k, i /= 2) {
      levels_[k + 1][i / 2] = join(levels_[k][i / 2 * 2], levels_[k][i / 2 * 2 + 1]);
    }
  }
  // Keeps the first n.
  void truncate(std::size_t n) {
    EBB_CHECK(n <= size(), "the first {} of {} leaves", n, size());
    for (std::vector<Hash128>& level : levels_) {
      level.resize(n);
      n /= 2;
    }
  }

  [[nodiscard]] Peaks peaks(std::size_t n) const {
    EBB_CHECK(n <= size(), "the first {} of {} leaves", n, size());
    Peaks peaks;
    peaks.n_leaves_ = n;
    std::size_t begin = 0;
    for (std::size_t k = levels_.size(); k-- > 0;) {
      if ((n >> k & 1U) == 0) continue;
      peaks.peaks_.push_back(levels_[k][begin >> k]);
      begin += std::size_t{1} << k;
    }
    return peaks;
  }
  // The hash of the first n leaves.
  [[nodiscard]] Hash128 hash(std::size_t n) const { return peaks(n).hash(); }

 private:
  static Hash128 join(const Hash128& left, const Hash128& right) {
    if (left == Hash128() && right == Hash128()) return {};
    return hash_words({left.low, left.high, right.low, right.high});
  }

  std::vector<std::vector<Hash128>> levels_;
};

}  // namespace ebb
