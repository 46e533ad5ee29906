// Where a hot set's blocks are hot: frames taken from the pool and from what others list, and given back.
#include <algorithm>

#include "cache/hot_set.h"

namespace ebb {

void HotSet::set_hot(BlockIndex block, std::size_t head, FrameIndex frame) {
  Block& b = get(block);
  if (b.frames.empty()) b.frames.assign(shape_.n_heads(), kNoFrame);
  b.frames[head] = frame;
  ++n_hot_frames_;
  if (b.n_hot++ == 0) hot_.insert(std::ranges::lower_bound(hot_, block), block);
}

void HotSet::set_cold(BlockIndex block, std::size_t head) {
  Block& b = get(block);
  b.frames[head] = kNoFrame;
  --n_hot_frames_;
  if (--b.n_hot > 0) return;
  hot_.erase(std::ranges::lower_bound(hot_, block));
  b.frames = {};
  b.open = {};
  b.listed = false;
  b.turned = false;
  change_moves(block, [&] {
    b.advances = {};
    b.renewed = {};
  });
}

// Takes those of its frames off the list that nobody else uses.
void HotSet::unlist(BlockIndex block, const HeadSet& heads) {
  const Block& b = get(block);
  if (!b.listed) return;
  const Hash128 name = exact_name(block);
  const HotBlock* const listed = sources_.shared->find(name);
  if (listed == nullptr) return;
  HeadSet own(shape_.n_heads());
  heads.for_each([&](std::size_t head) {
    if (listed->frames[head] == b.frames[head] && sources_.pool.n_users(b.frames[head]) == 1) own.add(head);
  });
  if (!own.empty()) sources_.shared->remove_frames(name, own);
}

void HotSet::release_open(BlockIndex block, std::size_t head) {
  Block& b = get(block);
  if (b.open.empty() || b.open[head] == kNoFrame) return;
  sources_.open_pool->release({&b.open[head], 1});
  b.open[head] = kNoFrame;
}

void HotSet::leave(BlockIndex block, const HeadSet& heads) {
  const HeadSet leaving = hot_heads(block) & heads;
  if (leaving.empty()) return;
  unlist(block, leaving);
  leaving.for_each([&](std::size_t head) {
    release_open(block, head);
    sources_.pool.release({&get(block).frames[head], 1});
    set_cold(block, head);
  });
  note_change(block);
  update_leaf(block);
}

void HotSet::leave(BlockIndex block) { leave(block, shape_.all_heads()); }

Result<HeadSet> HotSet::come(BlockIndex block, const HeadSet& heads, bool takes_listed) {
  const HotBlock* const listed = takes_listed ? find_listed(block) : nullptr;
  const HeadSet missing = missing_heads(block);
  HeadSet fill = heads;
  heads.for_each([&](std::size_t head) {
    EBB_CHECK(missing.contains(head), "block {} comes in head {}, where it is, or behind its window", block.value(),
              head);
    if (listed != nullptr && listed->frames[head] != kNoFrame) fill.remove(head);
  });
  std::vector<FrameIndex> own(static_cast<std::size_t>(fill.count()));
  EBB_RETURN_IF_ERROR(sources_.pool.acquire(own));
  std::size_t n_taken = 0;
  heads.for_each([&](std::size_t head) {
    if (fill.contains(head)) return set_hot(block, head, own[n_taken++]);
    sources_.pool.share({&listed->frames[head], 1});
    set_hot(block, head, listed->frames[head]);
  });
  if (fill != heads) get(block).listed = true;
  // What comes is as it was saved, beside heads whose rows were computed again.
  if (is_renewed(block)) {
    get(block).renewed = Hasher().add(renewed(block)).add_bytes(std::as_bytes(std::span(heads.words()))).finish();
  }
  note_change(block);
  update_leaf(block);
  return fill;
}

Status HotSet::hold_open(BlockIndex block) {
  Block& b = get(block);
  if (sources_.open_pool == nullptr) return {};
  EBB_CHECK(b.n_hot > 0, "block {} is to be open, and is not hot", block.value());
  HeadSet heads = hot_heads(block);
  for (std::size_t head = 0; head < b.open.size(); ++head) {
    if (b.open[head] != kNoFrame) heads.remove(head);
  }
  std::vector<FrameIndex> frames(static_cast<std::size_t>(heads.count()));
  if (!sources_.open_pool->acquire(frames).ok()) {
    return error(Code::kOutOfBudget,
                 "all {} blocks that may be open at once are; end other sessions, or open the engine with "
                 "more open blocks",
                 sources_.open_pool->n_frames() / shape_.frames_per_block());
  }
  if (b.open.empty()) b.open.assign(shape_.n_heads(), kNoFrame);
  std::size_t n_taken = 0;
  heads.for_each([&](std::size_t head) { b.open[head] = frames[n_taken++]; });
  stale_ |= heads;
  return {};
}

void HotSet::seal(BlockIndex block) {
  Block& b = get(block);
  if (b.open.empty()) return;
  for (std::size_t head = 0; head < b.open.size(); ++head) release_open(block, head);
  b.open = {};
  note_change(block);
}

const HotBlock* HotSet::find_listed(BlockIndex block) const {
  if (sources_.shared == nullptr || !has_all_tokens(block) || is_uneven(block) || is_renewed(block)) return nullptr;
  const HotBlock* const listed = sources_.shared->find(exact_name(block));
  const BlockRecordInfo& info = get(block).info;
  const bool is_same = listed != nullptr && listed->anchor == info.anchor &&
                       (info.body == Hash128() || info.body == listed->body) &&
                       std::ranges::equal(listed->tokens, block_tokens(block));
  return is_same ? listed : nullptr;
}

void HotSet::publish(BlockIndex block) {
  Block& b = get(block);
  if (sources_.shared == nullptr || b.turned || is_uneven(block) || is_renewed(block) || b.n_hot == 0 ||
      b.info.body == Hash128() || !has_all_tokens(block))
    return;
  const Hash128 name = exact_name(block);
  if (sources_.shared->find(name) == nullptr) {
    const std::span<const Token> tokens = block_tokens(block);
    sources_.shared->add(name, {.tokens = {tokens.begin(), tokens.end()},
                                .anchor = b.info.anchor,
                                .body = b.info.body,
                                .frames = b.frames,
                                .n_frames = b.n_hot});
    b.listed = true;
    return;
  }
  const HotBlock* const listed = find_listed(block);
  if (listed == nullptr) return;
  b.listed = true;
  hot_heads(block).for_each([&](std::size_t head) {
    const FrameIndex theirs = listed->frames[head];
    if (theirs == kNoFrame) return sources_.shared->add_frame(name, head, b.frames[head]);
    if (theirs == b.frames[head]) return;
    sources_.pool.share({&theirs, 1});
    sources_.pool.release({&b.frames[head], 1});
    b.frames[head] = theirs;
    note_change(block);
  });
}

Status HotSet::make_own(BlockIndex block) {
  Block& b = get(block);
  if (!b.listed) return {};
  const HeadSet heads = hot_heads(block);
  const auto n_others = static_cast<std::size_t>(b.n_hot - n_own_frames(block));
  std::vector<FrameIndex> own(n_others);
  EBB_RETURN_IF_ERROR(sources_.pool.acquire(own));
  unlist(block, heads);
  std::size_t n_taken = 0;
  heads.for_each([&](std::size_t head) {
    if (sources_.pool.n_users(b.frames[head]) == 1) return;
    sources_.pool.release({&b.frames[head], 1});
    b.frames[head] = own[n_taken++];
  });
  note_change(block);
  b.listed = false;
  return {};
}

// Block b lies behind the window w of queries at `eye` and later when its last token does: (b + 1) * size - 1 <= eye - w.
std::int32_t HotSet::count_behind(const WindowGroup& group, Position eye) const {
  return std::clamp((eye.value() - group.window + 1) / shape_.block_size, 0, end().value() / shape_.block_size);
}

std::vector<BlockIndex> HotSet::find_passing(Position eye) const {
  std::vector<BlockIndex> blocks;
  for (const WindowGroup& group : groups_) {
    for (BlockIndex block(group.n_behind); block.value() < count_behind(group, eye);
         block = BlockIndex(block.value() + 1)) {
      if (!(hot_heads(block) & group.heads).empty()) blocks.push_back(block);
    }
  }
  std::ranges::sort(blocks);
  const auto twice = std::ranges::unique(blocks);
  blocks.erase(twice.begin(), twice.end());
  return blocks;
}

void HotSet::look_from(Position eye) {
  eye_ = eye;
  for (WindowGroup& group : groups_) {
    const std::int32_t before = group.n_behind;
    const std::int32_t now = count_behind(group, eye);
    group.n_behind = now;
    for (std::int32_t b = before; b < now; ++b) leave(BlockIndex(b), group.heads);
    for (std::int32_t b = std::min(before, now); b < std::max(before, now) && b < n_blocks(); ++b) {
      update_leaf(BlockIndex(b));
    }
  }
}

}  // namespace ebb
