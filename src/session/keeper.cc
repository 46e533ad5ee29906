#include "session/keeper.h"

#include <algorithm>
#include <utility>

namespace ebb {
namespace {

void put_behind(std::vector<BlockIndex>& all, const std::vector<BlockIndex>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

Acts& Acts::operator+=(const Acts& more) {
  put_behind(evicted, more.evicted);
  put_behind(recalled, more.recalled);
  put_behind(recomputed, more.recomputed);
  put_behind(adopted, more.adopted);
  put_behind(shared, more.shared);
  put_behind(lost, more.lost);
  recall_ms += more.recall_ms;
  return *this;
}

Keeper::Keeper(const Deps& deps) : deps_(deps), hot_(deps.sources, deps.shape, deps.identity), io_(deps.io, hot_) {
  if (deps.state == nullptr) return;
  snapshots_.emplace(Snapshots::Deps{.state = *deps.state,
                                     .store = deps.remains == Remains::kBytes ? deps.io.store : nullptr,
                                     .model = deps.io.model,
                                     .block_size = deps.shape.block_size});
}

Keeper::~Keeper() {
  for (const BlockIndex block : hot_.hot_blocks()) io_.wait_for_copy(block);
}

void Keeper::note_peak() {
  stats_.peak_hot_frames = std::max(stats_.peak_hot_frames, hot_.n_hot_frames());
  peak_frames_ = std::max(peak_frames_, hot_.n_hot_frames());
}

std::int32_t Keeper::take_peak() { return std::exchange(peak_frames_, hot_.n_hot_frames()); }

// --- leaving ---

Status Keeper::save(BlockIndex block) {
  if (deps_.remains != Remains::kBytes) return error(Code::kNotFound, "nothing remains of what is evicted");
  if (block == computing_) return error(Code::kNotFound, "block {} is half computed", block.value());
  // What stands in a block that goes on is named as it is now.
  const bool is_whole = hot_.hot_heads(block) == hot_.shape().all_heads();
  if (is_whole && !hot_.is_full(block)) hot_.set_body(block, io_.checksum(block), {});
  if (is_whole && !hot_.is_turned(block)) name_apart(block);
  return io_.save(block);
}

void Keeper::evict(BlockIndex block, const HeadSet& heads, Acts& acts) {
  if ((hot_.hot_heads(block) & heads).empty()) return;
  // A store that takes nothing makes the block missing, which costs work and never truth (law 8).
  if (save(block).ok()) ++stats_.n_saved_blocks;
  io_.wait_for_copy(block);
  hot_.leave(block, heads);
  ++stats_.n_evicted_blocks;
  acts.evicted.push_back(block);
}

// Where the store keeps other bytes under its name, which nobody shares yet.
void Keeper::name_apart(BlockIndex block) {
  const Hash128& body = hot_.info(block).body;
  if (const std::optional<Hash128> kept = io_.find(hot_.exact_name(block)); !kept || *kept == body) return;
  if (!hot_.is_listed(block)) hot_.set_body(block, body, Hasher().add_text("bytes").add(body).finish());
}

void Keeper::save_behind(BlockIndex block) {
  if (deps_.remains == Remains::kBytes && block != computing_ && hot_.is_full(block) && !hot_.is_turned(block) &&
      !io_.is_saved(block)) {
    io_.save_behind(block);
  }
}

void Keeper::look_from(Position eye) {
  for (const BlockIndex block : hot_.find_passing(eye)) {
    (void)save(block);  // what cannot be saved is computed again when it is wanted (law 8)
    io_.wait_for_copy(block);
  }
  hot_.look_from(eye);
}

// --- rows ---

Status Keeper::open(std::int32_t n_tokens) {
  const std::int32_t n_before = hot_.n_blocks();
  EBB_RETURN_IF_ERROR(hot_.open(n_tokens));
  for (std::int32_t b = n_before; b < hot_.n_blocks(); ++b) io_.prepare(BlockIndex(b), hot_.shape().all_heads());
  if (snapshots_) snapshots_->begin_step(n_tokens);
  note_peak();
  return {};
}

void Keeper::drop_rows() {
  hot_.drop_rows();
  if (snapshots_) snapshots_->drop_step();
}

std::vector<BlockIndex> Keeper::append(std::span<const Token> tokens, const std::optional<Hash128>& source) {
  std::vector<BlockIndex> full;
  // Block by block: what the next one saw is what this one is called by then.
  while (!tokens.empty()) {
    const BlockIndex block = hot_.block_at(hot_.end());
    const auto n_left = static_cast<std::size_t>(hot_.block_size() - n_in_last());
    const std::span<const Token> own = tokens.first(std::min(tokens.size(), n_left));
    tokens = tokens.subspan(own.size());
    hot_.append(own, source);
    if (own.size() < n_left) break;
    full.push_back(block);
    name_full(block, std::nullopt);
    if (snapshots_) snapshots_->take(hot_.exact_name(block));
  }
  if (snapshots_) snapshots_->end_step(hot_.end());
  look_from(hot_.end());
  return full;
}

// A full block's bytes get their checksum, and a name of their own where its name means other bytes: before, or to another
// session, or in the store.
void Keeper::name_full(BlockIndex block, const std::optional<Hash128>& body_before) {
  const Hash128 body = io_.checksum(block);
  const Hash128 name = hot_.exact_name(block);
  std::optional<Hash128> known = body_before;
  if (!known && deps_.sources.shared != nullptr) {
    if (const HotBlock* const listed = deps_.sources.shared->find(name); listed != nullptr) known = listed->body;
  }
  if (!known) known = io_.find(name);
  Hash128 variant;
  if (known && *known != body) variant = Hasher().add_text("bytes").add(body).finish();
  hot_.set_body(block, body, variant);
  publish(block);
  save_behind(block);
}

// Whoever comes to the exact name of a full block may use its frames. Before its bytes are given to the store's thread, which
// would go on reading frames that this gives back.
void Keeper::publish(BlockIndex block) {
  if (deps_.sources.shared == nullptr || !hot_.is_full(block) || hot_.is_turned(block)) return;
  const BlockRecordInfo& info = hot_.info(block);
  const std::vector<Lineage::Run>& runs = info.lineage.runs();
  if (deps_.starts != nullptr && info.variant == Hash128() && !runs.empty()) {
    // For those whose prompt begins this block as it does.
    deps_.starts->add(hot_.place_name(hot_.span(block).begin, runs.front().visible), hot_.exact_name(block),
                      hot_.block_tokens(block).first(static_cast<std::size_t>(runs.front().n_tokens)));
  }
  hot_.publish(block);
}

Status Keeper::begin_recompute(BlockIndex block, bool keeps_open) {
  if (!snapshots_) return begin_rows_again(block, keeps_open);
  EBB_RETURN_IF_ERROR(snapshots_->begin_again(block));
  Status begun = begin_rows_again(block, keeps_open);
  if (!begun.ok()) snapshots_->end_again();
  return begun;
}

Status Keeper::begin_rows_again(BlockIndex block, bool keeps_open) {
  io_.wait_for_copy(block);
  hot_.leave(block);
  EBB_ASSIGN_OR_RETURN(const HeadSet fill, hot_.come(block, hot_.shape().all_heads(), false));
  if (keeps_open) {
    if (Status held = hot_.hold_open(block); !held.ok()) {
      hot_.leave(block);
      return held;
    }
  }
  // A rebase since it was queued took away the anchor that it was to have.
  if (hot_.info(block).epoch != hot_.epoch()) place_cold(block);
  io_.prepare(block, fill);
  computing_ = block;
  note_peak();
  return {};
}

void Keeper::drop_recompute(BlockIndex block) {
  computing_.reset();
  if (snapshots_) snapshots_->end_again();
  hot_.leave(block);
  // It may have taken the anchors behind the last block.
  Acts none;
  move_last_block(none);
}

void Keeper::end_recompute(BlockIndex block, Lineage lineage, Acts& acts) {
  computing_.reset();
  if (snapshots_) snapshots_->end_again();
  const Hash128 name = hot_.exact_name(block);
  const Hash128 body = hot_.info(block).body;
  if (hot_.is_full(block)) hot_.seal(block);
  hot_.set_lineage(block, std::move(lineage));
  if (hot_.is_full(block)) {
    const bool is_same_name = hot_.exact_name(block) == name && body != Hash128();
    name_full(block, is_same_name ? std::optional(body) : std::nullopt);
  }
  ++stats_.n_recomputed_blocks;
  acts.recomputed.push_back(block);
}

// --- renewing ---

Status Keeper::begin_renewal(BlockIndex block, std::int32_t n_rows) {
  io_.wait_for_copy(block);
  EBB_RETURN_IF_ERROR(own_frames(block));
  // What is saved of it is what its name means, and this will not be.
  hot_.set_turned(block, true);
  hot_.set_renewed(block, Hasher().add(static_cast<std::uint64_t>(n_rows)).add(hot_.visible_before(block)).finish());
  return {};
}

void Keeper::drop_renewal(BlockIndex block) { hot_.leave(block); }

// Frames of its own for what the block has in others'.
Status Keeper::own_frames(BlockIndex block) {
  if (!hot_.is_shared(block)) return hot_.make_own(block);
  const HeadSet heads = hot_.hot_heads(block);
  std::vector<std::byte> bytes(io_.frame_bytes(block) * static_cast<std::size_t>(heads.count()));
  io_.read(block, heads, bytes);
  EBB_RETURN_IF_ERROR(hot_.make_own(block));
  io_.write(block, heads, bytes);
  return {};
}

// --- anchors ---

bool Keeper::keeps_anchor(BlockIndex block) const {
  const bool stays = hot_.n_hot_frames(block) > 0 || deps_.place == RecallPlace::kOriginal;
  return stays && hot_.info(block).epoch == hot_.epoch();
}

// Decides the anchor that a block comes back with: its own, or the tail's.
void Keeper::place_cold(BlockIndex block) {
  if (!keeps_anchor(block)) place_at_tail(block);
}

void Keeper::place_at_tail(BlockIndex block) {
  hot_.set_anchor(block, hot_.next_anchor());
  hot_.join_epoch(block);
  hot_.set_next_anchor(hot_.next_anchor() + hot_.span(block).n_tokens());
}

void Keeper::compact(bool by_head, Acts& acts) {
  hot_.begin_epoch();
  std::vector<BlockIndex> blocks;
  Position next;
  // Where one had to leave, what lies before it in other heads is one block nearer than was reckoned.
  do {
    blocks.assign(hot_.hot_blocks().begin(), hot_.hot_blocks().end());
    std::vector<std::vector<std::int32_t>> advances(blocks.size());
    if (by_head) advances = find_advances(blocks);
    next = Position(0);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      move_block(blocks[i], next, std::move(advances[i]), acts);
      if (hot_.n_hot_frames(blocks[i]) == 0) continue;
      hot_.join_epoch(blocks[i]);
      next = next + hot_.span(blocks[i]).n_tokens();
    }
  } while (by_head && hot_.hot_blocks().size() < blocks.size());
  hot_.set_next_anchor(next);
}

// Of rising hot blocks: by how many tokens that are hot behind a block, but not in a head, it is nearer there to what comes.
std::vector<std::vector<std::int32_t>> Keeper::find_advances(std::span<const BlockIndex> blocks) const {
  std::vector<std::vector<std::int32_t>> advances(blocks.size());
  std::vector<std::int32_t> n_missing(hot_.shape().n_heads(), 0);
  for (std::size_t i = blocks.size(); i-- > 0;) {
    if (std::ranges::any_of(n_missing, [](std::int32_t n) { return n > 0; })) advances[i] = n_missing;
    for (std::size_t head = 0; head < n_missing.size(); ++head) {
      if (!hot_.is_hot(blocks[i], head)) n_missing[head] += hot_.span(blocks[i]).n_tokens();
    }
  }
  return advances;
}

void Keeper::move_last_block(Acts& acts) {
  if (hot_.n_blocks() == 0) return;
  const BlockIndex last = hot_.last_block();
  if (hot_.is_full(last) || hot_.n_hot_frames(last) == 0) return;
  const std::int32_t n_tokens = hot_.span(last).n_tokens();
  if (hot_.anchor(last) + n_tokens == hot_.next_anchor()) return;
  move_block(last, hot_.next_anchor(), {}, acts);
  hot_.join_epoch(last);
  hot_.set_next_anchor(hot_.next_anchor() + n_tokens);
}

// A block is turned from its saved bytes where there are any, so that it is rounded once however often it moves. Where others
// use its frames and there are none for a copy, it leaves instead, however firmly it is held.
void Keeper::move_block(BlockIndex block, Position anchor, std::vector<std::int32_t> advances, Acts& acts) {
  if (hot_.anchor(block) == anchor && std::ranges::equal(hot_.advances(block), advances)) return;
  io_.wait_for_copy(block);
  const HeadSet heads = hot_.hot_heads(block);
  std::vector<std::byte> bytes(io_.frame_bytes(block) * static_cast<std::size_t>(heads.count()));
  const std::optional<Position> saved = read_saved(block, heads, bytes);
  const Position from = saved.value_or(hot_.anchor(block));
  if (!saved) io_.read(block, heads, bytes);
  if (!hot_.make_own(block).ok()) return evict(block, heads, acts);
  const std::vector<std::int32_t> before(hot_.advances(block).begin(), hot_.advances(block).end());
  const Position anchor_before = hot_.anchor(block);
  hot_.set_anchor(block, anchor);
  hot_.set_advances(block, std::move(advances));
  std::vector<std::int32_t> n_anchors = io_.anchors_from(block, from);
  for (std::size_t head = 0; !saved && head < before.size(); ++head) n_anchors[head] -= before[head];
  io_.turn(block, heads, bytes, n_anchors);
  io_.write(block, heads, bytes);
  if (saved) {
    hot_.set_renewed(block, {});
    hot_.set_turned(block, anchor != from || hot_.is_uneven(block));
  } else {
    name_moved(block, anchor_before, n_anchors);
    if (hot_.is_full(block) && heads == hot_.shape().all_heads() && !hot_.is_uneven(block)) {
      hot_.set_body(block, io_.checksum(block), {});
    }
  }
  count_move(block);
  publish(block);
}

// Moving an open block rounds its f16 rows, as it would of f16 frames.
void Keeper::count_move(BlockIndex block) {
  ++stats_.n_moved_blocks;
  if (is_quantised(io_.layout().row_type) && !io_.is_open(block)) ++stats_.n_requantised_blocks;
}

// No record has these bytes; under a name of their own they can be saved and come back as they are.
// An uneven one lies at no one anchor that a record could tell: it is never saved as it lies.
void Keeper::name_moved(BlockIndex block, Position from, std::span<const std::int32_t> n_anchors) {
  Hasher moves;
  moves.add(hot_.info(block).variant).add(static_cast<std::uint64_t>(hot_.span(block).n_tokens()));
  if (hot_.is_turned(block)) moves.add(static_cast<std::uint64_t>(from.value()));
  if (hot_.is_renewed(block)) moves.add(hot_.renewed(block));
  hot_.set_renewed(block, {});
  hot_.set_variant(block, moves.add_bytes(std::as_bytes(n_anchors)).finish());
  hot_.set_turned(block, hot_.is_uneven(block));
  hot_.set_body(block, {}, {});
}

// The saved bytes of a full block and the anchor that they are for; none where they cannot be had.
std::optional<Position> Keeper::read_saved(BlockIndex block, const HeadSet& heads, std::span<std::byte> bytes) const {
  if (!hot_.is_full(block)) return std::nullopt;
  const Result<RecordHandle> record = io_.get(block, heads);
  if (!record.ok()) return std::nullopt;
  if (BlockIo::copy_out(**record, heads, bytes).ok()) return (*record)->header().anchor;
  io_.refuse(*record);
  return std::nullopt;
}

// --- forgetting ---

// Every border that is passed over is one that was lost.
Position Keeper::roll_back(Position end) {
  if (!snapshots_) return end;
  const Position stays = snapshots_->roll_back(end);
  stats_.n_missed_recalls += end.value() / hot_.block_size() - stays.value() / hot_.block_size();
  return stays;
}

// Whoever comes back to what these hold takes it from there; what cannot be saved is computed again (law 8).
void Keeper::leave_from(Position end) {
  const BlockIndex first(hot_.shape().n_blocks(end.value()));
  for (const BlockIndex block : std::vector(hot_.hot_blocks().begin(), hot_.hot_blocks().end())) {
    if (block < first) continue;
    if (hot_.is_full(block)) (void)save(block);
    io_.wait_for_copy(block);
    hot_.leave(block);
  }
}

void Keeper::cut(Position end, bool has_room, Acts& acts) {
  const BlockIndex open = hot_.block_at(end);
  const bool is_split = end.value() % hot_.block_size() > 0 && end < hot_.end();
  // Codes of a sealed block do not give its rows back: what stays of it is missing, and computed again before any token
  // joins it.
  const bool rows_are_gone = is_split && io_.layout().seals() && hot_.is_full(open);
  if (is_split) {
    // Rows that join it lie at one anchor in all heads.
    if (hot_.n_hot_frames(open) > 0) move_block(open, hot_.anchor(open), {}, acts);
    if (hot_.is_full(open)) (void)save(open);
    io_.wait_for_copy(open);
  }
  if (hot_.n_blocks() > 0) hot_.look_from(std::min(end, hot_.end()));
  // The record of a block is found by all its tokens: after the cut it would be looked for in vain.
  if (is_split && !rows_are_gone && !hot_.is_hot(open) && has_room) {
    Acts came;
    end_wave(begin_wave({&open, 1}, ReadBy::kCaller), came);
    came.lost.clear();
    acts += came;
  }
  if (is_split && hot_.n_hot_frames(open) > 0) {
    const bool is_whole = !rows_are_gone && hot_.hot_heads(open) == hot_.shape().all_heads();
    if (!is_whole || !own_frames(open).ok()) hot_.leave(open);
  }
  hot_.cut(end);
  // Rows that join it now are not moved as those that stay were.
  if (is_split && hot_.n_hot_frames(open) > 0 && (hot_.is_turned(open) || hot_.info(open).variant != Hash128())) {
    name_moved(open, hot_.anchor(open), {});
  }
  settle_next_anchor();
  // One without rows to turn is placed when it comes back (wake_last).
  move_last_block(acts);
}

// Behind the last block, and behind what was recalled to the tail.
void Keeper::settle_next_anchor() {
  Position next(0);
  for (std::int32_t b = 0; b < hot_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (b + 1 < hot_.n_blocks() && !keeps_anchor(block)) continue;
    next = std::max(next, hot_.anchor(block) + hot_.span(block).n_tokens());
  }
  hot_.set_next_anchor(next);
}

}  // namespace ebb
