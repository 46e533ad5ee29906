// Turn: one request to a session: what it says, until its last token is computed.
//
// It keeps what is pending, asks the session for each step's plan and tells it what was computed. What may wait for disks or
// moves many bytes happens between steps, in bounded waves (prepare), so that one session's turn does not hold up those that
// are computed with it.
//
//   Turn turn(session, prompt);
//   turn.recall({.cues = find_cues(question)});
//   while (turn.n_pending() > 0) { begin_step -> Runner::run -> end_step; then push() the sampled token, or stop }
//   turn.settle();
//
// Thread rule: as its session's; one turn of a session at a time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/runner.h"
#include "session/freshness.h"
#include "session/match.h"
#include "session/pending.h"
#include "session/plan.h"
#include "session/prompt.h"
#include "session/recompute.h"
#include "session/renewal.h"
#include "session/reread.h"
#include "session/saying.h"
#include "session/session.h"
#include "session/token_origins.h"

namespace ebb {

// The last tokens of a prompt, before which a turn looks again for what the prompt let go. More: what is asked is longer than most
// questions, and more is computed before it comes back. Less: the first words of a question do not see what it brings back.
inline constexpr std::int32_t kTailTokens = 128;

// Of its queries those that are asked what they look for, the last. More: a choice takes longer, and a question that is long is asked
// whole. Less: what stands at its beginning is not.
inline constexpr std::int32_t kTailQueries = 64;

// How often they are asked at most: what comes back may say where to look next, as a heading does. More: what is found last is of little use, and
// the tail is computed once more for it. Less: what is two steps away stays there.
inline constexpr std::int32_t kMostTailLooks = 2;

// Where the tokens of one turn came from, as it stood when its first token was sampled: each token of the session before the
// turn and each of its prompt, once.
struct TurnStats {
  TokenOrigins from;
  std::int32_t n_adopted = 0;  // of the prompt, shared or recalled exactly
  std::int32_t n_grafted = 0;  // of the prompt, recalled approximately
  std::int32_t n_generated = 0;
  // Of the prompt and of what was lost before it, by a forward pass; also what has left again since.
  std::int32_t n_computed = 0;
  // Of the prompt's tail, once more or several times, since what its queries asked for came back.
  std::int32_t n_computed_again = 0;
  // Of holes, those that the system says: an agent's own instructions, and its tools.
  std::int32_t n_instruction_holes = 0;
  // Of what is cleared, what is in sight all the same: it came back for what was asked, or is pinned.
  std::int32_t n_cleared_back = 0;
  // Of blocks that came back, computed again where they lie (SessionOptions::renewed_tokens).
  std::int32_t n_renewed = 0;
  // Blocks that it asked back and that stayed away, since reading them would have taken too long (RecallAsk::most_ms).
  std::int32_t n_late = 0;
  // What was looked for, and what was found.
  std::vector<RecallLook> looks;
  WritingLooks writing;
  // While the prompt was computed, and from then on. What is over leaves in between.
  BudgetUse prompt;
  BudgetUse reply;
  Acts acts;
};

// What of a history may be taken from where the session had it before an edit.
enum class Reuse : std::uint8_t {
  kExact,  // nothing but whole blocks whose exact names are what they would be if they were computed now
  // Also runs of tokens that stood behind other text (law 4): they are grafted, that is their K and V are turned to their
  // new anchors, from the cold store, and counted as approximate.
  kApproximate,
  // The same runs, but for what is stale of them (session/freshness.h), which is computed again. From the first turn that asks for it
  // on, it is noted what rows rely on; what was computed before that, or by another session, is computed again.
  kFresh,
};

// As flags and requests have them.
inline constexpr std::array<std::pair<std::string_view, Reuse>, 3> kReuseNames = {
    {{"exact", Reuse::kExact}, {"fresh", Reuse::kFresh}, {"approximate", Reuse::kApproximate}}};
[[nodiscard]] std::optional<Reuse> find_reuse(std::string_view name);
[[nodiscard]] std::string_view name_of(Reuse reuse);

struct ResumeOptions {
  Reuse reuse = Reuse::kExact;
  // A message that is answered anew has its end computed once more, so that it is looked for as a new one is (Turn::leave_tail).
  bool looks_again = true;
  // Of approximate reuse so many first tokens of each grafted block are computed all the same.
  std::int32_t n_recomputed = 0;
  SameReply same_reply = {};
};

class Turn {
 public:
  // The prompt goes behind what the session holds and what its last turn left unfinished.
  Turn(Session& session, Prompt prompt);
  // A turn of a client that says its whole history each time: what the session holds of `history` stays (session/match.h),
  // what else it holds is forgotten, and the rest of `history` is the prompt. At least one token is.
  static Turn resume(Session& session, const Prompt& history, const ResumeOptions& options = {});

  // To be brought back before the prompt is computed, and kept hot for this turn: what the selectors choose by names and by words
  // (policy/selector.h). Once more before the prompt's last tokens (kTailTokens), where the prompt let blocks go: of a document and a
  // question that are longer than the budget, what the question is about has left before the question comes. And once by the queries
  // of those tokens, when they are computed: where they look for what is cold, it comes back and they are computed again,
  // and asked again (kMostTailLooks).
  // While the reply is written its last queries are asked as well, for the words to come: after each token where much was computed before
  // it, then now and then, so that all looks together take a twentieth of what the turn computes; and its words, when it has said a rare one.
  void recall(RecallAsk ask);
  // These, as many as half of the budget holds, in the order given. One whose bytes are no longer to be had, or have changed,
  // is counted, and computed again by the turn's first steps.
  void recall(std::span<const BlockIndex> blocks);
  // Then saved blocks fill holes while there is room beside the prompt and n_reply_blocks for the reply (plan_left_free): pinned
  // ones first, then those that share the rarest words with the question, then the newest. Those of older epochs would come back
  // at the tail and bring the next rebase nearer: they wait for a question, unless they are pinned or all holes are to be filled.
  // Of a session that fits its budget whole, what is no longer to be had is computed again: it has no holes then.
  void refill(std::int32_t n_reply_blocks, std::vector<Cue> cues = {}, Holes holes = Holes::kOfEpoch);

  // One bounded piece of what comes before the next step: blocks that others computed or that were evicted come in, rows are
  // copied, room is made.
  enum class Ready : std::uint8_t {
    kNow,    // the next step can begin
    kMore,   // call again
    kWaits,  // records are being read, or meanings computed; nothing else is to be done for this turn
  };
  // `max_rows` is that of the next step.
  Ready prepare(std::int32_t max_rows);
  // All of it; waits for disks.
  void prepare_all(std::int32_t max_rows);
  // What the next step, or the next piece of prepare(), needs of the pool beyond what the session itself gives back.
  [[nodiscard]] std::int32_t n_frames_from_pool(std::int32_t max_rows) const;

  // Tokens whose K and V are not computed yet.
  [[nodiscard]] std::int32_t n_pending() const { return pending_.size(); }
  // Whether the next of them choose what they look at by whole blocks.
  [[nodiscard]] bool computes_whole_blocks() const {
    return n_pending() > 0 && session_->hot().sight().has_squares(session_->end());
  }
  // Tokens of the prompt and of what came before it have computed so far, and those that they have yet to. What
  // is adopted or grafted later leaves the second for neither.
  [[nodiscard]] std::int32_t n_computed() const;
  [[nodiscard]] std::int32_t n_to_compute() const;
  // Tokens that the model cannot see and that this turn did not compute: at its first sampled token, and before that as far as
  // is known.
  [[nodiscard]] std::int32_t n_unseen() const;
  // Blocks that are to be computed again; steps go on until there are none, prompt or not.
  [[nodiscard]] std::int32_t n_recomputing() const { return recompute_.n_blocks(); }
  // Tokens of prompts that are to be read again for the policy's evidence. The steps that come next do that; where none come, it
  // waits for the session's next turn.
  [[nodiscard]] std::int32_t n_rereading() const { return reread_.n_tokens(); }

  // What was computed and is to be read again, blocks to compute again and what is to be renewed of others come first, a bounded piece
  // to a step. Then the next up to max_rows pending tokens get their places and frames, evicting for them; the last pending token asks for logits. What prepare() left is done first. kOutOfBudget when not
  // even one token finds room, or the model's trained context is full; nothing is computed or lost then.
  Result<SequenceInput> begin_step(std::int32_t max_rows);
  // The step was computed. `mass` is what the runner gives where the step's input asked for it.
  void end_step(const std::optional<SequenceMass>& mass = std::nullopt);
  // The step failed or was cancelled: its tokens are pending again.
  void abandon_step();
  // A token to compute next.
  void push(Token token);

  // The last word on this turn's counters; call once, after the last step. What is still pending waits in the session
  // for its next turn.
  const TurnStats& settle();
  [[nodiscard]] const TurnStats& stats() const { return stats_; }

 private:
  // Tokens of the prompt that the session had elsewhere before an edit.
  struct Graft {
    Span to;
    Position from;
  };
  struct Refill {
    std::int32_t n_reply_blocks = 0;
    std::vector<Cue> cues;
    Holes holes = Holes::kOfEpoch;
  };
  // Tokens of the prompt that were not computed.
  struct Taken {
    Span span;
    Origin origin = Origin::kRecalledExact;
  };

  Turn(Session& session, Prompt prompt, std::int32_t n_held, std::vector<Token> waiting);
  void add_graft(const TokenRun& run, std::int32_t n_recomputed);

  // What prepare() does, in its order; nothing where there is nothing of it to do.
  std::optional<Ready> look();
  std::optional<Ready> end_waves();
  std::optional<Ready> wake_last();
  std::optional<Ready> adopt(std::int32_t max_rows);
  std::optional<Ready> recall_next();
  void leave_late();
  std::optional<Ready> graft_next();
  void pass_grafts();
  void leave_stale();
  void compare_passed();
  void go_on(Graft& graft, std::int32_t n_tokens);
  std::optional<Ready> refill_next();
  // Blocks of the session with the prompt and the reply's first token.
  [[nodiscard]] std::int32_t n_blocks_to_come() const;
  [[nodiscard]] std::int32_t n_left_free() const;

  [[nodiscard]] StepState step_state(std::int32_t max_rows) const;
  [[nodiscard]] std::int32_t n_observed(std::int32_t n_tokens, std::int32_t max_rows) const;
  [[nodiscard]] std::int32_t n_ungrafted() const;
  [[nodiscard]] std::int32_t n_before_look() const;
  [[nodiscard]] bool asks_before() const { return !ask_.cues.empty() || !ask_.names.empty(); }
  // The tail of a prompt: its last tokens, before which what it let go is looked for.
  [[nodiscard]] static std::int32_t n_tail_tokens(const Session& session);
  [[nodiscard]] static Match leave_tail(const Session& session, const Prompt& history, std::span<const Token> held,
                                        Match match);
  void hold_question();
  bool look_behind_tail();
  void begin_writing();
  void note_said(Token token);
  std::optional<Ready> look_while_writing();
  std::vector<RecallLook> look_for_words();
  std::vector<RecallLook> look_by_queries();
  std::optional<Ready> recall_now(std::vector<RecallLook> by_words, std::vector<RecallLook> by_queries);
  void note_asking(std::span<const RecallLook> looks);
  void add_looks(std::vector<RecallLook> looks);
  void note_came();
  [[nodiscard]] std::vector<BlockIndex> full_of(std::span<const RecallLook> looks) const;
  [[nodiscard]] bool is_hot(BlockIndex block) const { return session_->hot().is_hot(block); }
  void wait_for_look();
  [[nodiscard]] double cost_of_look() const;
  [[nodiscard]] TailQueries* queries_of_step(std::int32_t n_tokens) const;
  [[nodiscard]] std::int32_t n_most_recalled() const;
  [[nodiscard]] HeadSet missing_heads(BlockIndex block) const;
  [[nodiscard]] std::int32_t n_frames_kept(BlockIndex block) const;
  void note_heads(std::span<const RecallLook> looks, BlockIndex block);
  void recall_found(std::vector<RecallLook> looks, std::span<const RecallLook> earlier);
  void take_back(Position begin);
  [[nodiscard]] Status no_room() const;
  [[nodiscard]] Status no_open_block() const;
  void take(std::int32_t n_tokens, std::optional<Origin> origin);
  void count_origins();
  void end_prompt();

  Session* session_;
  Pending pending_;
  // Where the session ended when this turn began, and where this turn left it; another turn of the same session would move it.
  Position first_;
  Position end_;
  std::int32_t n_prompt_ = 0;
  // Tokens of the prompt that steps computed.
  std::int32_t n_new_ = 0;
  std::vector<Taken> taken_;

  Recompute recompute_;
  Renewal renewal_;
  Reread reread_;
  // What is looked for, and whether it was before the prompt.
  RecallAsk ask_ = {.selectors = {}};
  bool has_looked_ = false;
  // Of the prompt's and the reply's last tokens, where somebody asks them; at a fixed address.
  std::unique_ptr<TailQueries> queries_;
  std::int32_t n_tail_looks_left_ = 0;
  // Of the reply's: when they are next asked, how many times that has been settled, and how many tokens' worth these are.
  Position next_look_;
  std::int32_t n_looks_due_ = 0;
  double look_tokens_ = 0.0;
  // Where what is asked stands; of that, what the reply is to answer now; and what was found for what it says.
  std::vector<BlockIndex> asking_;
  std::vector<BlockIndex> asked_now_;
  std::vector<BlockIndex> told_now_;
  // What the reply is answering, and tokens that looking for such may take.
  Saying saying_;
  double word_tokens_ = 0.0;
  // Where the tail begins, or all of a short prompt; and whether there is still to be another look there.
  Position tail_begin_;
  bool looks_at_tail_ = false;
  std::size_t n_evicted_at_look_ = 0;
  std::deque<BlockIndex> to_recall_;
  // Of what is wanted, what is in some heads only.
  std::map<BlockIndex, HeadSet> in_heads_;
  std::optional<Refill> refill_;
  bool refill_chosen_ = false;
  std::vector<BlockIndex> to_refill_;  // the most wanted last
  bool came_ = false;                  // since anchors were settled
  std::size_t n_renewal_seen_ = 0;     // of what was recalled, what was looked at for renewal
  // Of the turn's looks, and of what came back, what is told of one another.
  std::size_t n_looks_told_ = 0;
  std::size_t n_recalls_told_ = 0;
  std::size_t n_recomputed_told_ = 0;
  // Of what was chosen since then, why it stays away.
  std::map<BlockIndex, Away> away_;
  std::optional<Wave> wave_;
  bool wave_refills_ = false;
  Stopwatch wave_since_;
  RecallTime recall_time_;
  std::optional<Adoption> adoption_;
  // Until what was found could not be taken.
  bool adopts_ = true;
  // The last block found no room; its tokens wait.
  bool was_refused_ = false;
  std::deque<Graft> grafts_;  // of what is pending, in order
  std::vector<Donor> donors_;
  // What is stale of them, and what of that is being computed again.
  std::optional<Freshness> freshness_;
  std::deque<Graft> to_compare_;

  // Where the reply begins; none before its first token.
  std::optional<Position> reply_begin_;
  // Tokens of the step under way, and what it is for.
  enum class StepKind : std::uint8_t { kPending, kRecompute, kRenewal, kReread };
  std::int32_t n_step_ = 0;
  Position step_anchor_;
  StepKind step_kind_ = StepKind::kPending;
  bool origins_counted_ = false;
  bool in_prompt_ = true;
  TurnStats stats_;
};

}  // namespace ebb
