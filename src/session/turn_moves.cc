// The moves of a turn: blocks leave the cache and come back.
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "device/backend.h"
#include "policy/select.h"
#include "session/turn.h"

namespace ebb {
namespace {

// Whose records are held at once beside their frames. Fewer: threads are started more often.
constexpr std::size_t kWaveBlocks = 32;

// Bytes for which another thread is worth starting. Fewer: on a busy machine the turn waits longer for it than it saves.
constexpr std::size_t kThreadBytes = std::size_t{4} << 20;

}  // namespace

// --- recall ---

void Turn::recall(std::string_view question, std::int32_t max_blocks) {
  if (session_.options_.remains == Remains::kNothing) return;
  std::vector<bool> is_hot;
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) is_hot.push_back(session_.residency_.is_hot(BlockIndex(b)));
  Selection selection = select_blocks(session_.words_.rank(question), is_hot, max_blocks);
  selection.recall.insert(selection.recall.end(), selection.keep.begin(), selection.keep.end());
  recall(selection.recall);
}

void Turn::recall(std::span<const BlockIndex> blocks) {
  const Stopwatch watch;
  // Half of the budget stays for what the turn brings.
  const auto n_most = static_cast<std::size_t>(session_.budget_blocks_ / 2);
  std::vector<BlockIndex> wanted;
  for (const BlockIndex block : blocks) {
    if (kept_.size() + wanted.size() >= n_most) break;
    const auto is_block = [&](BlockIndex b) { return b == block; };
    if (std::ranges::none_of(kept_, is_block) && std::ranges::none_of(wanted, is_block)) wanted.push_back(block);
  }
  // What is hot and wanted must not leave for what comes; and neighbours that move together stay neighbours.
  std::ranges::sort(wanted);
  std::ranges::copy_if(wanted, std::back_inserter(kept_), [&](BlockIndex b) { return session_.residency_.is_hot(b); });
  std::erase_if(wanted, [&](BlockIndex b) { return session_.residency_.is_hot(b); });
  if (!bring_back_together(wanted)) {
    for (const BlockIndex block : wanted) {
      if (bring_back(block)) kept_.push_back(block);
    }
  }
  settle_anchors();
  stats_.recall_ms += watch.elapsed_ms();
}

// Several blocks by several threads. Only where none of them needs another to leave or all to move: then what each
// brings in has nothing to do with the others, and the result is that of one after the other.
bool Turn::bring_back_together(std::span<const BlockIndex> blocks) {
  const auto n_blocks = static_cast<std::int32_t>(blocks.size());
  if (n_blocks < 2 || session_.options_.remains != Remains::kBytes || session_.parts_.store == nullptr ||
      session_.parts_.memory.host_bytes() == nullptr) {
    return false;
  }
  make_room(n_blocks);
  const std::int32_t n_tokens = n_blocks * session_.block_size();
  if (n_free_blocks() < n_blocks || session_.next_anchor_.value() + n_tokens > session_.n_ctx_train()) return false;
  while (!blocks.empty()) {
    const auto wave = blocks.first(std::min(blocks.size(), kWaveBlocks));
    blocks = blocks.subspan(wave.size());
    std::vector<Arrival> arrivals;
    for (const BlockIndex block : wave) {
      place_cold(block);
      Result<Arrival> arrival = begin_recall(block);
      arrivals.push_back(arrival.ok() ? std::move(arrival).value()
                                      : Arrival{.block = block, .record = nullptr, .status = arrival.status()});
    }
    bring_in_all(arrivals);
    for (const Arrival& arrival : arrivals) {
      Status status = arrival.record == nullptr ? arrival.status : end_recall(arrival, arrival.status);
      if (status.ok()) note_recalled(arrival.block);
      // Another tier may have a good record.
      if (status.code() == Code::kDamaged) status = recall_block(arrival.block);
      if (note_return(arrival.block, status)) kept_.push_back(arrival.block);
    }
  }
  return true;
}

// By several threads, where frames are in this process's memory.
void Turn::bring_in_all(std::span<Arrival> arrivals) {
  std::atomic<std::size_t> n_taken{0};
  const auto work = [&] {
    for (std::size_t i = n_taken.fetch_add(1); i < arrivals.size(); i = n_taken.fetch_add(1)) {
      if (arrivals[i].record != nullptr) arrivals[i].status = bring_in(arrivals[i]);
    }
  };
  static const auto n_cores = static_cast<std::size_t>(default_threads());
  std::size_t n_bytes = 0;
  for (const Arrival& arrival : arrivals) {
    if (arrival.record != nullptr) n_bytes += session_.block_bytes(arrival.block);
  }
  const bool at_once = session_.parts_.memory.host_bytes() != nullptr;
  const std::size_t n_useful = at_once ? std::min(arrivals.size(), n_bytes / kThreadBytes) : 1;
  std::vector<std::jthread> threads;
  while (threads.size() + 1 < std::min(n_cores, n_useful)) threads.emplace_back(work);
  work();
}

std::vector<BlockIndex> Turn::cold_by_relevance(std::string_view question) const {
  struct Candidate {
    bool is_pinned;
    double score;
    BlockIndex block;
  };
  std::map<BlockIndex, double> scores;
  for (const Scored& scored : session_.words_.rank(question)) scores[scored.block] = scored.score;
  std::vector<Candidate> candidates;
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (session_.residency_.is_hot(block) || !session_.is_saved(block)) continue;
    const auto score = scores.find(block);
    candidates.push_back(
        {.is_pinned = session_.is_pinned(block), .score = score != scores.end() ? score->second : 0.0, .block = block});
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.is_pinned, a.score, a.block.value()) > std::tuple(b.is_pinned, b.score, b.block.value());
  });
  std::vector<BlockIndex> blocks;
  for (const Candidate& candidate : candidates) blocks.push_back(candidate.block);
  return blocks;
}

void Turn::refill(std::int32_t n_left_blocks, std::string_view question) {
  if (n_free_blocks() <= n_left_blocks) return;
  const Stopwatch watch;
  for (const BlockIndex block : cold_by_relevance(question)) {
    if (n_free_blocks() <= n_left_blocks) break;
    if (!make_anchors_for(session_.residency_.span(block).n_tokens()).ok()) break;
    place_cold(block);
    if (recall_block(block).ok()) stats_.recalled.push_back(block);
  }
  settle_anchors();
  stats_.recall_ms += watch.elapsed_ms();
}

bool Turn::bring_back(BlockIndex block) {
  if (session_.options_.remains == Remains::kNothing) return false;
  if (!make_anchors_for(session_.residency_.span(block).n_tokens()).ok()) return false;
  place_cold(block);
  if (session_.options_.remains == Remains::kBytes) return note_return(block, recall_block(block));
  recompute_.push_back({.block = block});
  return true;
}

// What follows from how a recall ended; false if the block is not to be had this turn.
bool Turn::note_return(BlockIndex block, const Status& status) {
  if (status.ok()) {
    stats_.recalled.push_back(block);
    return true;
  }
  ++session_.stats_.n_missed_recalls;
  if (status.code() == Code::kOutOfBudget) return false;
  recompute_.push_back({.block = block});
  return true;
}

// The block that new tokens join must be hot before any comes; a session that goes on has it in the cold store.
void Turn::wake_open_block() {
  if (session_.n_blocks() == 0) return;
  const BlockIndex last(session_.n_blocks() - 1);
  if (session_.is_full(last) || session_.residency_.is_hot(last)) return;
  const auto queued = std::ranges::find(recompute_, last, &Recompute::block);
  if (queued != recompute_.end()) {
    std::rotate(recompute_.begin(), queued, queued + 1);
    return;
  }
  place_cold(last);
  if (recall_block(last).ok()) {
    stats_.recalled.push_back(last);
  } else {
    recompute_.insert(recompute_.begin(), {.block = last});
  }
}

// A second tier may have a good record where the first had a damaged one.
Status Turn::recall_block(BlockIndex block) {
  constexpr int kTries = 2;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    status = try_recall(block);
    if (status.code() != Code::kDamaged) break;
  }
  if (status.ok()) note_recalled(block);
  return status;
}

void Turn::note_recalled(BlockIndex block) {
  Session::Block& recalled = session_.blocks_[block.index()];
  recalled.recovery = 1.0;
  recalled.last_access = session_.n_steps_;
  ++session_.stats_.n_recalled_blocks;
}

Status Turn::try_recall(BlockIndex block) {
  EBB_ASSIGN_OR_RETURN(const Arrival arrival, begin_recall(block));
  if (arrival.record == nullptr) return {};
  return end_recall(arrival, bring_in(arrival));
}

// The record that has what the block holds.
Result<Turn::Arrival> Turn::find_record(BlockIndex block) {
  ColdStore* store = session_.parts_.store;
  if (store == nullptr) return error(Code::kNotFound, "no cold store to recall block {} from", block.value());
  const RecordHeader wanted = session_.record_header(block);
  EBB_ASSIGN_OR_RETURN(const RecordHandle record, store->get(wanted.key));
  const RecordHeader& header = record->header();
  if (header.begin != wanted.begin || header.n_frames != wanted.n_frames || header.frame_bytes != wanted.frame_bytes ||
      !std::ranges::equal(record->tokens(), session_.block_tokens(block))) {
    store->refuse(record);
    return error(Code::kDamaged, "the record of block {} holds something else", block.value());
  }
  const std::int32_t n_anchors = session_.anchor(block) - header.anchor;
  if (n_anchors != 0 && session_.parts_.mover == nullptr) {
    return error(Code::kUnsupported, "block {} cannot be moved by {} anchors here", block.value(), n_anchors);
  }
  return Arrival{.block = block, .record = record, .n_anchors = n_anchors};
}

// Frames for a cold block: those that another session has it in, or else its own and the record to fill them.
Result<Turn::Arrival> Turn::begin_recall(BlockIndex block) {
  if (share_hot(block)) return Arrival{.block = block};
  EBB_ASSIGN_OR_RETURN(Arrival arrival, find_record(block));
  EBB_RETURN_IF_ERROR(admit(block));
  return arrival;
}

// Changes nothing but the block's frames, so that several blocks may be brought in at once.
Status Turn::bring_in(const Arrival& arrival) {
  return arrival.n_anchors == 0 ? copy_in(*arrival.record, arrival.block)
                                : copy_moved(*arrival.record, arrival.block, arrival.n_anchors);
}

// A block whose bytes did not hold leaves again, and its record with it.
Status Turn::end_recall(const Arrival& arrival, const Status& status) {
  if (!status.ok()) {
    session_.residency_.evict(arrival.block);
    session_.parts_.store->refuse(arrival.record);
    return status;
  }
  session_.blocks_[arrival.block.index()].turned = arrival.n_anchors != 0;
  if (arrival.n_anchors != 0) session_.count_move(arrival.block);
  publish(arrival.block);
  return {};
}

// Frames for a block that is not hot, evicting for them; their bytes are the caller's to fill.
Status Turn::admit(BlockIndex block) {
  // Not down to the low mark: of several that come at once, one must not leave for another.
  if (n_free_blocks() < 1) make_room(1);
  if (n_free_blocks() < 1) return error(Code::kOutOfBudget, "no room for block {}", block.value());
  EBB_RETURN_IF_ERROR(session_.residency_.admit(block));
  if (!session_.is_full(block)) {
    if (Status held = session_.residency_.hold_open(block); !held.ok()) {
      session_.residency_.evict(block);
      return held;
    }
  }
  session_.stats_.peak_hot_blocks = std::max(session_.stats_.peak_hot_blocks, session_.n_hot_blocks());
  return {};
}

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
  const Evidence evidence = session_.evidence(kept_, reply());
  for (const BlockIndex victim : choose_victims(session_.parts_.policy, evidence, n_victims, n_needed)) evict(victim);
}

// Until the pool has frames for n_blocks more: what others use too gives none back.
void Turn::evict_for_pool(std::int32_t n_blocks) {
  const std::int32_t n_needed =
      n_blocks - session_.parts_.pool.n_free() / session_.residency_.shape().frames_per_block();
  if (n_needed <= 0) return;
  Evidence evidence = session_.evidence(kept_, reply());
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

void Turn::cut(Position end) {
  EBB_CHECK(n_step_ == 0 && end.value() >= 0 && end <= session_.end(), "a cut at {} of {}", end.value(),
            session_.end().value());
  const BlockIndex open(end.value() / session_.block_size());
  const std::int32_t n_in_open = end.value() % session_.block_size();
  // Codes of a sealed block do not give its rows back: what stays of it is missing, and computed again before any token
  // joins it.
  const bool rows_are_gone = n_in_open > 0 && session_.parts_.open_pool != nullptr && session_.is_full(open);
  // The record of a block is found by all its tokens: after the cut it would be looked for in vain.
  if (n_in_open > 0 && !rows_are_gone && !session_.residency_.is_hot(open)) (void)recall_block(open);
  while (session_.n_blocks() > open.value() + (n_in_open > 0 ? 1 : 0)) {
    session_.wait_for_copy(BlockIndex(session_.n_blocks() - 1));
    session_.words_.remove(BlockIndex(session_.n_blocks() - 1));
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
  // Behind the last block, and behind what was recalled to the tail and is still hot.
  session_.next_anchor_ = Position(0);
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (b + 1 < session_.n_blocks() && !session_.residency_.is_hot(block)) continue;
    const Position end_anchor = session_.anchor(block) + session_.residency_.span(block).n_tokens();
    session_.next_anchor_ = std::max(session_.next_anchor_, end_anchor);
  }
  if (n_in_open > 0 && !session_.residency_.is_hot(open) &&
      session_.anchor(open) + n_in_open != session_.next_anchor_) {
    // It has no rows to turn: it comes back, or is computed again, where new tokens go on.
    session_.blocks_.back().anchor = session_.next_anchor_;
    session_.next_anchor_ = session_.next_anchor_ + n_in_open;
  }
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
