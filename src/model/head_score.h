// HeadScore: what the queries of one KV head's group give each block, as model/key_scorer.h defines it.
//
// Each block is bounded over all its keys, or scored by single keys that its sketch stands for; where blocks are many, those whose bounds
// come nearest to the best of any row are. Rows are computed side by side, so that no sum runs across a register.
//
// It knows no model and no session. Thread rule: one thread; several of them at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/key_digest.h"
#include "model/key_scorer.h"

namespace ebb {

// The queries of a group, [row][n_dims], and of which of its heads and of which row of the sequence each is.
struct GroupRows {
  std::vector<float> queries;
  std::vector<std::size_t> of_query_head;
  std::vector<std::int32_t> of_row;
};

class HeadScore {
 public:
  // By kSketch, kCuboid or kBox. What is given must outlive it.
  HeadScore(const KeyDigestLayout& layout, std::size_t head, std::span<const KeyScorer::Block> blocks,
            KeyEstimate estimate, std::size_t most_sketched);

  // For keys that were turned by so much; the same rows for each turn.
  void add_queries(std::int32_t n_turned, GroupRows rows);
  // Once: the score of each block.
  std::vector<float> find_scores();

 private:
  // The same queries for two ways of going through them.
  struct Turned {
    std::vector<float> by_row;      // [row][2 n_dims]: each, then how large each of its numbers is
    std::vector<float> by_channel;  // [n_dims][n_lanes_ of rows]
  };

  [[nodiscard]] bool needs_bounds() const { return !sketches_ || blocks_.size() > most_sketched_; }
  [[nodiscard]] std::span<const std::byte> digest(std::size_t block) const {
    return blocks_[block].digests.subspan(head_ * layout_.bytes(), layout_.bytes());
  }
  [[nodiscard]] const Turned& turned(std::size_t block) const { return queries_.at(blocks_[block].n_turned); }

  void bound_all();
  void bound(std::size_t first, std::size_t end);
  void read_middle(std::size_t block);
  // Of all blocks, by their bounds.
  [[nodiscard]] std::vector<std::size_t> best_blocks();
  void sketch_all();
  void sketch(std::size_t i);
  void take_bounds();
  [[nodiscard]] std::vector<float> share();

  const KeyDigestLayout& layout_;
  const std::size_t head_;
  const std::span<const KeyScorer::Block> blocks_;
  const bool sketches_;
  const bool is_box_;
  const std::size_t most_sketched_;

  std::size_t n_rows_ = 0;
  std::size_t n_lanes_ = 0;
  std::vector<std::size_t> of_query_head_;
  std::vector<std::int32_t> of_row_;
  std::map<std::int32_t, Turned> queries_;  // by how far keys were turned

  std::size_t bound_stride_ = 0;
  std::vector<float> bounds_;  // [row][block]
  // What each row's softmax goes by, of each block that is scored: its largest logit, and how many times exp(that) all its keys are worth.
  std::vector<std::size_t> scored_;
  std::vector<float> most_;  // [i of scored_][n_lanes_ of rows]
  std::vector<float> sums_;

  // Of one block, or of blocks side by side.
  std::vector<float> least_, step_, planes_, scratch_, base_, unit_;
  std::vector<std::int32_t> steps_, codes_;
};

}  // namespace ebb
