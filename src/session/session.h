// Session: one conversation's logical space, its blocks, and where each block's K and V are.
//
// Positions are dense and given once: position p holds tokens()[p]. Blocks cut them into runs of block_size. The session
// knows which blocks are hot (its residency), which were saved (by exact name) and what made each block's K and V
// (lineage). It does not compute and does not choose: Turn (session/turn.h) is the only one that changes it (law 5).
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "cache/frame_memory.h"
#include "cache/frame_pool.h"
#include "cache/residency.h"
#include "policy/policy.h"
#include "policy/rare_words.h"
#include "session/lineage.h"
#include "store/ram_tier.h"
#include "text/vocabulary.h"

namespace ebb {

// What a session stands on; all must outlive it.
struct SessionParts {
  FramePool& pool;
  FrameMemory& memory;
  const Vocabulary& vocabulary;
  const Policy& policy;
  // Null: what is evicted is lost, and becomes a hole.
  RamTier* tier = nullptr;
  Residency::Shape shape;
  Hash128 model;
  // Positions that the model was trained for.
  std::int32_t n_ctx_train = 0;
};

struct SessionOptions {
  // The most tokens that may be hot, rounded down to whole blocks; at most the pool.
  std::int32_t budget_tokens = 0;
};

// Counted from the session's start.
struct SessionStats {
  std::int64_t n_evicted_blocks = 0;
  std::int64_t n_saved_blocks = 0;
  std::int64_t n_recalled_blocks = 0;
  std::int64_t n_missed_recalls = 0;  // saved once, and no longer to be had
  std::int32_t peak_hot_blocks = 0;
};

class Session {
 public:
  Session(const SessionParts& parts, const SessionOptions& options);

  // Those whose K and V were computed, by position.
  [[nodiscard]] std::span<const Token> tokens() const { return tokens_; }
  // Said already, and computed with the next turn.
  [[nodiscard]] std::int32_t n_unfinished() const { return static_cast<std::int32_t>(unfinished_.size()); }
  [[nodiscard]] Position end() const { return Position(static_cast<std::int32_t>(tokens_.size())); }
  [[nodiscard]] const Residency& residency() const { return residency_; }
  [[nodiscard]] const SessionStats& stats() const { return stats_; }
  [[nodiscard]] std::int32_t n_ctx_train() const { return parts_.n_ctx_train; }

  [[nodiscard]] std::int32_t block_size() const { return parts_.shape.block_size; }
  [[nodiscard]] std::int32_t n_blocks() const { return residency_.n_blocks(); }
  [[nodiscard]] std::int32_t budget_blocks() const { return budget_blocks_; }
  [[nodiscard]] std::int32_t n_hot_blocks() const;
  [[nodiscard]] std::int32_t n_hot_tokens() const;
  // The text of a block, control tokens shown.
  [[nodiscard]] Result<std::string> block_text(BlockIndex block) const;
  // Hash of the block's tokens, of what was visible when they were computed, of the model and of the frame layout.
  [[nodiscard]] Hash128 exact_name(BlockIndex block) const;

  void check_invariants() const;

 private:
  friend class Turn;

  struct Block {
    Lineage lineage;
    // Set once the block is full, when its name can no longer change.
    mutable std::optional<Hash128> name;
  };

  [[nodiscard]] std::span<const Token> block_tokens(BlockIndex block) const;
  [[nodiscard]] bool is_full(BlockIndex block) const;
  // What a block at `block` sees before itself.
  [[nodiscard]] Hash128 visible_before(BlockIndex block) const;
  [[nodiscard]] RecordKey record_key(BlockIndex block) const;

  SessionParts parts_;
  std::int32_t budget_blocks_;
  std::vector<Token> tokens_;
  // The token that ended the last reply, or what a cancelled turn left.
  std::vector<Token> unfinished_;
  Residency residency_;
  std::vector<Block> blocks_;
  WordIndex words_;
  SessionStats stats_;
};

}  // namespace ebb
