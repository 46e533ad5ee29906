// Session: one conversation's logical space, its blocks, and where each block's K and V are.
//
// Positions are dense and given once: position p holds tokens()[p]. Blocks cut them into runs of block_size. The session
// knows which blocks are hot (its residency), which were saved (by exact name), who said what (its parts) and what made
// each block's K and V (lineage). It does not compute and does not choose: Turn (session/turn.h) is the only one that
// changes residency (law 5).
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "cache/frame_memory.h"
#include "cache/frame_pool.h"
#include "cache/residency.h"
#include "model/key_rotation.h"
#include "policy/choose.h"
#include "policy/policy.h"
#include "policy/rare_words.h"
#include "session/block_starts.h"
#include "session/lineage.h"
#include "session/parts.h"
#include "store/cold_store.h"
#include "text/vocabulary.h"

namespace ebb {

// What a session stands on; all must outlive it.
struct SessionParts {
  FramePool& pool;
  FrameMemory& memory;
  const Vocabulary& vocabulary;
  const Policy& policy;
  // Null: no bytes are kept of what is evicted.
  ColdStore* store = nullptr;
  // Null: blocks cannot be moved to other anchors.
  const BlockMover* mover = nullptr;
  // Open frames, of a layout that seals; null of any other.
  FramePool* open_pool = nullptr;
  // What sessions of the pool have hot in common; null: they share no frames.
  HotBlocks* hot = nullptr;
  // What they computed, by its begin, where they share frames; null: only whole blocks of others are taken.
  BlockStarts* starts = nullptr;
  Residency::Shape shape;
  Hash128 model;
  // Positions that the model was trained for.
  std::int32_t n_ctx_train = 0;
};

// What remains of a block that is evicted, and so what a recall can do.
enum class Remains : std::uint8_t {
  kNothing,  // it stays a hole (EVOKE's "discard")
  kTokens,   // it is computed again ("breadcrumb")
  kBytes,    // it comes back as it was; computed again where its bytes are lost ("restore")
};

// Which anchors recalled blocks and survivors of an eviction carry. All but kOriginal and kSparse move blocks, which is
// approximate, is counted so, and rounds keys once more.
enum class RecallPlace : std::uint8_t {
  kOriginal,   // those they had
  kCompacted,  // in their order among the hot blocks, which all close up: once for all blocks that a turn recalls
  kTail,       // right before what comes next
};
enum class Removal : std::uint8_t {
  kSparse,   // survivors stay where they are: no work
  kCompact,  // survivors close up, turned once per eviction, as shifting caches do; for comparison
};

struct SessionOptions {
  // The most tokens that may be hot, rounded down to whole blocks; at most the pool.
  std::int32_t budget_tokens = 0;
  Watermarks watermarks;
  // The first tokens, protected where the policy wants sinks.
  std::int32_t sink_tokens = 4;
  // The last tokens, protected. Less: models lose the thread of the sentence.
  std::int32_t recent_tokens = 64;
  // The first tokens, pinned.
  std::int32_t pinned_tokens = 0;
  // Share of the budget, above 0 to 1, that pinned blocks may hold. Those beyond it, the last of the session, are protected
  // and no more, so that whoever may pin cannot keep a session's budget from shrinking.
  double most_pinned = 1.0;
  Remains remains = Remains::kBytes;
  RecallPlace recall_place = RecallPlace::kOriginal;
  Removal removal = Removal::kSparse;
  // When anchors reach the end of what the model was trained for: give hot blocks new ones close together and go on.
  // Off: the turn is refused.
  bool rebases = true;
  // Shares what other sessions have hot for the same tokens, and takes what they computed from the cold store, by exact
  // name. Off: benches that compare sessions compute everything.
  bool adopts = true;
  // Sessions of different tenants never share blocks, hot or saved, whatever they hold; part of every name.
  std::string tenant;

  [[nodiscard]] Status validate() const;
};

// What the turn under way wants to stay: blocks that it asked for, blocks that are computed again, what it generates.
struct TurnHolds {
  std::span<const BlockIndex> kept = {};
  std::span<const BlockIndex> computing = {};
  Span reply;
};

// Counted from the session's start.
struct SessionStats {
  std::int64_t n_evicted_blocks = 0;
  std::int64_t n_saved_blocks = 0;
  std::int64_t n_recalled_blocks = 0;
  std::int64_t n_shared_blocks = 0;  // became hot in frames of another session
  std::int64_t n_recomputed_blocks = 0;
  std::int64_t n_missed_recalls = 0;  // saved once, and no longer to be had
  std::int64_t n_moved_blocks = 0;    // turned to another anchor; one block may be several times
  // Of those, whose keys were quantised again: they lost more than their place.
  std::int64_t n_requantised_blocks = 0;
  std::int64_t n_rebases = 0;
  std::int32_t peak_hot_blocks = 0;
};

enum class BlockState : std::uint8_t { kHot, kClean, kSaved, kMissing };

// All of a session but its hot K and V: what a fork or a later process starts from. Blocks come back from the cold store.
struct SessionImage {
  struct Block {
    Lineage lineage;
    Hash128 moves;
    Position anchor;
    std::int64_t epoch = 0;
    bool pinned = false;
  };

  std::vector<Token> tokens;
  std::vector<Token> unfinished;
  std::vector<Part> parts;
  std::vector<Block> blocks;
  Position next_anchor;
  std::int64_t epoch = 0;
  // That said something.
  std::int32_t n_turns = 0;
  // Counting goes on from there.
  SessionStats stats;
};

class Session {
 public:
  // options.validate() must hold.
  Session(const SessionParts& parts, const SessionOptions& options);
  // Waits for blocks that are being copied to the cold store.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // With nothing hot. kDamaged for an image whose blocks and tokens do not fit each other or these parts.
  static Result<std::unique_ptr<Session>> restore(const SessionParts& parts, const SessionOptions& options,
                                                  const SessionImage& image);
  [[nodiscard]] SessionImage image() const;

  // Those whose K and V were computed, by position.
  [[nodiscard]] std::span<const Token> tokens() const { return tokens_; }
  // Said already, and computed with the next turn.
  [[nodiscard]] std::span<const Token> unfinished() const { return unfinished_; }
  [[nodiscard]] std::int32_t n_unfinished() const { return static_cast<std::int32_t>(unfinished_.size()); }
  [[nodiscard]] Position end() const { return Position(static_cast<std::int32_t>(tokens_.size())); }
  [[nodiscard]] const Residency& residency() const { return residency_; }
  [[nodiscard]] const SessionStats& stats() const { return stats_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return said_.all(); }
  [[nodiscard]] std::int32_t n_ctx_train() const { return parts_.n_ctx_train; }
  // Whether it goes on past what the model was trained for.
  [[nodiscard]] bool can_rebase() const { return options_.rebases && parts_.mover != nullptr; }

  [[nodiscard]] std::int32_t block_size() const { return parts_.shape.block_size; }
  [[nodiscard]] std::int32_t n_blocks() const { return residency_.n_blocks(); }
  [[nodiscard]] std::int32_t budget_blocks() const { return budget_blocks_; }
  [[nodiscard]] std::int32_t n_hot_blocks() const;
  [[nodiscard]] std::int32_t n_hot_tokens() const;
  // Hot blocks that no other session uses: evicting them gives frames back to the pool.
  [[nodiscard]] std::int32_t n_own_blocks() const;
  // The text of a block, control tokens shown.
  [[nodiscard]] Result<std::string> block_text(BlockIndex block) const;
  // Where its keys are rotated for while it is hot; its first position unless it was moved.
  [[nodiscard]] Position anchor(BlockIndex block) const { return blocks_[block.index()].anchor; }
  // The anchor of the next token.
  [[nodiscard]] Position next_anchor() const { return next_anchor_; }
  // "file:config.py#0": the part that holds most of the block, and the block's place among that part's blocks.
  [[nodiscard]] std::string block_name(BlockIndex block) const;
  // Hash of the block's tokens, of what was visible when they were computed, of the model and of the frame layout.
  [[nodiscard]] Hash128 exact_name(BlockIndex block) const;
  [[nodiscard]] BlockState state(BlockIndex block) const;
  [[nodiscard]] bool is_full(BlockIndex block) const;
  // Bytes of all frames of a block, in the form that it has: open ones are larger, of a layout that seals.
  [[nodiscard]] std::size_t block_bytes(BlockIndex block) const;
  // Those of a hot block, [layer][KV head], one after the other.
  void read_frames(BlockIndex block, std::span<std::byte> bytes) const;

  // Blocks that hold tokens of the parts called `name`, or with "name#i" the i-th of them; none where there are none.
  [[nodiscard]] std::vector<BlockIndex> find_blocks(std::string_view name) const;
  // Pins hold what is hot now and what becomes hot later; they recall nothing. Returns how many parts have the name.
  std::int32_t set_pinned(std::string_view name, bool pinned) { return said_.set_pinned(name, pinned); }
  std::int32_t set_priority(std::string_view name, double priority) { return said_.set_priority(name, priority); }
  void set_pinned(BlockIndex block, bool pinned);
  // Whether a pin of the caller holds it, hot or not: its own, its part's, or that of the first tokens.
  [[nodiscard]] bool is_pinned(BlockIndex block) const;
  // What the policy says of each block now, the lowest leaving first; none for cold blocks and for what it never lets go.
  [[nodiscard]] std::vector<std::optional<double>> scores() const;

  void check_invariants() const;

 private:
  friend class Turn;

  struct Block {
    Lineage lineage;
    // Of moves that could not start from saved bytes and so made other bytes; zero: none.
    Hash128 moves;
    Position anchor;
    // Anchors are comparable within an epoch; a rebase or a compaction begins a new one.
    std::int64_t epoch = 0;
    // Its frames were turned away from the bytes that its exact name means.
    bool turned = false;
    bool pinned = false;
    // Session steps; see BlockEvidence.
    std::int64_t last_access = 0;
    double attention = 0.0;
    double recovery = 0.0;
    // Set once the block is full, when its name can no longer change.
    mutable std::optional<Hash128> name;
  };

  [[nodiscard]] std::span<const Token> block_tokens(BlockIndex block) const;
  [[nodiscard]] bool is_saved(BlockIndex block) const;
  // Its bytes as its exact name and anchor mean them are in frames, whosever.
  [[nodiscard]] bool is_listed(BlockIndex block) const;
  // Whether its rows are, or would be if it were hot, in open frames.
  [[nodiscard]] bool is_open(BlockIndex block) const;
  void count_move(BlockIndex block);
  // What a block at `block` sees before itself.
  [[nodiscard]] Hash128 visible_before(BlockIndex block) const;
  // The same of a block behind the last.
  [[nodiscard]] Hash128 visible_behind() const;
  void add_visible(std::int32_t n_blocks, Hasher& hasher) const;
  // Everything but its tokens that makes the rows of a block that begins there (BlockStarts).
  [[nodiscard]] Hash128 place_name(Position begin, const Hash128& visible) const;
  [[nodiscard]] Hash128 exact_name_of(Position begin, std::span<const Token> tokens, const Lineage& lineage,
                                      const Hash128& moves) const;
  void add_begin(Position begin, Hasher& hasher) const;
  [[nodiscard]] std::vector<BlockIndex> blocks_of_parts(std::string_view name) const;
  [[nodiscard]] RecordKey record_key(BlockIndex block) const;
  [[nodiscard]] RecordHeader record_header(BlockIndex block) const;
  // Until the cold store no longer reads the block's frames.
  void wait_for_copy(BlockIndex block) const;
  void index_words(BlockIndex block);
  // Of one that was restored, once: for what a turn recalls, and too much work for those who only look.
  void index_restored_words();
  // Of hot blocks.
  [[nodiscard]] Evidence evidence(const TurnHolds& turn) const;
  [[nodiscard]] Hold hold(BlockIndex block, const TurnHolds& turn, bool pins_hold) const;

  SessionParts parts_;
  SessionOptions options_;
  std::int32_t budget_blocks_;
  std::vector<Token> tokens_;
  // The token that ended the last reply, or what a cancelled turn left.
  std::vector<Token> unfinished_;
  Residency residency_;
  std::vector<Block> blocks_;
  Parts said_;
  WordIndex words_;
  bool awaits_words_ = true;  // of blocks that it was restored with
  Focus focus_;
  Position next_anchor_;
  std::int64_t epoch_ = 0;
  std::int64_t n_steps_ = 0;
  std::int32_t n_turns_ = 0;
  SessionStats stats_;
};

}  // namespace ebb
