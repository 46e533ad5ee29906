// How blocks leave: evicted for room, saved, cut off.
#include <algorithm>

#include "session/turn.h"

namespace ebb {

// --- evict ---

void Turn::make_room(std::int32_t n_blocks) {
  const std::size_t n_before = stats_.evicted.size();
  evict_for_budget(n_blocks);
  evict_for_pool(n_blocks);
  if (session_.options_.removal == Removal::kCompact && stats_.evicted.size() > n_before) compact();
}

// Until n_blocks more fit into what this session may have hot.
void Turn::evict_for_budget(std::int32_t n_blocks) {
  const std::int32_t n_needed = std::max(0, session_.n_hot_blocks() + n_blocks - session_.budget_blocks_);
  const std::int32_t n_wanted =
      count_victims(session_.n_hot_blocks(), n_blocks, session_.budget_blocks_, session_.options_.watermarks);
  const std::int32_t n_victims = std::max(n_needed, n_wanted);
  if (n_victims == 0) return;
  const Evidence evidence = evidence_now();
  for (const BlockIndex victim : choose_victims(session_.parts_.policy, evidence, n_victims, n_needed)) evict(victim);
}

// Until the pool has frames for n_blocks more: what others use too gives none back.
void Turn::evict_for_pool(std::int32_t n_blocks) {
  const std::int32_t n_needed =
      n_blocks - session_.parts_.pool.n_free() / session_.residency_.shape().frames_per_block();
  if (n_needed <= 0) return;
  Evidence evidence = evidence_now();
  std::erase_if(evidence.blocks, [&](const BlockEvidence& b) { return session_.residency_.is_shared(b.block); });
  for (const BlockIndex victim : choose_victims(session_.parts_.policy, evidence, n_needed, n_needed)) evict(victim);
}

std::int32_t Turn::set_budget(std::int32_t n_tokens) {
  const std::int32_t pool_blocks = session_.parts_.pool.n_frames() / session_.residency_.shape().frames_per_block();
  session_.budget_blocks_ = std::clamp(n_tokens / session_.block_size(), 1, pool_blocks);
  make_room(0);
  session_.budget_blocks_ = std::max(session_.budget_blocks_, session_.n_hot_blocks());
  return session_.budget_blocks_ * session_.block_size();
}

void Turn::evict(std::span<const BlockIndex> blocks) {
  for (const BlockIndex block : blocks) {
    if (session_.residency_.is_hot(block) && session_.is_full(block)) evict(block);
  }
  if (session_.options_.removal == Removal::kCompact) compact();
}

void Turn::evict(BlockIndex block) {
  // A store that takes nothing makes the block missing, which costs work and never truth (law 8).
  if (session_.options_.remains == Remains::kBytes && save(block).ok()) ++session_.stats_.n_saved_blocks;
  session_.wait_for_copy(block);
  session_.residency_.evict(block);
  ++session_.stats_.n_evicted_blocks;
  stats_.evicted.push_back(block);
}

Status Turn::save_hot() {
  Status first_error;
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    if (!session_.residency_.is_hot(BlockIndex(b))) continue;
    const Status status = save(BlockIndex(b));
    if (first_error.ok()) first_error = status;
  }
  return first_error;
}

void Turn::save_hot_behind() {
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (session_.residency_.is_hot(block) && session_.is_full(block) && !session_.blocks_[block.index()].turned) {
      save_behind(block);
    }
  }
}

void Turn::save_for_image() {
  save_hot_behind();
  if (session_.n_blocks() == 0 || session_.options_.remains != Remains::kBytes) return;
  const BlockIndex last(session_.n_blocks() - 1);
  // What cannot be saved is computed again (law 8).
  if (!session_.is_full(last) && session_.residency_.is_hot(last)) (void)save(last);
}

Status Turn::save(BlockIndex block) {
  ColdStore* store = session_.parts_.store;
  if (store == nullptr) return error(Code::kNotFound, "no cold store to save block {} to", block.value());
  session_.wait_for_copy(block);
  if (store->touch(session_.exact_name(block))) return {};
  if (session_.blocks_[block.index()].turned) {
    return error(Code::kNotFound, "block {} was moved, and its own bytes are no longer kept", block.value());
  }
  RecordBuilder record(session_.record_header(block), session_.block_tokens(block));
  session_.read_frames(block, record.frames());
  return store->put(std::move(record).seal());
}

// Write-behind: a block that is full never changes, so the store's thread copies it while the model computes, and it is
// clean when it has to leave.
void Turn::save_behind(BlockIndex block) {
  ColdStore* store = session_.parts_.store;
  // Frames of other devices are read by the thread that computes.
  if (store == nullptr || session_.options_.remains != Remains::kBytes ||
      session_.parts_.memory.host_bytes() == nullptr) {
    return;
  }
  const FrameMemory& memory = session_.parts_.memory;
  store->put_behind(session_.record_header(block), session_.block_tokens(block),
                    [&memory, frames = frames_of(block)](std::span<std::byte> bytes) {
                      for (const FrameIndex frame : frames) {
                        memory.read(frame, bytes.first(memory.frame_bytes()));
                        bytes = bytes.subspan(memory.frame_bytes());
                      }
                    });
}

// --- cut ---

// Whoever comes back to what these hold takes it from there; what cannot be saved is computed again (law 8).
void Turn::save_from(BlockIndex first) {
  if (session_.options_.remains != Remains::kBytes) return;
  for (std::int32_t b = first.value(); b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (session_.is_full(block) && session_.residency_.is_hot(block)) (void)save(block);
  }
}

void Turn::cut(Position end) {
  EBB_CHECK(n_step_ == 0 && end.value() >= 0 && end <= session_.end(), "a cut at {} of {}", end.value(),
            session_.end().value());
  const BlockIndex open(end.value() / session_.block_size());
  const std::int32_t n_in_open = end.value() % session_.block_size();
  // Codes of a sealed block do not give its rows back: what stays of it is missing, and computed again before any token
  // joins it.
  const bool rows_are_gone = n_in_open > 0 && session_.parts_.open_pool != nullptr && session_.is_full(open);
  save_from(open);
  // The record of a block is found by all its tokens: after the cut it would be looked for in vain.
  if (n_in_open > 0 && !rows_are_gone && !session_.residency_.is_hot(open) && recall_block(open).ok()) {
    stats_.recalled.push_back(open);
  }
  while (session_.n_blocks() > open.value() + (n_in_open > 0 ? 1 : 0)) {
    const BlockIndex last = last_block();
    session_.wait_for_copy(last);
    session_.words_.remove(last);
    session_.residency_.truncate_last(0);
    session_.blocks_.pop_back();
  }
  if (n_in_open > 0 && session_.end() > end) {
    session_.wait_for_copy(open);
    if (rows_are_gone || !make_own_copy(open).ok()) session_.residency_.evict(open);
    session_.residency_.truncate_last(n_in_open);
    session_.blocks_.back().lineage.truncate(n_in_open);
    session_.blocks_.back().name.reset();
    // Rows that join it now are not moved as those that stay were.
    const Session::Block& cut = session_.blocks_.back();
    if (session_.residency_.is_hot(open) && (cut.turned || cut.moves != Hash128())) name_moved(open, 0);
    session_.words_.remove(open);
  }
  session_.tokens_.resize(end.index());
  // Behind the last block, and behind what was recalled to the tail.
  session_.next_anchor_ = Position(0);
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (b + 1 < session_.n_blocks() && !session_.residency_.is_hot(block) && !keeps_anchor(block)) continue;
    const Position end_anchor = session_.anchor(block) + session_.residency_.span(block).n_tokens();
    session_.next_anchor_ = std::max(session_.next_anchor_, end_anchor);
  }
  // One without rows to turn is placed when it comes back (wake_open_block).
  move_open_block();
  session_.said_.truncate(end);
  std::erase_if(kept_, [&](BlockIndex block) { return block.value() >= session_.n_blocks(); });
  std::erase_if(recompute_, [&](const Recompute& r) { return r.block.value() >= session_.n_blocks(); });
  pending_.clear();
  grafts_.clear();
  n_prompt_ = 0;
  first_ = end_ = end;
}

}  // namespace ebb
