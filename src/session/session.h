// Session: one conversation: its tokens, who said them, what of it is hot and what is to be.
//
// Positions are dense and given once: position p holds tokens()[p]. The session knows who said what (its parts) and how firmly
// blocks are held; it decides, by its policy and budget, which leave and which come, as values (session/plan.h,
// policy/choose.h), and its keeper carries that out. It does not compute: a turn (session/turn.h) brings tokens, and what was
// lost is computed again by Recompute (session/recompute.h).
//
// Law 1: hot frames never exceed the budget that is in force: the session's own, or the prompt's, where that is larger, while a
// turn's prompt is computed. set_budget() below what is pinned or being written to leaves as much as those need, and says so:
// that is the budget then.
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected_attention.h"
#include "model/frame_digest.h"
#include "model/step_mass.h"
#include "policy/attention_notes.h"
#include "policy/choose.h"
#include "policy/cues.h"
#include "session/block_meanings.h"
#include "session/finder.h"
#include "session/keeper.h"
#include "session/parts.h"
#include "session/plan.h"
#include "session/prompt.h"
#include "session/recall_look.h"
#include "session/session_image.h"
#include "session/session_options.h"
#include "session/token_origins.h"

namespace ebb {

// What the turn under way wants to stay.
struct Holds {
  // Blocks that it asked for.
  std::vector<BlockIndex> kept;
  // Where the prompt's end asks.
  Span question;
  // Blocks that are computed again.
  std::vector<BlockIndex> computing;
  // What it generates.
  Span reply = {Position(1 << 30), Position(1 << 30)};
};

// The largest budget that was in force over some time, and the most frames that were hot at once in it.
struct BudgetUse {
  FrameBudget budget;
  std::int32_t peak_frames = 0;
};

// Partly: hot in some heads, saved or not.
enum class BlockState : std::uint8_t { kHot, kClean, kPartly, kSaved, kMissing };

// Which holes are filled while there is room.
enum class Holes : std::uint8_t {
  kOfEpoch,  // those that come back where they were, and pinned ones
  kAll,
};

class Session {
 public:
  // options.validate() must hold.
  Session(const SessionDeps& deps, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // With nothing hot. kDamaged for an image whose blocks and tokens do not fit each other, or not what it would stand on. Where the sequence
  // has a state, it goes on where that can be had, and what lies behind is said and not computed.
  static Result<std::unique_ptr<Session>> restore(const SessionDeps& deps, const SessionOptions& options,
                                                  const SessionImage& image);
  [[nodiscard]] SessionImage image() const;

  // --- looking ---
  // Those whose K and V were computed, by position.
  [[nodiscard]] std::span<const Token> tokens() const { return hot().tokens(); }
  // Said already, and computed with the next turn.
  [[nodiscard]] std::span<const Token> unfinished() const { return unfinished_; }
  [[nodiscard]] std::int32_t n_unfinished() const { return static_cast<std::int32_t>(unfinished_.size()); }
  [[nodiscard]] Position end() const { return hot().end(); }
  [[nodiscard]] const HotSet& hot() const { return keeper_.hot(); }
  [[nodiscard]] const SessionStats& stats() const { return keeper_.stats(); }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return said_.all(); }
  [[nodiscard]] const Vocabulary& vocabulary() const { return deps_.vocabulary; }
  [[nodiscard]] const Policy& policy() const { return *policy_; }
  [[nodiscard]] std::int32_t n_ctx_train() const { return deps_.n_ctx_train; }
  [[nodiscard]] std::int32_t n_turns() const { return n_turns_; }
  // Whether it goes on past what the model was trained for.
  [[nodiscard]] bool can_rebase() const { return options_.rebases && deps_.mover != nullptr; }

  [[nodiscard]] Hash128 exact_name(BlockIndex block) const { return hot().exact_name(block); }
  [[nodiscard]] Position anchor(BlockIndex block) const { return hot().anchor(block); }

  [[nodiscard]] const BlockShape& shape() const { return deps_.shape; }
  [[nodiscard]] std::int32_t block_size() const { return deps_.shape.block_size; }
  [[nodiscard]] std::int32_t n_blocks() const { return hot().n_blocks(); }
  // What goes on beside K and V would see again what is computed again.
  [[nodiscard]] bool has_state() const { return deps_.state != nullptr; }
  // Whether any block is not hot in some head, or may be: of windows, what lies behind one is cold.
  [[nodiscard]] bool has_cold() const { return hot().n_hot_frames() < n_blocks() * shape().frames_per_block(); }
  // Hot in any head.
  [[nodiscard]] std::int32_t n_hot_blocks() const { return static_cast<std::int32_t>(hot().hot_blocks().size()); }
  // What is in force.
  [[nodiscard]] FrameBudget budget() const { return budget_; }
  // Of it, what pinned and written blocks hold beyond what it should be.
  [[nodiscard]] std::int32_t n_held_over() const { return n_held_over_; }
  [[nodiscard]] std::int32_t budget_blocks() const { return budget_.n_blocks(deps_.shape); }
  [[nodiscard]] std::int32_t budget_tokens() const { return budget_.n_tokens(deps_.shape); }
  // Of the blocks that are hot wherever what comes next may look; of those that are hot in some heads only, their share.
  [[nodiscard]] std::int32_t n_hot_tokens() const;
  // Of blocks that are hot in any head.
  [[nodiscard]] std::int32_t n_visible_tokens() const;
  // The most frames that were ever hot at once, as tokens of whole blocks.
  [[nodiscard]] std::int32_t peak_hot_tokens() const;
  // The text of a block, control tokens shown.
  [[nodiscard]] Result<std::string> block_text(BlockIndex block) const;
  // "file:config.py#0": the part that holds most of the block, and the block's place among that part's blocks.
  [[nodiscard]] std::string block_name(BlockIndex block) const;
  [[nodiscard]] BlockState state(BlockIndex block) const;
  // Bytes of all frames of a block, in the form that it has: open ones are larger, of a layout that seals.
  [[nodiscard]] std::size_t block_bytes(BlockIndex block) const { return keeper_.io().block_bytes(block); }
  // Those of a block in heads where it is hot, by rising head, one after the other.
  void read_frames(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes) const;
  // All frames of a block that is hot in every head.
  void read_frames(BlockIndex block, std::span<std::byte> bytes) const;
  // Blocks that hold tokens of the parts called `name`, or with "name#i" the i-th of them; none where there are none.
  [[nodiscard]] std::vector<BlockIndex> find_blocks(std::string_view name) const;
  // Whether a pin of the caller holds it, hot or not: its own, its part's, or that of the first tokens.
  [[nodiscard]] bool is_pinned(BlockIndex block) const;
  // Whether no head can see any of it: it has left, and not since all windows slid past it.
  [[nodiscard]] bool is_unseen(BlockIndex block) const {
    return !hot().is_hot(block) && hot().n_hot_frames(block) == 0;
  }
  // Who says most of it.
  [[nodiscard]] Source source(BlockIndex block) const { return said_.merged(hot().span(block)).source; }
  // Whether all of it is what the last prompt no longer wants in sight (Prompt::cleared).
  [[nodiscard]] bool is_cleared(BlockIndex block) const;
  // Where a block that was there before `acts` is from now, and all tokens so (law 7).
  [[nodiscard]] Origin origin(BlockIndex block, const Acts& acts) const;
  [[nodiscard]] TokenOrigins origins(const Acts& acts) const;
  // The policy's ranks of blocks now, 0..1 times their priority, the lowest leaving first; none for cold blocks and for what it
  // never lets go.
  [[nodiscard]] std::vector<std::optional<double>> scores() const;
  // A choice that nothing comes of: what would leave for so many frames.
  [[nodiscard]] std::vector<Victim> find_victims(std::int32_t n_frames);

  // --- verbs ---
  // Pins hold what is hot now and what becomes hot later; they recall nothing. Returns how many parts have the name.
  std::int32_t set_pinned(std::string_view name, bool pinned) { return said_.set_pinned(name, pinned); }
  std::int32_t set_priority(std::string_view name, double priority) { return said_.set_priority(name, priority); }
  void set_pinned(BlockIndex block, bool pinned);
  // Full ones leave where they are hot, whatever the policy says and however they are held; those that a turn is computing
  // again stay.
  Acts evict(std::span<const BlockIndex> blocks);
  // Evicts them in these heads only.
  Acts evict(std::span<const BlockIndex> blocks, const HeadSet& heads);
  // Keeps these hot, as many as half of the budget holds, in the order given; cold ones come back, the disk is waited for.
  // Acts::lost are those that would have to be computed again (Recompute).
  Acts recall(std::span<const BlockIndex> blocks);
  // Recalls saved blocks into free frames, leaving n_left_blocks free, so that none leaves for one of them.
  Acts refill(std::int32_t n_left_blocks, std::span<const Cue> cues = {}, Holes holes = Holes::kOfEpoch);
  // Writes every hot block to the cold store, the open one too, so that the session's image can go on elsewhere. The first
  // error, where some could not be saved.
  Status save();
  // Saves full blocks behind: returns when the cold store knows what to copy. Full blocks are given to it as they are
  // computed; this is for those that it has lost since.
  void save_behind();
  // Saves full blocks behind and the open block now, since the next token changes it.
  void save_for_image();
  // Forgets everything at `end` and beyond, and what was said and not computed. `end` must not lie behind the session's. Where
  // the sequence has a state, the session may end before that: what lies between is said and not computed.
  Acts cut(Position end);
  // The same of the last tokens of a prompt under way, which are to be computed once more: who said them stays.
  Acts take_back(Position end);
  // Whether any block has, or had, other anchors than its positions.
  [[nodiscard]] bool moved() const { return hot().epoch() > 0 || hot().next_anchor() != end() || hot().has_moved(); }
  // Up to where, `end` at most, all blocks are what computing them at their own positions gave: neither moved for good nor
  // computed beside moved ones. `end` itself where nothing ever moved.
  [[nodiscard]] Position find_exact_end(Position end) const;
  // A cut that leaves nothing but what is exact (find_exact_end), and begins an epoch in which every block has the anchors of
  // its own positions: what was turned away from them leaves, and comes back from its record as it was.
  Acts cut_anew(Position end);
  // From now on at most so much is hot: what is over leaves now. Pinned blocks and the open one stay, so the budget may
  // remain higher; what it is now is returned.
  [[nodiscard]] FrameBudget set_budget(FrameBudget budget);
  // The same while prompts are computed, the one under way too.
  void set_prompt_budget(FrameBudget budget);

  // How prompts are read from the next one on; Engine::check_sparse_prompt() says which can be. Between two turns.
  void set_sparse_prompt(const SparsePrompt& sparse_prompt) { options_.sparse_prompt = sparse_prompt; }

  // From now on this chooses what leaves; null: the engine's. Between two turns. What is hot stays; what was noted of attention
  // is dropped, unless both ask for the same, and what was noted of queries, unless both ask for that.
  void set_policy(std::shared_ptr<const Policy> policy, const OutputLengths* lengths);

  // --- for turns: what the steps of one need (session/turn.h) ---
  [[nodiscard]] Holds& holds() { return holds_; }
  // What waits goes to the turn that begins, and comes back from the one that ends.
  [[nodiscard]] std::vector<Token> take_unfinished();
  void put_unfinished(std::vector<Token> tokens) { unfinished_ = std::move(tokens); }
  // Something is said behind `begin`: parts of the prompt, of which the first n_held tokens stand already.
  void say(const Prompt& prompt, std::int32_t n_held, Position begin);
  // Of blocks that have tokens of `among`, those that are cleared and not pinned leave; a question may bring them back.
  void let_go_cleared(Span among, Acts& acts);
  // A reply begins there, and goes on.
  void begin_reply(Position begin);
  void extend_reply(std::int32_t n_tokens) { said_.extend_last(n_tokens); }
  // From here on the prompt's budget is in force, for which the pool lends frames beyond its limit if it has any. Of a sparse
  // prompt, n_tokens say where it ends.
  void begin_prompt(std::int32_t n_tokens);
  // The prompt is over: the session's own is in force again, and what is over leaves, by the policy. What the prompt had.
  BudgetUse end_prompt(Acts& acts);
  // Frames that the pool must have free so that nothing but what is over the session's own budget leaves when the prompt ends,
  // with n_new_frames more; others give them.
  [[nodiscard]] std::int32_t n_frames_owed(std::int32_t n_new_frames) const;
  // Since this or the end of a prompt was last called.
  [[nodiscard]] BudgetUse take_budget_use();
  // Forgets who said what at `end` and beyond.
  void forget_parts(Position end) { said_.truncate(end); }

  [[nodiscard]] RoomState room() const;
  // What fits without anything leaving.
  [[nodiscard]] std::int32_t n_free_frames() const;
  // Until so many frames more fit, or nothing more may leave.
  void make_room(std::int32_t n_frames, Acts& acts);
  // Room in two parts: for its budget, and for the pool, where nobody else gives frames.
  void make_room(const RoomPlan& plan, Acts& acts);
  // Whether one more block may be open, and how many of all sessions may be at once.
  [[nodiscard]] bool may_open() const;
  [[nodiscard]] std::int32_t n_most_open_blocks() const;
  // Anchors for n_tokens more inside the trained context, or kOutOfBudget.
  Status make_anchors_for(std::int32_t n_tokens, Acts& acts);
  // Rows for tokens, then the tokens; or the rows back.
  Status open(std::int32_t n_tokens) { return keeper_.open(n_tokens); }
  void append(std::span<const Token> tokens);
  void drop_rows() { keeper_.drop_rows(); }
  // The block that new tokens join must be hot before any comes. kNotFound when it must be computed again.
  Status wake_last(Acts& acts);
  // Blocks to recall: those that are hot stay, the others are a bounded wave: begin reads, end brings in.
  [[nodiscard]] Wave begin_wave(std::span<const BlockIndex> blocks, ReadBy by = ReadBy::kThread,
                                std::span<const HeadSet> wanted = {}) {
    return keeper_.begin_wave(blocks, by, wanted);
  }
  // Frames that a wave brings.
  [[nodiscard]] std::int32_t n_frames(const Wave& wave) const;
  void end_wave(Wave wave, Acts& acts);
  // After cold blocks came back.
  void settle_anchors(Acts& acts);
  // What each selector that can choose by now would have back and keep (policy/selector.h): of moments that go by queries, for which
  // `rows` of them are needed, those that do, else the others. Nothing where nothing remains of what leaves.
  [[nodiscard]] std::vector<RecallLook> look(const RecallAsk& ask, Moment moment, const TailQueries* queries = nullptr,
                                             Span rows = {Position(0), Position(0)});
  // Whether there is an embedding model; a turn begins that looks by it; whether a look can begin now, or waits (when_fetched tells).
  [[nodiscard]] bool has_meanings() const { return meanings_.is_there(); }
  void begin_meanings(std::span<const Cue> cues) { meanings_.begin(cues); }
  [[nodiscard]] bool has_meanings_for(const RecallAsk& ask);
  void wait_for_meanings() { meanings_.wait(); }
  // Queries of a sequence's last rows, where digests can be scored by them; null where nobody can.
  [[nodiscard]] std::unique_ptr<TailQueries> make_tail_queries(std::int32_t n_rows) const;
  // Tokens of a reply that are computed in the time that a look by so many queries takes, about.
  [[nodiscard]] double cost_of_look(std::int32_t n_queries) const { return finder_.cost_in_tokens(n_queries); }
  // While a reply is written: where the cues stand, and what tells of what it says. Where the best of that is hot, of a cue what stands beside
  // it, and of other words nothing.
  [[nodiscard]] std::vector<RecallLook> look_for_words(const RecallAsk& ask, const SayingAsk& saying);
  [[nodiscard]] double cost_of_words() const { return finder_.cost_of_words(); }
  // WordIndex's of full blocks; rarity of a word that tells, and 0 of others.
  [[nodiscard]] double rarity(const std::string& word) { return finder_.rarity(word); }
  [[nodiscard]] bool is_rare(const std::string& word) { return finder_.is_rare(word); }
  [[nodiscard]] std::size_t digest_bytes() const { return finder_.digest_bytes(); }
  // Cold blocks that may fill holes, the most wanted first.
  [[nodiscard]] std::vector<BlockIndex> choose_holes(std::span<const Cue> cues, Holes holes);
  // Cold blocks that cannot be recalled, in order: they would have to be computed again. None where nothing remains of what
  // leaves.
  [[nodiscard]] std::vector<BlockIndex> find_missing(Holes holes) const;
  // Whole blocks of pending tokens by exact name; at most max_blocks.
  [[nodiscard]] Adoption find_adoption(std::span<const Token> pending, std::int32_t max_blocks);
  Adopted adopt(Adoption adoption, std::span<const Token> pending, Acts& acts);
  // Rows of a block that goes on alike; how many.
  [[nodiscard]] std::int32_t copy_alike(std::span<const Token> pending, Acts& acts);
  [[nodiscard]] bool can_graft() const;
  // Every block as a donor, saved from `edit` on.
  [[nodiscard]] std::vector<Donor> donors(Position edit);
  Status graft(const Donor& donor, std::int32_t slot, std::span<const Token> wanted);
  // How much rows of one block differ from those of a donor (Keeper::change_of).
  Result<double> change_of(const Donor& donor, std::int32_t slot, Span rows) {
    return keeper_.change_of(donor, slot, rows);
  }
  // From now on it is noted what rows rely on, where attention tells and anything can be grafted; empty where nobody asked.
  void note_reliances();
  [[nodiscard]] const std::optional<Reliances>& reliances() const { return reliances_; }
  // What a step's rows rely on, until they are appended; null where it is not noted.
  [[nodiscard]] StepReliances* begin_reliances();
  // Rows that no step computed rely on these slices, where that is known.
  void rely(Span rows, const std::optional<std::vector<std::int32_t>>& on);
  // How many of a step's queries the policy wants observed, its last ones, where so much of the prompt comes behind them.
  [[nodiscard]] std::int32_t n_observed(std::int32_t n_rows, const AttentionNotes::Behind& behind) const;
  // What a step's queries are added to; null where the policy does not ask. A cut takes nothing of it back.
  [[nodiscard]] QueryMoments* queries() { return queries_ ? &*queries_ : nullptr; }
  // Of the prompts, what is still to be read again for the policy's evidence (session/reread.h); empty where it does not ask.
  [[nodiscard]] Span unread() const { return unread_; }
  // A step of a prompt computed these, its last tokens.
  void note_unread(std::int32_t n_tokens);
  // Up to there all is read again, or is not to be.
  void note_read(Position end) { unread_.begin = std::min(end, unread_.end); }
  void note_reread(const SequenceMass& mass);
  // A step of one of its turns is over; what attention looked at in it, where the policy asked.
  void end_step(const std::optional<SequenceMass>& mass);
  // To compute a block again, queries from `eye` on are to come: what windows show to them comes back, as far as it can.
  void look_from(Position eye, Acts& acts);
  // All rows of a block are to be computed: frames for them; open ones where `keeps_open`.
  Status begin_recompute(BlockIndex block, bool keeps_open, Acts& acts);
  void end_recompute(BlockIndex block, Lineage lineage, Acts& acts);
  // A block whose rows were not all computed again is none.
  void drop_recompute(BlockIndex block) { keeper_.drop_recompute(block); }

  // Whether rows of blocks that came back can be computed again where they lie (SessionOptions::renewed_tokens).
  [[nodiscard]] bool can_renew() const;
  // The block's first n_rows are: what windows show to them is there then, as far as it can be.
  Status begin_renewal(BlockIndex block, std::int32_t n_rows, Acts& acts);
  void drop_renewal(BlockIndex block) { keeper_.drop_renewal(block); }

  void check_invariants() const;

 private:
  // Where in what the user last said the cues stand, of which there are rankings.
  [[nodiscard]] RecallLook look_for_question(std::span<const Cue> cues, std::span<const CueRanking> words,
                                             Moment moment) const;
  [[nodiscard]] std::vector<std::pair<BlockIndex, BlockIndex>> find_ends(Span message) const;
  [[nodiscard]] std::optional<BlockIndex> hot_of_best(std::span<const Scored> ranked) const;
  [[nodiscard]] std::vector<double> missing_shares() const;
  [[nodiscard]] std::vector<RecallLook::Told> tell(const std::vector<Considered>& considered) const;
  // Blocks behind one with a cue's words that may hold what they speak of.
  [[nodiscard]] std::int32_t reach() const;
  // Of the i-th block of a wave.
  [[nodiscard]] std::int32_t n_missing(const Wave& wave, std::size_t i) const;
  [[nodiscard]] std::vector<BlockIndex> named_blocks(const std::vector<std::string>& names,
                                                     std::vector<std::string>& unknown) const;
  [[nodiscard]] std::vector<BlockIndex> blocks_of_parts(std::string_view name) const;
  // Frames of a block: those that are hot, or those that the pool has back when they leave.
  enum class CountedFrames : std::uint8_t { kHot, kOwn };
  // Heads one behind the other.
  struct HeadRange {
    std::size_t first = 0;
    std::size_t n_heads = 1;
  };
  // What is known of hot blocks.
  [[nodiscard]] Evidence evidence(CountedFrames counted = CountedFrames::kHot) const;
  [[nodiscard]] ScopeEvidence gather_scope(HeadRange heads, const Evidence& evidence, CountedFrames counted) const;
  [[nodiscard]] HeadSet heads_of(const Victim& victim) const;
  // What a choice needs that is not there yet, then a choice's evidence.
  [[nodiscard]] Evidence evidence_for_choice(CountedFrames counted = CountedFrames::kHot);
  void note_frames();
  void note_frames_ahead();
  void note_frame(BlockIndex block);
  void begin_queries();
  void note_expected();
  void expect(std::size_t head);
  void fill_frames(HeadRange heads, const Evidence& evidence, ScopeEvidence& scope) const;
  void fill_expected(std::size_t head, const Evidence& evidence, ScopeEvidence& scope) const;
  void note_mass(const SequenceMass& mass);
  void note_shares();
  [[nodiscard]] Hold hold(BlockIndex block, const Part& said, bool pins_hold) const;
  void evict(std::span<const Victim> victims, Acts& acts);
  void evict_for_pool(std::int32_t n_frames, Acts& acts);
  // These many of its own frames, as far as they may leave.
  void give_back(std::int32_t n_frames, Acts& acts);
  void apply_budgets(Acts& acts);
  void compact(Acts& acts);
  void rebase(Acts& acts);
  void recall_window(Acts& acts);
  void note_full(std::span<const BlockIndex> blocks);
  [[nodiscard]] std::vector<Span> find_cleared(const Prompt& prompt, std::int32_t n_held, Position begin) const;

  SessionDeps deps_;
  SessionOptions options_;
  std::shared_ptr<const Policy> policy_;
  // The session's own, the prompt's, and what is in force.
  FrameBudget own_budget_;
  FrameBudget prompt_budget_;
  FrameBudget budget_;
  std::int32_t n_held_over_ = 0;
  FrameBudget largest_budget_;  // since take_budget_use()
  bool is_in_prompt_ = false;
  LentFrames lent_;
  Keeper keeper_;
  // The token that ended the last reply, or what a cancelled turn left.
  std::vector<Token> unfinished_;
  Parts said_;
  std::vector<Span> cleared_;  // ascending, as the last prompt has it
  Finder finder_;
  BlockMeanings meanings_;
  Focus focus_;
  // Where the policy asks for attention.
  std::optional<AttentionNotes> attention_;
  Span unread_ = {Position(0), Position(0)};
  // Of hot blocks, where the policy asks for what frames hold; those of one that moved are read anew, and so are those of one
  // that left and came back.
  struct FrameNotes {
    Position anchor;
    Hash128 renewed;
    std::vector<std::int32_t> advances;
    std::vector<FrameDigest> digests;  // [head]
  };
  std::map<BlockIndex, FrameNotes> frame_notes_;
  std::int32_t n_noted_ahead_ = 0;  // blocks whose frames were read before they were asked for, or need not be
  Position end_noted_;              // the end when that was last looked at
  // Where the policy asks for what is expected: the queries that were, and of each head what was expected at the last choice.
  std::optional<QueryMoments> queries_;
  std::vector<std::map<BlockIndex, ExpectedBlock>> expected_;  // [head]
  // Where somebody asks what rows rely on: what is known, and what the step under way gives.
  std::optional<Reliances> reliances_;
  std::unique_ptr<StepReliances> step_reliances_;
  // Of the step under way, [block]; all 0 between steps.
  std::vector<double> step_mass_;
  Holds holds_;
  std::int64_t n_steps_ = 0;
  std::int32_t n_turns_ = 0;
};

}  // namespace ebb
