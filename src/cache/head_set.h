// HeadSet: which of a block's (layer, KV head) places something is about: where it is hot, where it leaves or comes.
//
// Heads are numbered [layer][KV head] (BlockShape::head). It knows no frames. Thread rule: a value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace ebb {

class HeadSet {
 public:
  HeadSet() = default;
  // None of n_heads.
  explicit HeadSet(std::size_t n_heads) : n_heads_(n_heads), words_((n_heads + 63) / 64, 0) {}

  [[nodiscard]] static HeadSet all(std::size_t n_heads) {
    HeadSet set(n_heads);
    for (std::uint64_t& word : set.words_) word = ~std::uint64_t{0};
    if (n_heads % 64 != 0) set.words_.back() >>= 64 - n_heads % 64;
    return set;
  }

  [[nodiscard]] std::size_t n_heads() const { return n_heads_; }
  [[nodiscard]] bool contains(std::size_t head) const { return (words_[head / 64] >> (head % 64) & 1U) != 0; }
  [[nodiscard]] std::int32_t count() const {
    int n = 0;
    for (const std::uint64_t word : words_) n += std::popcount(word);
    return n;
  }
  [[nodiscard]] bool empty() const { return count() == 0; }
  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }

  void add(std::size_t head) {
    EBB_CHECK(head < n_heads_, "head {} of {}", head, n_heads_);
    words_[head / 64] |= std::uint64_t{1} << (head % 64);
  }
  void remove(std::size_t head) {
    EBB_CHECK(head < n_heads_, "head {} of {}", head, n_heads_);
    words_[head / 64] &= ~(std::uint64_t{1} << (head % 64));
  }

  // Both of the same shape, here and below.
  HeadSet& operator|=(const HeadSet& other) {
    check_same_shape(other);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  HeadSet& operator&=(const HeadSet& other) {
    check_same_shape(other);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  HeadSet& operator-=(const HeadSet& other) {
    check_same_shape(other);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  friend HeadSet operator|(HeadSet a, const HeadSet& b) { return a |= b; }
  friend HeadSet operator&(HeadSet a, const HeadSet& b) { return a &= b; }
  friend HeadSet operator-(HeadSet a, const HeadSet& b) { return a -= b; }
  friend bool operator==(const HeadSet&, const HeadSet&) = default;

  // Calls act(head) by rising head.
  template <class Act>
  void for_each(const Act& act) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) {
        act(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  void check_same_shape(const HeadSet& other) const {
    EBB_CHECK(n_heads_ == other.n_heads_, "a set of {} heads meets one of {}", n_heads_, other.n_heads_);
  }

  std::size_t n_heads_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace ebb
