// Recompute: blocks of a session whose bytes are lost, computed again, one after the other.
//
// It gives steps of at most a block each, and puts each block's new lineage in place when all of its rows are there. A block
// that finds no room stays a hole. Thread rule: as its session's; the session must outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "model/runner.h"
#include "session/session.h"

namespace ebb {

class Recompute {
 public:
  explicit Recompute(Session& session) : session_(&session) {}

  // Each once. They are computed in the order of their positions, so that each sees those before it; one under way is ended
  // first.
  void add(std::span<const BlockIndex> blocks);
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] std::int32_t n_blocks() const { return static_cast<std::int32_t>(queue_.size()); }
  [[nodiscard]] bool contains(BlockIndex block) const;
  // Tokens of blocks that are under way or wait: computed, and yet to be.
  [[nodiscard]] std::int32_t n_done() const { return queue_.empty() ? 0 : queue_.front().n_done; }
  [[nodiscard]] std::int32_t n_left() const;
  // Blocks from there on are no more.
  void cut(std::int32_t n_blocks);

  // The frames that the next step takes.
  [[nodiscard]] std::int32_t n_frames() const;
  // The next piece; nothing when there is none, or none of what waits finds room.
  std::optional<SequenceInput> begin_step(std::int32_t max_rows, Acts& acts);
  void end_step(Acts& acts);
  void abandon_step();
  // What is not whole goes; nothing waits any more.
  void stop();

 private:
  struct Block {
    BlockIndex block;
    std::int32_t n_done = 0;
    Lineage lineage;
  };

  void drop_front();
  void note_holds();

  Session* session_;
  std::deque<Block> queue_;
  std::int32_t n_step_ = 0;
};

}  // namespace ebb
