// Keeper: carries out what was decided about a session's blocks.
//
// It keeps the hot set, the bytes in frames, the records of the cold store and the names in step: what leaves is saved first,
// what comes is what its name says or does not come (law 2), what fills gets its name, its checksum and a place among what
// sessions share. It chooses nothing: it knows no budget, no policy and no text; who calls made room.
//
//   append      rows were computed                     evict    saved, then not hot
//   begin_wave, end_wave   blocks come back: records are read while others compute, then copied in, by several threads
//   adopt       whole blocks of a prompt by exact name copy_rows  single rows of a block that goes on alike, or of a donor
//   move, compact   keys are turned to other anchors   cut      tokens are forgotten, roll_back before it the sequence's state
//
// "The same bytes": a block whose rows were computed in other company may differ in the last bits from what another saved under
// the same name. It then gets a name of its own (BlockRecordInfo::variant), so that one name never means two contents.
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "session/block_io.h"
#include "session/block_starts.h"
#include "session/snapshots.h"

namespace ebb {

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

// Counted from the session's start.
struct SessionStats {
  std::int64_t n_evicted_blocks = 0;
  std::int64_t n_saved_blocks = 0;
  std::int64_t n_recalled_blocks = 0;
  std::int64_t n_shared_blocks = 0;  // became hot in frames of another session
  std::int64_t n_recomputed_blocks = 0;
  std::int64_t n_missed_recalls = 0;  // saved once, and no longer to be had
  std::int64_t n_moved_blocks = 0;    // turned to another anchor; one block may be several times
  // Moved blocks whose keys were quantised again: they lost more than their place.
  std::int64_t n_requantised_blocks = 0;
  std::int64_t n_rebases = 0;
  std::int32_t peak_hot_frames = 0;
};

// What was done, in the order in which it was.
struct Acts {
  std::vector<BlockIndex> evicted;
  std::vector<BlockIndex> recalled;
  std::vector<BlockIndex> recomputed;
  std::vector<BlockIndex> adopted;  // whole blocks of a prompt
  std::vector<BlockIndex> shared;   // of recalled and adopted, in frames of another session
  // Wanted, and no longer to be had: to be computed again.
  std::vector<BlockIndex> lost;
  double recall_ms = 0.0;

  Acts& operator+=(const Acts& more);
  // As bytes, or computed again.
  [[nodiscard]] std::size_t n_back() const { return recalled.size() + recomputed.size(); }
};

// The most blocks whose records are read and held at once. Fewer: more waves, and threads are started more often. More: others
// wait longer for one of them, and more memory is taken beside frames and tiers.
inline constexpr std::size_t kWaveBlocks = 32;

// Blocks on their way back, or into a prompt: their records are being read.
struct Wave {
  std::vector<BlockIndex> blocks;
  // Each block's place among the records that are read; -1 where another session has it hot.
  std::vector<std::int32_t> records;
  // What is read of each block's record.
  std::vector<HeadSet> heads;
  // In which of those that it is missing in each is to come.
  std::vector<HeadSet> wanted;
  // Null when none is read.
  std::shared_ptr<Fetch> fetch;
  // Its blocks have the anchors that they come back with.
  bool is_placed = false;

  [[nodiscard]] bool is_ready() const { return fetch == nullptr || fetch->is_ready(); }
};

// Whole blocks that would follow the last, and are hot elsewhere or saved.
struct Adoption {
  std::vector<HotSet::NamedBlock> names;
  std::vector<std::int32_t> records;
  // The record of the snapshot behind the last of them, where the session has a state; else -1.
  std::int32_t state_record = -1;
  std::shared_ptr<Fetch> fetch;

  [[nodiscard]] bool is_ready() const { return fetch == nullptr || fetch->is_ready(); }
};

// How blocks of a prompt came in, in tokens.
struct Adopted {
  std::int32_t n_shared = 0;
  std::int32_t n_recalled = 0;

  [[nodiscard]] std::int32_t n_tokens() const { return n_shared + n_recalled; }
};

// A block whose rows may be copied: one that began as another does, or that stood elsewhere before an edit.
struct Donor {
  Hash128 name;
  Position begin;
};

class Keeper {
 public:
  struct Deps {
    HotSet::Sources sources;
    BlockShape shape;
    // Hash of the model, the frame layout and whose session it is.
    Hash128 identity;
    BlockIo::Deps io;
    // What sessions computed, by its begin; null: only whole blocks of others are taken.
    BlockStarts* starts = nullptr;
    // What this sequence carries on beside K and V; null: nothing.
    SequenceState* state = nullptr;
    // Called on a thread of the store when a wave's records are there; null: nobody is told.
    std::function<void()> when_fetched = nullptr;
    Remains remains = Remains::kBytes;
    RecallPlace place = RecallPlace::kOriginal;
  };

  explicit Keeper(const Deps& deps);
  // Waits for blocks that are being copied to the cold store.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  [[nodiscard]] const HotSet& hot() const { return hot_; }
  [[nodiscard]] HotSet& hot() { return hot_; }
  [[nodiscard]] BlockIo& io() { return io_; }
  [[nodiscard]] const BlockIo& io() const { return io_; }
  // None where the sequence carries on nothing but K and V.
  [[nodiscard]] const std::optional<Snapshots>& snapshots() const { return snapshots_; }
  [[nodiscard]] std::optional<Snapshots>& snapshots() { return snapshots_; }
  [[nodiscard]] SessionStats& stats() { return stats_; }
  [[nodiscard]] const SessionStats& stats() const { return stats_; }
  // The most frames that were hot at once since the last call.
  [[nodiscard]] std::int32_t take_peak();

  // --- leaving ---
  // Saved, if bytes remain and they can be; then it is not hot in these heads.
  void evict(BlockIndex block, const HeadSet& heads, Acts& acts);
  // Now, also what stands in a block that is not full, if bytes remain and it is hot in every head, or saved already.
  Status save(BlockIndex block);
  // Whole blocks are saved by the store's thread, if bytes remain.
  void save_behind(BlockIndex block);
  // Queries before `eye` are over: what windows hide from later ones leaves, saved.
  void look_from(Position eye);

  // --- rows ---
  // HotSet::open; new frames are made ready.
  Status open(std::int32_t n_tokens);
  // HotSet::append; blocks that are full now are named, shared and saved. Returns them.
  std::vector<BlockIndex> append(std::span<const Token> tokens, const std::optional<Hash128>& source = std::nullopt);
  void drop_rows();
  // All rows of a hot block were computed again, behind what `lineage` says.
  void end_recompute(BlockIndex block, Lineage lineage, Acts& acts);
  // Frames for a block whose rows are computed again, in every head; open ones where `keeps_open`. Until it ends, what the
  // block holds is nothing that may be saved. kNotFound where the state that was before it is not to be had.
  Status begin_recompute(BlockIndex block, bool keeps_open);
  // Not all rows were computed: it is not hot.
  void drop_recompute(BlockIndex block);

  // --- coming ---
  // By the caller: whoever ends the wave at once.
  // `wanted` says of each in which heads; empty: in all.
  [[nodiscard]] Wave begin_wave(std::span<const BlockIndex> blocks, ReadBy by = ReadBy::kThread,
                                std::span<const HeadSet> wanted = {});
  // Waits for the records. Blocks that find no frames stay away; those without bytes are lost.
  void end_wave(Wave wave, Acts& acts);
  // One, at once: the last block of a session, whose anchors must go on without a gap.
  Status wake_last(Acts& acts);
  // Whole blocks of these pending tokens by their names, until one is not to be had. `whole`: HotSet::names_behind.
  [[nodiscard]] Adoption find_blocks(std::span<const Token> tokens, bool whole);
  Adopted adopt(Adoption adoption, std::span<const Token> tokens, Acts& acts);
  // Rows that another block goes on with as `tokens` do, into the last block or behind it: how many, none where fewer than
  // are worth it. Room for one block is there.
  [[nodiscard]] std::int32_t copy_alike(std::span<const Token> tokens, Acts& acts);
  // `wanted`, which stand in the donor from `slot` on, behind the last token; they are this session's now by a name of their
  // own. kNotFound or kDamaged where the donor is no longer to be had.
  Status graft(const Donor& donor, std::int32_t slot, std::span<const Token> wanted);
  // How much rows of one block, hot in every head, differ from those of a donor from `slot` on, turned to where they are: the most
  // that K or V of one row and layer do, over the mean length of the donor's. As graft(), where the donor's are not to be had.
  Result<double> change_of(const Donor& donor, std::int32_t slot, Span rows);

  // --- renewing ---
  // The block's first n_rows are to be computed again where it lies, in frames of its own; its name for those behind says so from
  // now on, and what is saved of it stays as it is. kOutOfBudget where others use its frames and there are none for a copy.
  Status begin_renewal(BlockIndex block, std::int32_t n_rows);
  // They were not all computed: what is hot of it is nothing's bytes.
  void drop_renewal(BlockIndex block);

  // --- anchors ---
  // Whether a block comes back where it was: where some of it is hot, or its anchor still means something.
  [[nodiscard]] bool keeps_anchor(BlockIndex block) const;
  // Hot blocks close up in position order, from anchor 0: those that are hot in any head, or, `by_head`, those of each head,
  // whose last lies right before what comes, so that holes of one head are none of another.
  void compact(bool by_head, Acts& acts);
  // The block that is written to goes behind what was placed at the tail.
  void move_last_block(Acts& acts);

  // --- forgetting ---
  // How far a cut at `end` must go: to where the sequence's state can be had, and stands then. `end` itself where there is none.
  Position roll_back(Position end);
  // Blocks that begin at `end` or behind it leave, saved.
  void leave_from(Position end);
  // After leave_from(end). The block that is cut in two stays hot where its rows can be had; one that is cold comes back only
  // where there is room.
  void cut(Position end, bool has_room, Acts& acts);
  // The block has another name from now on, since what moved, from there so far in each head, is not what
  // computing gives.
  void name_moved(BlockIndex block, Position from, std::span<const std::int32_t> n_anchors);

 private:
  struct Arrival {
    BlockIndex block;
    HeadSet heads;  // to be filled
    RecordHandle record;
    Status status;
    bool was_cold = true;
  };
  // The frames of a donor, turned by n_anchors: slice by slice grafted, it is read once.
  struct DonorBytes {
    Donor donor;
    std::vector<Token> tokens;
    Position anchor;  // of its first token, before the turn
    std::int32_t n_anchors = 0;
    std::vector<std::byte> bytes;

    // It is that donor, and its tokens from `slot` on are `wanted` and have anchors from this one on.
    [[nodiscard]] bool has(const Donor& other, std::size_t slot, std::span<const Token> wanted, Position at) const;
  };

  Status begin_rows_again(BlockIndex block, bool keeps_open);
  void name_full(BlockIndex block, const std::optional<Hash128>& body_before);
  void name_apart(BlockIndex block);
  void publish(BlockIndex block);
  void note_peak();
  void count_move(BlockIndex block);
  // What is to come of a block, and what of its record was read for that.
  struct Coming {
    BlockIndex block;
    const HeadSet& wanted;
    const HeadSet& read;
    bool is_placed = false;
  };
  Result<Arrival> begin_arrival(const Coming& coming, const Result<RecordHandle>* record);
  Status end_arrival(Arrival& arrival);
  void fill_all(std::span<Arrival> arrivals);
  void note_return(const Arrival& arrival, Acts& acts);
  std::shared_ptr<Fetch> fetch(std::vector<RecordRequest> requests, ReadBy by = ReadBy::kThread);
  void keep_reach(Adoption& adoption, std::vector<RecordRequest>& requests) const;
  void place_cold(BlockIndex block);
  void place_at_tail(BlockIndex block);
  Status own_frames(BlockIndex block);
  void move_block(BlockIndex block, Position anchor, std::vector<std::int32_t> advances, Acts& acts);
  [[nodiscard]] std::vector<std::vector<std::int32_t>> find_advances(std::span<const BlockIndex> blocks) const;
  std::optional<Position> read_saved(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes) const;
  [[nodiscard]] BlockStarts::Match find_alike(std::span<const Token> tokens) const;
  [[nodiscard]] std::int32_t n_in_last() const { return hot_.end().value() % hot_.block_size(); }
  bool load_alike(const Hash128& name, std::span<const Token> wanted);
  Status load_donor(const Donor& donor, std::int32_t slot, std::span<const Token> wanted, Position anchor);
  void settle_next_anchor();

  Deps deps_;
  HotSet hot_;
  BlockIo io_;
  std::optional<Snapshots> snapshots_;
  SessionStats stats_;
  std::int32_t peak_frames_ = 0;  // since it was last taken
  DonorBytes donor_;
  std::optional<BlockIndex> computing_;
};

}  // namespace ebb
