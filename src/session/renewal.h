// Renewal: the first tokens of blocks that came back, computed again where they lie, with what is hot before them in sight.
//
// A block that comes back at another anchor, or beside other blocks than it was computed beside, is an approximation; its first
// tokens, which had least of their own block to look at, are what that shows in most (EPIC, Hu et al. 2024, arXiv 2410.15332, which
// does so for cached documents of a prompt). What is saved of a block stays as it was. It gives steps of a bounded piece each.
// Thread rule: as its session's; the session must outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "model/runner.h"
#include "session/session.h"

namespace ebb {

class Renewal {
 public:
  explicit Renewal(Session& session) : session_(&session) {}

  // Of these, whole blocks that are hot and have not been renewed since they came, each once, in the order of their positions, so that
  // each sees those before it. Blocks that are no more are left out.
  void add(std::span<const BlockIndex> recalled);
  // Of the block under way: while there are some, nothing else is to come or leave.
  [[nodiscard]] std::int32_t n_done() const { return n_done_; }
  // Tokens that steps have computed.
  [[nodiscard]] std::int32_t n_tokens() const { return n_tokens_; }

  // The next piece; nothing when there is none, or none of what waits has frames to be written to.
  std::optional<SequenceInput> begin_step(std::int32_t max_rows, Acts& acts);
  void end_step();
  // What the block under way has then is neither what it was nor what it was to be: it leaves, and its record stays.
  void abandon_step();
  // Nothing waits any more; a block under way leaves.
  void stop();

 private:
  [[nodiscard]] std::int32_t n_rows(BlockIndex block) const;
  void drop_front();

  Session* session_;
  std::deque<BlockIndex> queue_;
  std::int32_t n_done_ = 0;  // of the front's rows
  std::int32_t n_step_ = 0;
  std::int32_t n_tokens_ = 0;
};

}  // namespace ebb
