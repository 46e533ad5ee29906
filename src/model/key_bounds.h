// KeyBounds: what blocks' keys are bounded by, of all heads, as bytes that lie one behind the other, so that a look over many blocks reads
// neither their digests nor what lies far apart.
//
// Of each block and head the middle of each channel and the distance from it (KeyCuboid, or half of KeyBox), as levels of 7 bits of the box
// around a run of blocks. They are made when somebody first looks and kept for the next look: runs of blocks that are the same as then stay.
// Runs depend on the blocks alone, so that what is kept changes no bit.
//
// It knows no queries and no session. Bytes: 2 head_dim_k a block and head. Thread rule: begin() by one thread, then each head by one of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/box_run.h"
#include "model/key_digest.h"
#include "model/key_scorer.h"

namespace ebb {

class KeyBounds {
 public:
  // Blocks one behind the other whose boxes are alike and that were turned alike.
  struct Run {
    std::size_t first = 0;
    std::size_t n = 0;
    std::int32_t n_turned = 0;
    // What levels stand for, of middles and then of distances: least + step * level; [2 padded head_dim_k].
    std::vector<float> least;
    std::vector<float> step;
    // No later block belongs to it.
    bool is_closed = false;
  };
  struct Head {
    std::vector<Run> runs;
    // [block][2 padded head_dim_k / 4], four channels in one number (ByteKeys), and room for what is read beyond the last.
    std::vector<std::int32_t> quads;
  };

  // Of this many blocks and heads.
  [[nodiscard]] static std::size_t bytes_of(std::size_t n_blocks, std::size_t n_heads, const KeyDigestLayout& layout);

  // From here on of these blocks, which must stay where they are while heads are asked for. What is kept of others is forgotten.
  void begin(std::span<const KeyScorer::Block> blocks, const KeyDigestLayout& layout, std::size_t n_heads, bool is_box);
  // Of layer * n_kv_heads + KV head.
  const Head& head(std::size_t head);
  void clear();

 private:
  struct Known {
    std::uint64_t digest_id = 0;
    std::int32_t n_turned = 0;
    friend bool operator==(const Known&, const Known&) = default;
  };

  void add_run(std::size_t head, std::size_t first);
  void put_levels(std::size_t head, const Run& run);

  std::span<const KeyScorer::Block> blocks_;
  KeyDigestLayout layout_;
  bool is_box_ = false;
  std::size_t n_dims_ = 0;  // padded
  std::vector<Known> known_;
  std::vector<Head> heads_;
};

}  // namespace ebb
