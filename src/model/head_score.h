// HeadScore: what the queries of one KV head's group give each block, as model/key_scorer.h defines it.
//
// Each block is bounded over all its keys, or scored by single keys that its sketch stands for; where blocks are many, those whose bounds
// come nearest to the best of any row are (model/key_bounds.h).
//
// Products are of bytes: keys of sketches whose boxes are alike, a run, are told as levels of 7 bits of the box around all of them, and
// queries as signed ones of a row's largest product. A logit is so off by about a hundredth of the widest channel's part, a tenth of what a
// sketch is. Rows are computed side by side, so that no sum runs across a register.
//
// It knows no model and no session. Thread rule: one thread; several of them at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/box_run.h"
#include "model/key_bounds.h"
#include "model/key_digest.h"
#include "model/key_scorer.h"
#include "model/score_kernels.h"

namespace ebb {

// The queries of a group, [row][n_dims], and of which of its heads and of which row of the sequence each is.
struct GroupRows {
  std::vector<float> queries;
  std::vector<std::size_t> of_query_head;
  std::vector<std::int32_t> of_row;
};

class HeadScore {
 public:
  struct By {
    // Null: every block's sketch is scored.
    KeyBounds* bounds = nullptr;
    // 0: blocks are scored by their bounds.
    std::size_t n_sketched = 0;
    // Rows before those that are given: blocks' first_row counts them.
    std::int32_t n_left_out = 0;
  };
  // One head after the other. What is given must outlive it.
  HeadScore(const KeyDigestLayout& layout, std::span<const KeyScorer::Block> blocks, const By& by);

  // From here on of this head (layer * n_kv_heads + KV head), which nobody has asked anything yet.
  void begin(std::size_t head);
  // For keys that were turned by so much; the same rows for each turn.
  void add_queries(std::int32_t n_turned, GroupRows rows);
  // The score of each block.
  std::vector<float> find_scores();

 private:
  [[nodiscard]] std::span<const std::byte> digest(std::size_t block) const {
    return digest_of(blocks_[block], layout_, head_);
  }

  // How many of `blocks` from the first on are a run, whose levels then are those of levels_.
  std::size_t begin_run(std::span<const std::size_t> blocks);
  void bound_all();
  // Of all blocks, by their bounds.
  [[nodiscard]] std::vector<std::size_t> best_blocks();
  void sketch_all();
  void sketch(std::size_t i);
  [[nodiscard]] std::vector<float> share();

  const KeyDigestLayout& layout_;
  const std::span<const KeyScorer::Block> blocks_;
  const By by_;
  // As kernels take them.
  const std::size_t n_dims_;

  std::size_t head_ = 0;
  std::size_t n_rows_ = 0;
  std::size_t n_lanes_ = 0;
  std::vector<std::size_t> of_query_head_;
  std::vector<std::int32_t> of_row_;

  // By how far keys were turned.
  struct Turned {
    std::vector<float> by_channel;  // [2 n_dims_][n_lanes_]: each row, then how large each of its numbers is
    std::vector<float> sizes;       // [n_dims_]: how large they are, summed over rows
  };
  std::map<std::int32_t, Turned> queries_;

  // Of a run of sketches: what their levels stand for, and the queries beside them.
  struct Levels {
    std::vector<float> step, per_step;  // [n_dims_]
    const Turned* queries = nullptr;
  };
  Levels levels_;
  BoxRun box_;
  std::vector<std::int32_t> row_quads_;
  std::vector<float> base_, unit_;
  ByteRows rows_;

  std::vector<float> bounds_;      // [block][n_lanes_ of rows], and room for a run's padding
  std::vector<float> most_bound_;  // [n_lanes_]
  // What each row's softmax goes by, of each block that is scored: its largest logit, and how many times exp(that) all its keys are worth.
  std::vector<std::size_t> scored_;
  std::vector<float> most_;  // [i of scored_][n_lanes_ of rows]
  std::vector<float> sums_;

  // Of one block, or of a run of them.
  std::vector<float> least_, greatest_, scratch_;
  std::vector<unsigned char> code_levels_;
  std::vector<std::byte> sketch_;
  std::vector<std::int32_t> key_quads_;
};

}  // namespace ebb
