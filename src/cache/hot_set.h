// HotSet: one session's blocks: what each holds, where it is hot, which anchors its keys carry and what it is called.
//
// It is the only one that changes what is hot. Blocks cut the session's tokens into runs of block_size; a block may be
// hot in any set of (layer, KV head). Frames are written down once, in the block; the tables that attention walks are
// derived from that. It does not know policies, stores, text or bytes: what a frame holds is BlockIo's affair.
//
//   open     rows for tokens to come, frames of new blocks with them      append   the rows were computed, or copied in
//   leave    hot -> not hot in some heads; frames go back to the pool     come     not hot -> hot, in frames that
//   move     a hot block's keys were turned to another anchor                      another session listed or new ones
//   publish  others may use the frames, which no longer change            make_own before such frames are written
//   cut      forgets tokens from a position on                            look_from  what windows hide leaves by itself
//
// Lineage (law 4): each block keeps what was visible when its rows were computed. What is visible is a hash over the
// full blocks before it: nothing of one that is not hot, the exact name of one that is, and which heads it is missing
// from where it is hot in some only. Frames that lie behind their layer's window are not looked at and count as there.
// With a name goes what its bytes are: what saw other last bits has another name. So naming costs what changed
// (cache/prefix_hash.h), and a block that never moved nor missed a head has the name that every session gives it.
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/span.h"
#include "base/status.h"
#include "cache/block_shape.h"
#include "cache/frame_pool.h"
#include "cache/frame_tables.h"
#include "cache/hot_blocks.h"
#include "cache/lineage.h"
#include "cache/prefix_hash.h"
#include "cache/sight.h"

namespace ebb {

// What those who choose look at. The hot set keeps it beside the block and never reads it.
struct BlockNotes {
  bool pinned = false;
  // Session steps; see BlockEvidence.
  std::int64_t last_access = 0;
  double attention = 0.0;
  double recovery = 0.0;
};

// What stays of a block that is not hot: all that an image has to keep of it.
struct BlockRecordInfo {
  Lineage lineage;
  // Which bytes it has, where they are not those that computing it gives: moved ones, or ones that differ in the last
  // bits from what another saved under the same name. Zero: none such.
  Hash128 variant;
  // Checksum of the bytes that its name means (body_checksum); zero until it is full.
  Hash128 body;
  Position anchor;
  // Whether its name means what computing it at its own position gives, with every block at its own: it was neither
  // moved for good nor grafted, and nothing was moved when it was computed.
  bool is_exact = true;
  std::int64_t epoch = 0;
};

class HotSet {
 public:
  // What a hot set takes frames from; all must outlive it.
  struct Sources {
    FramePool& pool;
    // Open frames, of a layout that seals; null of any other.
    FramePool* open_pool = nullptr;
    // What hot sets of the pool have in common; null: this one shares nothing.
    HotBlocks* shared = nullptr;
  };

  // `identity`: hash of all that makes K and V besides tokens: the model, the frame layout, whose session it is.
  HotSet(const Sources& sources, const BlockShape& shape, const Hash128& identity = {});
  // Gives all frames back.
  ~HotSet();
  HotSet(const HotSet&) = delete;
  HotSet& operator=(const HotSet&) = delete;

  // --- what there is ---
  [[nodiscard]] const BlockShape& shape() const { return shape_; }
  [[nodiscard]] std::int32_t block_size() const { return shape_.block_size; }
  [[nodiscard]] std::int32_t n_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  // Those that were computed.
  [[nodiscard]] std::span<const Token> tokens() const { return tokens_; }
  [[nodiscard]] Position end() const { return Position(static_cast<std::int32_t>(tokens_.size())); }
  // Behind the last row that has a place.
  [[nodiscard]] Position rows_end() const { return rows_end_; }
  [[nodiscard]] BlockIndex last_block() const { return BlockIndex(n_blocks() - 1); }
  [[nodiscard]] BlockIndex block_at(Position p) const { return BlockIndex(p.value() / shape_.block_size); }
  // The positions of the block's rows: those of tokens to come are part of it.
  [[nodiscard]] Span span(BlockIndex block) const;
  [[nodiscard]] std::span<const Token> block_tokens(BlockIndex block) const;
  [[nodiscard]] bool is_full(BlockIndex block) const { return span(block).n_tokens() == shape_.block_size; }
  // Rows that the last block has left, where it is hot in every head.
  [[nodiscard]] std::int32_t room_in_last_block() const;

  // --- where it is hot ---
  // In every head that what comes next may look at.
  [[nodiscard]] bool is_hot(BlockIndex block) const;
  [[nodiscard]] bool is_hot(BlockIndex block, std::size_t head) const;
  [[nodiscard]] HeadSet hot_heads(BlockIndex block) const;
  // Those that what comes next may look at: all but those behind their window.
  [[nodiscard]] HeadSet wanted_heads(BlockIndex block) const;
  // Wanted heads of layers with a window that are missing.
  [[nodiscard]] HeadSet missing_window_heads(BlockIndex block) const;
  [[nodiscard]] HeadSet missing_heads(BlockIndex block) const { return wanted_heads(block) - hot_heads(block); }
  // Blocks that are hot in any head, in position order.
  [[nodiscard]] std::span<const BlockIndex> hot_blocks() const { return hot_; }
  [[nodiscard]] std::int32_t n_hot_frames() const { return n_hot_frames_; }
  [[nodiscard]] std::int32_t n_hot_frames(BlockIndex block) const { return get(block).n_hot; }
  // Hot frames that no other session uses: the pool has them back when they leave.
  [[nodiscard]] std::int32_t n_own_frames(BlockIndex block) const;
  [[nodiscard]] std::int32_t n_own_frames(BlockIndex block, std::size_t head) const;
  [[nodiscard]] bool is_shared(BlockIndex block) const { return n_own_frames(block) < get(block).n_hot; }
  // Others may come to use them.
  [[nodiscard]] bool is_listed(BlockIndex block) const { return get(block).listed; }
  // [layer][KV head]; kNoFrame where it is not hot. Empty when it is hot nowhere.
  [[nodiscard]] std::span<const FrameIndex> frames(BlockIndex block) const { return get(block).frames; }
  // Its rows lie in open frames, in every head that it is hot in.
  [[nodiscard]] bool is_open(BlockIndex block) const { return !get(block).open.empty(); }
  // The block's open frames, [layer][KV head]; kNoFrame where it is not hot. Empty when it is not open.
  [[nodiscard]] std::span<const FrameIndex> open_frames(BlockIndex block) const { return get(block).open; }
  // Derived anew where something changed; valid until the next change.
  [[nodiscard]] const FrameTables& tables() const;

  // --- what it is called ---
  [[nodiscard]] const BlockRecordInfo& info(BlockIndex block) const { return get(block).info; }
  [[nodiscard]] Position anchor(BlockIndex block) const { return get(block).info.anchor; }
  // Its frames were turned away from the bytes that its name means.
  [[nodiscard]] bool is_turned(BlockIndex block) const { return get(block).turned; }
  // [layer][KV head]: by how far its keys lie, or would if they came, beyond its anchor; empty where they lie there in all heads.
  [[nodiscard]] std::span<const std::int32_t> advances(BlockIndex block) const { return get(block).advances; }
  [[nodiscard]] bool is_uneven(BlockIndex block) const { return !get(block).advances.empty(); }
  // Which of its rows were computed again where it lies, and beside what; zero: none.
  [[nodiscard]] const Hash128& renewed(BlockIndex block) const { return get(block).renewed; }
  [[nodiscard]] bool is_renewed(BlockIndex block) const { return renewed(block) != Hash128(); }
  // Its rows are not what computing gives at its own position, in some head.
  [[nodiscard]] bool is_moved(BlockIndex block) const {
    return shift(block) != 0 || is_uneven(block) || is_renewed(block);
  }
  [[nodiscard]] bool has_moved() const { return n_moved_ > 0; }
  [[nodiscard]] Position next_anchor() const { return next_anchor_; }
  [[nodiscard]] std::int64_t epoch() const { return epoch_; }
  // Hash of the block's tokens, of what was visible when they were computed, and of the identity.
  [[nodiscard]] Hash128 exact_name(BlockIndex block) const;
  [[nodiscard]] Hash128 exact_name_of(Position begin, std::span<const Token> tokens, const Lineage& lineage,
                                      const Hash128& variant) const;
  // What a block sees before itself, as it is now.
  [[nodiscard]] Hash128 visible_before(BlockIndex block) const;
  // What a block behind the last would see before itself.
  [[nodiscard]] Hash128 visible_behind() const;
  // What tokens to come leave out of that, which is part of their lineage; blocks that are computed again look at everything.
  void set_sight(const Sight& sight) { sight_ = sight; }
  [[nodiscard]] const Sight& sight() const { return sight_; }
  // Everything but its tokens that makes the rows of a block that begins there.
  [[nodiscard]] Hash128 place_name(Position begin, const Hash128& visible) const;
  // Names of whole blocks that would follow the last, each behind all before it: what a prompt's blocks are called if
  // they are computed with everything visible that is now, or, `whole`, with everything visible that there ever was. As
  // far as find_body knows the bytes that a name has.
  struct NamedBlock {
    Hash128 name;
    Hash128 visible;
    Hash128 body;
  };
  using FindBody = std::function<std::optional<Hash128>(const NamedBlock& block, std::span<const Token> tokens)>;
  [[nodiscard]] std::vector<NamedBlock> names_behind(std::span<const Token> tokens, bool whole,
                                                     const FindBody& find_body) const;

  [[nodiscard]] BlockNotes& notes(BlockIndex block) { return get(block).notes; }
  [[nodiscard]] const BlockNotes& notes(BlockIndex block) const { return get(block).notes; }

  // --- tokens ---
  // Rows for n_tokens behind rows_end(), in the last block, which must be hot in every head or full, and in new ones.
  // kOutOfBudget when the pool has too few frames; nothing changes then.
  Status open(std::int32_t n_tokens);
  // The first rows that open() gave hold these tokens now: computed behind what is visible, or, where `source` names
  // where they were copied from, made of that. Blocks that are full now are sealed.
  void append(std::span<const Token> tokens, const std::optional<Hash128>& source = std::nullopt);
  // Takes back rows that hold no tokens.
  void drop_rows();
  // A block behind the last, hot nowhere, whose rows are behind the last ones' anchors; every block before is full.
  BlockIndex add_cold(std::span<const Token> tokens, Lineage lineage, const Hash128& body = {});
  // Adds a cold block of an image behind the last.
  BlockIndex add_cold(std::span<const Token> tokens, const BlockRecordInfo& info);
  // Forgets what stands at `end` and behind; next_anchor() stays. Frames of a block that is cut in two must be its own,
  // and not sealed.
  void cut(Position end);
  // A block was computed again, all of its rows.
  void set_lineage(BlockIndex block, Lineage lineage);
  // What its bytes are (body_checksum), to those behind it too. Where `variant` is not zero, they are others than those
  // that its name means elsewhere, and it has another name from now on; then no others may use its frames.
  void set_body(BlockIndex block, const Hash128& body, const Hash128& variant);

  // --- frames ---
  void leave(BlockIndex block, const HeadSet& heads);
  void leave(BlockIndex block);
  // Hot in these heads too, which are missing ones: in frames listed under its name where there are any, else in new
  // ones. Returns the heads of new frames, whose bytes are the caller's to fill. kOutOfBudget when the pool has too
  // few; nothing changes then. `takes_listed` false: all are new.
  Result<HeadSet> come(BlockIndex block, const HeadSet& heads, bool takes_listed = true);
  // Open frames for a block that is written to, in the heads that it is hot in and has none in; kOutOfBudget when there
  // are too few. Nothing happens where blocks have one form.
  Status hold_open(BlockIndex block);
  void seal(BlockIndex block);
  // Whether others have it hot under its name, with these tokens, this anchor and these bytes, in any head.
  [[nodiscard]] const HotBlock* find_listed(BlockIndex block) const;
  // Lists the frames of a full block whose body is known; where others have listed some, it has those from now on.
  void publish(BlockIndex block);
  // Frames that nobody else uses or may come to use; where they are others than before, what they hold is the caller's
  // to fill. kOutOfBudget when the pool has too few; nothing changes then.
  Status make_own(BlockIndex block);
  // The earliest position whose queries are to come; 0 until it is said. What lies behind the window of a layer then,
  // leaves that layer.
  void look_from(Position eye);
  // Blocks that look_from(eye) would take frames of, by rising position.
  [[nodiscard]] std::vector<BlockIndex> find_passing(Position eye) const;

  // --- anchors ---
  // Where a cold block comes back, or where the keys of a hot one were turned to: exactly from the bytes that its name
  // means (`turned`: it is not where they belong), or from others, by which it has another name (`variant`) and is not
  // exact.
  void set_anchor(BlockIndex block, Position anchor);
  void set_turned(BlockIndex block, bool turned);
  // The keys of a hot block lie so far beyond its anchor, by head; empty: in no head. That is part of the names of those behind
  // it, lasts until the block is hot in no head, and no others use such frames.
  void set_advances(BlockIndex block, std::vector<std::int32_t> advances);
  // Some rows of a hot block are computed again where it lies, which `rows` names with what they see. That is part of the names of
  // those behind it, lasts until the block is hot in no head, and no others use such frames. Zero: they are as they came again.
  void set_renewed(BlockIndex block, const Hash128& rows);
  void set_variant(BlockIndex block, const Hash128& variant);
  // Behind the last anchor that is taken.
  void set_next_anchor(Position anchor) { next_anchor_ = anchor; }
  // A new epoch: anchors of before are not comparable. Blocks take part in it one by one.
  void begin_epoch() { ++epoch_; }
  void join_epoch(BlockIndex block) { get(block).info.epoch = epoch_; }
  void set_epoch(std::int64_t epoch) { epoch_ = epoch; }

  void check_invariants() const;

 private:
  struct Block {
    BlockRecordInfo info;
    BlockNotes notes;
    std::vector<FrameIndex> frames;
    std::vector<FrameIndex> open;
    std::int32_t n_hot = 0;
    bool turned = false;
    std::vector<std::int32_t> advances;
    Hash128 renewed;
    // Some of its frames may be listed; where it is not set, none is, and none is another's.
    bool listed = false;
    // Set once the block is full, when its name can no longer change by itself.
    mutable std::optional<Hash128> name;
  };
  // Layers of one window.
  struct WindowGroup {
    std::int32_t window = 0;
    HeadSet heads;
    // Blocks [0, n_behind) lie behind it.
    std::int32_t n_behind = 0;
  };

  [[nodiscard]] Block& get(BlockIndex block);
  [[nodiscard]] const Block& get(BlockIndex block) const;
  // A whole block of them: rows for tokens to come do not count.
  [[nodiscard]] bool has_all_tokens(BlockIndex block) const {
    return std::ssize(block_tokens(block)) == shape_.block_size;
  }
  [[nodiscard]] std::int32_t count_behind(const WindowGroup& group, Position eye) const;
  void check_sharing(BlockIndex block) const;
  Status open_block();
  void drop_last_block();
  void set_hot(BlockIndex block, std::size_t head, FrameIndex frame);
  void set_cold(BlockIndex block, std::size_t head);
  void unlist(BlockIndex block, const HeadSet& heads);
  void release_open(BlockIndex block, std::size_t head);
  void note_rows(BlockIndex block);
  [[nodiscard]] TableEntry entry(BlockIndex block, std::size_t head) const;
  // The tables are to say again what is so of the block.
  void note_change(BlockIndex block);
  // Whatever may change is_moved().
  void change_moves(BlockIndex block, auto&& change) {
    n_moved_ -= is_moved(block) ? 1 : 0;
    change();
    n_moved_ += is_moved(block) ? 1 : 0;
  }
  void edit_tables() const;
  void add_lineage(BlockIndex block, Span rows);
  // hot_set_names.cc
  void rename(BlockIndex block);
  void update_leaf(BlockIndex block);
  [[nodiscard]] Hash128 leaf(BlockIndex block, const HeadSet* missing) const;
  [[nodiscard]] std::int32_t shift(BlockIndex block) const { return anchor(block) - span(block).begin; }

  Sources sources_;
  BlockShape shape_;
  Hash128 identity_;
  std::vector<Token> tokens_;
  std::vector<Block> blocks_;
  Position rows_end_;
  std::vector<BlockIndex> hot_;
  std::int32_t n_hot_frames_ = 0;
  std::int32_t n_moved_ = 0;  // blocks, hot or not, of which is_moved()
  Position next_anchor_;
  std::int64_t epoch_ = 0;
  Position eye_;
  std::vector<WindowGroup> groups_;
  // Hashes of full blocks: as they are visible now, and as if all were.
  PrefixHash visible_;
  PrefixHash whole_;
  Sight sight_;
  mutable FrameTables tables_;
  mutable HeadSet stale_;  // heads whose tables are to be derived anew
  // Blocks whose entries in the other tables are to be edited; no table lists rows behind theirs until that is done.
  mutable std::vector<BlockIndex> changed_;
};

}  // namespace ebb
