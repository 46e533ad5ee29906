// How a turn brings cold blocks back: those that a question's words choose, those that are named, and holes while there is
// room.
#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <system_error>
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
      if (arrivals[i].record == nullptr) continue;
      try {
        arrivals[i].status = bring_in(arrivals[i]);
      } catch (const std::bad_alloc&) {
        arrivals[i].status = Status(Code::kOutOfBudget, "");
      }
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
  try {
    while (threads.size() + 1 < std::min(n_cores, n_useful)) threads.emplace_back(work);
  } catch (const std::system_error&) {  // no more than there are: those that began and this one do it
  }
  work();
}

// Of the cold blocks that may fill holes, the most wanted first.
std::vector<BlockIndex> Turn::choose_holes(std::string_view question, Holes holes) const {
  struct Candidate {
    bool is_pinned = false;
    double score = 0.0;
    BlockIndex block;
  };
  std::vector<Candidate> candidates;
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const BlockIndex block(b);
    if (session_.residency_.is_hot(block)) continue;
    const bool is_pinned = session_.is_pinned(block);
    const bool is_of_epoch = session_.blocks_[block.index()].epoch == session_.epoch_;
    if (holes == Holes::kOfEpoch && !is_of_epoch && !is_pinned) continue;
    if (session_.is_saved(block)) candidates.push_back({.is_pinned = is_pinned, .block = block});
  }
  if (candidates.empty()) return {};
  std::map<BlockIndex, double> scores;
  for (const Scored& scored : session_.words_.rank(question)) scores[scored.block] = scored.score;
  for (Candidate& candidate : candidates) {
    if (const auto found = scores.find(candidate.block); found != scores.end()) candidate.score = found->second;
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.is_pinned, a.score, a.block.value()) > std::tuple(b.is_pinned, b.score, b.block.value());
  });
  std::vector<BlockIndex> blocks;
  for (const Candidate& candidate : candidates) blocks.push_back(candidate.block);
  return blocks;
}

void Turn::refill(std::int32_t n_left_blocks, std::string_view question, Holes holes) {
  if (n_free_blocks() <= n_left_blocks) return;
  const Stopwatch watch;
  for (const BlockIndex block : choose_holes(question, holes)) {
    if (n_free_blocks() <= n_left_blocks) break;
    if (!keeps_anchor(block) && !make_anchors_for(session_.residency_.span(block).n_tokens()).ok()) break;
    place_cold(block);
    if (recall_block(block).ok()) stats_.recalled.push_back(block);
  }
  settle_anchors();
  stats_.recall_ms += watch.elapsed_ms();
}

bool Turn::bring_back(BlockIndex block) {
  if (session_.options_.remains == Remains::kNothing) return false;
  if (!keeps_anchor(block) && !make_anchors_for(session_.residency_.span(block).n_tokens()).ok()) return false;
  // Before it is placed: what leaves may close up, and that begins a new epoch.
  if (n_free_blocks() < 1) make_room(1);
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
  if (n_free_blocks() < 1) make_room(1);
  place_cold_open(last);
  const auto queued = std::ranges::find(recompute_, last, &Recompute::block);
  if (queued != recompute_.end()) {
    std::rotate(recompute_.begin(), queued, queued + 1);
    return;
  }
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
Result<RecordHandle> Turn::get_record(BlockIndex block) const {
  ColdStore* store = session_.parts_.store;
  if (store == nullptr) return error(Code::kNotFound, "no cold store to recall block {} from", block.value());
  const RecordHeader wanted = session_.record_header(block);
  EBB_ASSIGN_OR_RETURN(RecordHandle record, store->get(wanted.key));
  const RecordHeader& header = record->header();
  if (header.begin != wanted.begin || header.n_frames != wanted.n_frames || header.frame_bytes != wanted.frame_bytes ||
      !std::ranges::equal(record->tokens(), session_.block_tokens(block))) {
    store->refuse(record);
    return error(Code::kDamaged, "the record of block {} holds something else", block.value());
  }
  return record;
}

Result<Turn::Arrival> Turn::find_record(BlockIndex block) {
  EBB_ASSIGN_OR_RETURN(const RecordHandle record, get_record(block));
  const std::int32_t n_anchors = session_.anchor(block) - record->header().anchor;
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

// A block whose bytes did not hold leaves again, and its record with it; one that there was no memory for keeps it.
Status Turn::end_recall(const Arrival& arrival, const Status& status) {
  if (!status.ok()) {
    session_.residency_.evict(arrival.block);
    if (status.code() != Code::kOutOfBudget) session_.parts_.store->refuse(arrival.record);
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

}  // namespace ebb
