// The moves of a turn: blocks leave the cache and come back.
#include <algorithm>

#include "base/clock.h"
#include "session/turn.h"

namespace ebb {

// --- recall ---

void Turn::recall(std::string_view question, std::int32_t max_blocks) {
  if (session_.options_.remains == Remains::kNothing) return;
  std::vector<BlockIndex> blocks;
  for (const Scored& candidate : session_.words_.rank(question)) {
    if (std::ssize(blocks) >= max_blocks) break;
    blocks.push_back(candidate.block);
  }
  recall(blocks);
}

void Turn::recall(std::span<const BlockIndex> blocks) {
  const Stopwatch watch;
  // Half of the budget stays for what the turn brings.
  const std::int32_t n_most = session_.budget_blocks_ / 2;
  for (const BlockIndex block : blocks) {
    if (std::ssize(kept_) >= n_most) break;
    if (std::ranges::find(kept_, block) != kept_.end()) continue;
    if (bring_back(block)) kept_.push_back(block);
  }
  stats_.recall_ms += watch.elapsed_ms();
}

void Turn::refill(std::int32_t n_left_blocks) {
  const Stopwatch watch;
  for (std::int32_t b = session_.n_blocks() - 1; b >= 0 && n_free_blocks() > n_left_blocks; --b) {
    const BlockIndex block(b);
    if (session_.residency_.is_hot(block) || !session_.is_saved(block)) continue;
    if (recall_block(block).ok()) stats_.recalled.push_back(block);
  }
  stats_.recall_ms += watch.elapsed_ms();
}

bool Turn::bring_back(BlockIndex block) {
  if (session_.residency_.is_hot(block)) return true;
  if (session_.options_.remains == Remains::kNothing) return false;
  if (session_.options_.remains == Remains::kBytes) {
    const Status status = recall_block(block);
    if (status.ok()) {
      stats_.recalled.push_back(block);
      return true;
    }
    ++session_.stats_.n_missed_recalls;
    if (status.code() == Code::kOutOfBudget) return false;
  }
  recompute_.push_back({.block = block});
  return true;
}

// The block that new tokens join must be hot before any comes; a session that goes on has it in the cold store.
void Turn::wake_open_block() {
  if (session_.n_blocks() == 0) return;
  const BlockIndex last(session_.n_blocks() - 1);
  if (session_.is_full(last) || session_.residency_.is_hot(last)) return;
  if (!recompute_.empty() && recompute_.front().block == last) return;
  if (recall_block(last).ok()) {
    stats_.recalled.push_back(last);
  } else {
    recompute_.insert(recompute_.begin(), {.block = last});
  }
}

Status Turn::recall_block(BlockIndex block) {
  if (session_.parts_.tier == nullptr) return error(Code::kNotFound, "no tier to recall block {} from", block.value());
  EBB_ASSIGN_OR_RETURN(const Record record, session_.parts_.tier->get(session_.record_key(block)));
  const Residency::Shape& shape = session_.residency_.shape();
  const std::size_t frame_bytes = session_.parts_.memory.frame_bytes();
  if (record.begin != session_.residency_.span(block).begin ||
      !std::ranges::equal(record.tokens, session_.block_tokens(block)) || record.n_frames != shape.frames_per_block() ||
      record.frames.size() != frame_bytes * static_cast<std::size_t>(record.n_frames)) {
    return error(Code::kDamaged, "the record of block {} holds something else", block.value());
  }
  EBB_RETURN_IF_ERROR(admit(block));
  std::span<const std::byte> bytes = record.frames;
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      const FrameIndex frame = session_.residency_.frame(block, LayerIndex(layer), HeadIndex(head));
      session_.parts_.memory.write(frame, bytes.first(frame_bytes));
      bytes = bytes.subspan(frame_bytes);
    }
  }
  Session::Block& recalled = session_.blocks_[block.index()];
  recalled.recovery = 1.0;
  recalled.last_access = session_.n_steps_;
  ++session_.stats_.n_recalled_blocks;
  return {};
}

// Frames for a block that is not hot, evicting for them; their bytes are the caller's to fill.
Status Turn::admit(BlockIndex block) {
  make_room(1);
  if (n_free_blocks() < 1) return error(Code::kOutOfBudget, "no room for block {}", block.value());
  EBB_RETURN_IF_ERROR(session_.residency_.admit(block));
  session_.stats_.peak_hot_blocks = std::max(session_.stats_.peak_hot_blocks, session_.n_hot_blocks());
  return {};
}

void Turn::prepare_frames(BlockIndex block) {
  const Residency::Shape& shape = session_.residency_.shape();
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      session_.parts_.memory.prepare(session_.residency_.frame(block, LayerIndex(layer), HeadIndex(head)));
    }
  }
}

// --- evict ---

void Turn::make_room(std::int32_t n_blocks) {
  const std::int32_t n_needed = std::max(0, n_blocks - n_free_blocks());
  const std::int32_t n_wanted =
      count_victims(session_.n_hot_blocks(), n_blocks, session_.budget_blocks_, session_.options_.watermarks);
  const std::int32_t n_victims = std::max(n_needed, n_wanted);
  if (n_victims == 0) return;
  const Evidence evidence = session_.evidence(kept_, reply());
  for (const BlockIndex victim : choose_victims(session_.parts_.policy, evidence, n_victims, n_needed)) evict(victim);
}

void Turn::evict(std::span<const BlockIndex> blocks) {
  for (const BlockIndex block : blocks) {
    if (session_.residency_.is_hot(block) && session_.is_full(block)) evict(block);
  }
}

void Turn::evict(BlockIndex block) {
  // A tier that takes nothing makes the block missing, which costs work and never truth (law 8).
  if (session_.options_.remains == Remains::kBytes && save(block).ok()) ++session_.stats_.n_saved_blocks;
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

Status Turn::save(BlockIndex block) {
  RamTier* tier = session_.parts_.tier;
  if (tier == nullptr) return error(Code::kNotFound, "no tier to save block {} to", block.value());
  const RecordKey key = session_.record_key(block);
  if (tier->touch(key.name)) return {};
  const Residency::Shape& shape = session_.residency_.shape();
  const std::size_t frame_bytes = session_.parts_.memory.frame_bytes();
  const auto tokens = session_.block_tokens(block);
  Record record{.key = key,
                .begin = session_.residency_.span(block).begin,
                .tokens = {tokens.begin(), tokens.end()},
                .n_frames = shape.frames_per_block()};
  record.frames.resize(frame_bytes * static_cast<std::size_t>(shape.frames_per_block()));
  std::span<std::byte> bytes = record.frames;
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      const FrameIndex frame = session_.residency_.frame(block, LayerIndex(layer), HeadIndex(head));
      session_.parts_.memory.read(frame, bytes.first(frame_bytes));
      bytes = bytes.subspan(frame_bytes);
    }
  }
  return tier->put(record);
}

// --- cut ---

void Turn::cut(Position end) {
  EBB_CHECK(n_step_ == 0 && end.value() >= 0 && end <= session_.end(), "a cut at {} of {}", end.value(),
            session_.end().value());
  const BlockIndex open(end.value() / session_.block_size());
  const std::int32_t n_in_open = end.value() % session_.block_size();
  // The record of a block is found by all its tokens: after the cut it would be looked for in vain.
  if (n_in_open > 0 && !session_.residency_.is_hot(open)) (void)recall_block(open);
  while (session_.n_blocks() > open.value() + (n_in_open > 0 ? 1 : 0)) {
    session_.words_.remove(BlockIndex(session_.n_blocks() - 1));
    session_.residency_.truncate_last(0);
    session_.blocks_.pop_back();
  }
  if (n_in_open > 0 && session_.end() > end) {
    session_.residency_.truncate_last(n_in_open);
    session_.blocks_.back().lineage.truncate(n_in_open);
    session_.blocks_.back().name.reset();
    session_.words_.remove(open);
  }
  session_.tokens_.resize(end.index());
  session_.said_.truncate(end);
  std::erase_if(kept_, [&](BlockIndex block) { return block.value() >= session_.n_blocks(); });
  std::erase_if(recompute_, [&](const Recompute& r) { return r.block.value() >= session_.n_blocks(); });
  pending_.clear();
  n_prompt_ = 0;
  first_ = end_ = end;
}

}  // namespace ebb
