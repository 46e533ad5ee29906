// Turn: one request to a session: recall, prefill, decode, settle.
//
// The only place that changes residency (law 5): it makes room before each step, so that hot blocks never exceed the
// budget (law 1), saves what it evicts, puts back what is recalled at its original position without a forward pass, and
// computes again what was lost. It does not compute: the engine runs the steps of all its turns together.
//
//   Turn turn(session, prompt);
//   turn.recall(question, 2);
//   while (turn.n_pending() > 0) { begin_step -> Runner::run -> end_step; then push() the sampled token, or stop }
//   turn.settle();
//
// Thread rule: as its session's; one turn of a session at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/runner.h"
#include "session/match.h"
#include "session/session.h"

namespace ebb {

// A run of the prompt's tokens from one source.
struct PromptPart {
  std::span<const Token> tokens;
  Source source = Source::kUser;
  // Blocks are found by it, as "name#0", "name#1", ...; empty: "turn<n>".
  std::string name;
  double priority = 1.0;
  bool pinned = false;
};

// Where the tokens of one turn came from. Each token of the session before the turn is counted in one of the first six,
// as it stood when the turn's first token was sampled; each token of the prompt in n_new, or where it was adopted in
// n_shared or n_recalled_exact, grafted in n_recalled_approximate.
struct TurnStats {
  std::int32_t n_hot_already = 0;
  std::int32_t n_shared = 0;  // hot in frames of another session, which now serve both: no byte moved
  std::int32_t n_recalled_exact = 0;
  std::int32_t n_recalled_approximate = 0;  // turned to another anchor
  std::int32_t n_recomputed = 0;
  std::int32_t n_holes = 0;
  std::int32_t n_new = 0;
  std::int32_t n_adopted = 0;  // of n_shared and n_recalled_exact: those of the prompt
  std::int32_t n_grafted = 0;  // of n_recalled_approximate
  std::int32_t n_generated = 0;
  std::vector<BlockIndex> evicted;
  std::vector<BlockIndex> recalled;
  std::vector<BlockIndex> recomputed;
  std::vector<BlockIndex> adopted;  // whole blocks of the prompt
  std::vector<BlockIndex> shared;   // of recalled and adopted
  double recall_ms = 0.0;
};

// What of a history may be taken from where the session had it before an edit.
enum class Reuse : std::uint8_t {
  kExact,  // nothing but whole blocks whose exact names are what they would be if they were computed now
  // Also runs of tokens that stood behind other text (law 4): they are grafted, that is their K and V are turned to their
  // new anchors, from the cold store, and counted as approximate.
  kApproximate,
};

// Which holes are filled while there is room.
enum class Holes : std::uint8_t {
  kOfEpoch,  // those that come back where they were, and pinned ones
  kAll,
};

struct ResumeOptions {
  Reuse reuse = Reuse::kExact;
  // Of each block that is grafted, so many first tokens are computed all the same.
  std::int32_t n_recomputed = 0;
  SameReply same_reply = nullptr;
};

class Turn {
 public:
  // The prompt goes behind what the session holds and what its last turn left unfinished.
  Turn(Session& session, std::span<const PromptPart> prompt);
  Turn(Session& session, std::span<const Token> prompt);
  // A turn of a client that says its whole history each time: what the session holds of `history` stays (session/match.h),
  // what else it holds is forgotten, and the rest of `history` is the prompt. At least one token is.
  static Turn resume(Session& session, std::span<const PromptPart> history, const ResumeOptions& options = {});

  // Recalls up to max_blocks cold blocks that share the rarest words with the question, or lie beside one that does, and
  // keeps hot ones like them for this turn (policy/select.h).
  void recall(std::string_view question, std::int32_t max_blocks);
  // Keeps these hot for this turn, as many as half of the budget holds, in the order given. What a cold one comes back
  // from is Remains' affair; one whose bytes are no longer to be had, or have changed, is counted, and computed again by the
  // turn's first steps.
  void recall(std::span<const BlockIndex> blocks);
  // Recalls saved blocks into free frames, leaving n_left_blocks free, so that none leaves for one of them (a pinned one of
  // an older epoch may bring a rebase on, for which blocks leave): pinned ones first, then those that share the rarest words
  // with the question, then the newest. Those of older epochs would come back at the tail and bring the next rebase nearer:
  // they wait for a question, unless they are pinned or all holes are to be filled.
  void refill(std::int32_t n_left_blocks, std::string_view question = {}, Holes holes = Holes::kOfEpoch);
  // Takes whole blocks of what is pending by their exact names, from its begin on, as long as another session has them hot
  // (then its frames serve both) or the cold store has them, and they fit beside what is hot: what any session computed for
  // the same tokens behind the same visible blocks. Of the block that is open before and behind them, a copy of the rows
  // that go on as another's do, where rows are not sealed. At least one token stays pending. Steps do the same where a
  // block ends.
  void adopt_saved();
  // Evicts these where they are hot and full, whatever the policy says and however they are held.
  void evict(std::span<const BlockIndex> blocks);
  // Writes every hot block to the cold store, the open one too, so that the session's image can go on elsewhere.
  Status save_hot();
  // The same behind, of full blocks: returns when the cold store knows what to copy. Full blocks are given to it as they
  // are computed; this is for those that it has lost since.
  void save_hot_behind();
  // The same, and the open block now, since the next token changes it: so that the session's image, as it is now, can go on
  // in another process. After settle() too.
  void save_for_image();
  // From now on at most this many tokens are hot, rounded down to whole blocks: what is over leaves now. Pinned blocks and
  // the open one stay, so the budget may remain higher; returned is what it is now.
  std::int32_t set_budget(std::int32_t n_tokens);
  // Forgets everything at `end` and beyond, and what was said and not computed. `end` must not lie behind the session's.
  void cut(Position end);

  // Tokens whose K and V are not computed yet.
  [[nodiscard]] std::int32_t n_pending() const { return static_cast<std::int32_t>(pending_.size()); }

  // Of the prompt and what came before it: tokens that steps have computed so far, and tokens that they have yet to. What
  // is adopted or grafted later leaves the second for neither.
  [[nodiscard]] std::int32_t n_computed() const;
  [[nodiscard]] std::int32_t n_to_compute() const;

  // Blocks that are to be computed again; steps go on until there are none, prompt or not.
  [[nodiscard]] std::int32_t n_recomputing() const { return static_cast<std::int32_t>(recompute_.size()); }

  // Blocks to compute again come first, one to a step. Then the next up to max_rows pending tokens get their places and
  // frames, evicting for them; the last pending token asks for logits. kOutOfBudget when not even one token finds room, or
  // the model's trained context is full; nothing is computed or lost then.
  Result<SequenceInput> begin_step(std::int32_t max_rows);
  // The step was computed. `mass` is what the runner gives where the step's input asked for it.
  void end_step(std::span<const BlockMass> mass = {});
  // The step failed or was cancelled: its tokens are pending again.
  void abandon_step();
  // A token to compute next.
  void push(Token token);

  // The last word on this turn's counters; call once, after the last step. What is still pending waits in the session
  // for its next turn.
  const TurnStats& settle();
  [[nodiscard]] const TurnStats& stats() const { return stats_; }

 private:
  // A block that is computed again, and how far that is.
  struct Recompute {
    BlockIndex block;
    std::int32_t n_done = 0;
    Lineage lineage;
  };

  // A block that is hot already, and whose frames are yet to be filled; from no record when they are another session's.
  struct Arrival {
    BlockIndex block;
    RecordHandle record = nullptr;
    std::int32_t n_anchors = 0;
    Status status = {};
  };

  // Tokens of the prompt that the session had elsewhere before an edit.
  struct Graft {
    Span to;
    Position from;
  };
  // A block of before the edit, which the cold store has.
  struct Donor {
    Hash128 name;
    Position begin;
  };
  // The frames of a donor, turned by n_anchors.
  struct DonorFrames {
    Hash128 name;
    std::int32_t n_anchors = 0;
    std::vector<std::byte> bytes;
  };

  void begin(std::span<const PromptPart> prompt);
  void hold_as_asked(const PromptPart& part);
  void say(std::span<const PromptPart> prompt);
  void hear(const PromptPart& part);
  [[nodiscard]] Match match(std::span<const Token> history, const SameReply& same_reply) const;

  // turn.cc: steps
  std::optional<SequenceInput> begin_recompute(std::int32_t max_rows);
  void end_recompute();
  void note_mass(std::span<const BlockMass> mass);
  [[nodiscard]] Status no_room() const;
  [[nodiscard]] std::int32_t n_free_blocks() const;
  [[nodiscard]] std::int32_t room_in_last_block() const;
  [[nodiscard]] BlockIndex last_block() const;
  [[nodiscard]] std::int32_t fit_open_frames(std::int32_t n_tokens) const;
  [[nodiscard]] Status no_open_block() const;
  [[nodiscard]] Evidence evidence_now() const;
  [[nodiscard]] std::int32_t n_ungrafted() const;
  [[nodiscard]] std::int32_t fit_adopting(std::int32_t n_tokens) const;
  void place(std::int32_t n_tokens);
  void advance(std::int32_t n_tokens, const std::optional<Hash128>& grafted);
  void open_block(Position begin);

  // turn_counts.cc
  [[nodiscard]] std::int32_t n_new() const;
  void count_prefix();

  // turn_recall.cc, turn_moves.cc: what changes residency besides new tokens
  [[nodiscard]] std::vector<BlockIndex> choose_holes(std::string_view question, Holes holes) const;
  void wake_open_block();
  void make_room(std::int32_t n_blocks);
  void evict_for_budget(std::int32_t n_blocks);
  void evict_for_pool(std::int32_t n_blocks);
  void evict(BlockIndex block);
  Status save(BlockIndex block);
  void save_from(BlockIndex first);
  void save_behind(BlockIndex block);
  // False if the block is not hot now; it may then have been queued for computing.
  bool bring_back(BlockIndex block);
  bool note_return(BlockIndex block, const Status& status);
  // False if they must come one by one.
  bool bring_back_together(std::span<const BlockIndex> blocks);
  Status recall_block(BlockIndex block);
  void note_recalled(BlockIndex block);
  Status try_recall(BlockIndex block);
  [[nodiscard]] Result<RecordHandle> get_record(BlockIndex block) const;
  Result<Arrival> find_record(BlockIndex block);
  Result<Arrival> begin_recall(BlockIndex block);
  Status bring_in(const Arrival& arrival);
  void bring_in_all(std::span<Arrival> arrivals);
  Status end_recall(const Arrival& arrival, const Status& status);
  Status admit(BlockIndex block);

  // turn_frames.cc: bytes of frames, in the form that their block has
  Status copy_in(const EncodedRecord& record, BlockIndex block);
  Status copy_moved(const EncodedRecord& record, BlockIndex block, std::int32_t n_anchors);
  void move_bytes(BlockIndex block, std::span<std::byte> bytes, std::int32_t n_anchors) const;
  void prepare_frames(BlockIndex block);
  [[nodiscard]] std::vector<FrameIndex> frames_of(BlockIndex block) const;
  void write_frames(BlockIndex block, std::span<const std::byte> bytes);

  // turn_adopt.cc: what comes in by its exact name
  [[nodiscard]] bool can_append_block(std::size_t n_appended) const;
  [[nodiscard]] BlockIndex append_cold(std::size_t n_appended);
  void adopt_blocks();
  void adopt_rows();
  [[nodiscard]] BlockStarts::Match find_rows(std::int32_t n_held, std::int32_t n_most) const;
  bool load_rows(const Hash128& name, std::int32_t n_held, std::int32_t n_tokens);
  void drop_last_block();

  // turn_graft.cc: what comes in from where it stood before an edit
  [[nodiscard]] std::deque<Graft> plan_grafts(Position edit, std::span<const Token> rest, std::int32_t n_recomputed);
  Status take_grafts();
  Status take_graft(Graft& graft);
  Status load_donor(const Donor& donor, std::int32_t slot, std::span<const Token> wanted);
  void copy_from_donor(std::int32_t from, Position to, std::int32_t n_tokens);

  // turn_share.cc: frames that serve several sessions
  void publish(BlockIndex block);
  void list_start(BlockIndex block);
  bool share_hot(BlockIndex block);
  Status make_own(BlockIndex block);
  Status make_own_copy(BlockIndex block);

  // turn_anchors.cc: which anchors blocks carry
  Status make_anchors_for(std::int32_t n_tokens);
  void rebase();
  void compact();
  [[nodiscard]] bool keeps_anchor(BlockIndex block) const;
  void place_cold(BlockIndex block);
  void place_cold_open(BlockIndex block);
  void place_at_tail(BlockIndex block);
  void settle_anchors();
  void move_open_block();
  void move_block(BlockIndex block, Position anchor);
  void name_moved(BlockIndex block, std::int32_t n_anchors);
  std::optional<Position> read_saved(BlockIndex block, std::span<std::byte> bytes) const;

  Session& session_;
  Position first_;
  // The session's end as this turn left it; another turn of the same session would move it.
  Position end_;
  // Blocks that this turn wants hot.
  std::vector<BlockIndex> kept_;
  std::vector<Recompute> recompute_;
  std::vector<Token> pending_;
  std::deque<Graft> grafts_;  // of pending_, in order
  std::vector<Donor> donors_;
  DonorFrames donor_;
  std::int32_t n_prompt_ = 0;
  // Where the reply begins; none before its first token.
  std::optional<Position> reply_begin_;
  // Tokens of the step under way, and whether they are those of recompute_.front().
  std::int32_t n_step_ = 0;
  bool step_recomputes_ = false;
  bool prefix_counted_ = false;
  TurnStats stats_;
};

}  // namespace ebb
