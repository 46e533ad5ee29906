// Turn: one request to a session: recall, prefill, decode, settle.
//
// The only place that changes residency (law 5): it makes room before each step, so that hot blocks never exceed the
// budget (law 1), saves what it evicts, and puts back what is recalled at its original position without a forward pass.
// It does not compute: the engine runs the steps of all its turns together.
//
//   Turn turn(session, prompt);
//   turn.recall(question, 2);
//   while (turn.n_pending() > 0) { begin_step -> Runner::run -> end_step; then push() the sampled token, or stop }
//   turn.settle();
//
// Thread rule: as its session's; one turn of a session at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/runner.h"
#include "session/session.h"

namespace ebb {

// Where the tokens of one turn came from. Each token of the session before the turn is counted in one of the first three,
// as it stood when the turn's first token was sampled; each token of the prompt in n_new.
struct TurnStats {
  std::int32_t n_hot_already = 0;
  std::int32_t n_recalled_exact = 0;
  std::int32_t n_holes = 0;
  std::int32_t n_new = 0;
  std::int32_t n_generated = 0;
  std::vector<BlockIndex> evicted;
  std::vector<BlockIndex> recalled;
  double recall_ms = 0.0;
};

class Turn {
 public:
  // `prompt` goes behind what the session holds and what its last turn left unfinished.
  Turn(Session& session, std::span<const Token> prompt);

  // Keeps hot, for this turn, the up to max_blocks blocks that share the rarest words with the question: those that are
  // cold are recalled. A block that is no longer to be had, or has changed, stays a hole and is counted.
  void recall(std::string_view question, std::int32_t max_blocks);

  // Tokens whose K and V are not computed yet.
  [[nodiscard]] std::int32_t n_pending() const { return static_cast<std::int32_t>(pending_.size()); }

  // Gives the next up to max_rows pending tokens their places and frames, evicting for them. The last pending token asks
  // for logits. kOutOfBudget when not even one token finds room, or the model's trained context is full; nothing is
  // computed or lost then.
  Result<SequenceInput> begin_step(std::int32_t max_rows);
  // The step was computed.
  void end_step();
  // The step failed or was cancelled: its tokens are pending again.
  void abandon_step();
  // A token to compute next.
  void push(Token token);

  // The last word on this turn's counters; call once, after the last step. What is still pending waits in the session
  // for its next turn.
  const TurnStats& settle();
  [[nodiscard]] const TurnStats& stats() const { return stats_; }

 private:
  void make_room(std::int32_t n_blocks);
  void evict(BlockIndex block);
  Status save(BlockIndex block);
  Status recall_block(BlockIndex block);
  [[nodiscard]] Evidence evidence() const;
  [[nodiscard]] std::int32_t n_free_blocks() const;
  [[nodiscard]] std::int32_t room_in_last_block() const;
  void place(std::int32_t n_tokens);
  void open_block(Position begin);
  [[nodiscard]] bool is_kept(BlockIndex block) const;
  void count_prefix();

  Session& session_;
  Position first_;
  // The session's end as this turn left it; another turn of the same session would move it.
  Position end_;
  // Hot blocks that the question asks for.
  std::vector<BlockIndex> kept_;
  std::vector<Token> pending_;
  std::int32_t n_prompt_ = 0;
  // Tokens of the step under way.
  std::int32_t n_step_ = 0;
  bool prefix_counted_ = false;
  TurnStats stats_;
};

}  // namespace ebb
