// Frames that serve several sessions: what a turn gives to others, what it takes from them, and what it must have alone.
#include <algorithm>

#include "session/turn.h"

namespace ebb {

// A full block no longer changes: whoever comes to its exact name may use its frames. Where others have that name hot,
// their frames serve this session too, so that the pool holds no block twice. Before its bytes are given to the store's
// thread, which would go on reading frames that this gives back.
void Turn::publish(BlockIndex block) {
  const HotBlocks* const hot = session_.parts_.hot;
  if (hot == nullptr || !session_.is_full(block) || session_.blocks_[block.index()].turned) return;
  const Hash128 name = session_.exact_name(block);
  list_start(block);
  if (session_.is_listed(block)) {
    session_.residency_.share(block, name);
  } else if (hot->find(name) == nullptr) {
    session_.residency_.publish(block, name, session_.block_tokens(block), session_.anchor(block));
  }
}

// For those whose prompt begins this block as it does.
void Turn::list_start(BlockIndex block) {
  const std::vector<Lineage::Run>& runs = session_.blocks_[block.index()].lineage.runs();
  if (session_.parts_.starts == nullptr || session_.blocks_[block.index()].moves != Hash128()) return;
  const Hash128 place = session_.place_name(session_.residency_.span(block).begin, runs.front().visible);
  session_.parts_.starts->add(place, session_.exact_name(block),
                              session_.block_tokens(block).first(static_cast<std::size_t>(runs.front().n_tokens)));
}

// A cold block becomes hot in the frames that another session has it in. False if none has, or the budget is held.
bool Turn::share_hot(BlockIndex block) {
  if (!session_.is_listed(block)) return false;
  if (session_.n_hot_blocks() >= session_.budget_blocks_) evict_for_budget(1);
  if (session_.n_hot_blocks() >= session_.budget_blocks_) return false;
  session_.residency_.share(block, session_.exact_name(block));
  session_.blocks_[block.index()].turned = false;
  session_.stats_.peak_hot_blocks = std::max(session_.stats_.peak_hot_blocks, session_.n_hot_blocks());
  ++session_.stats_.n_shared_blocks;
  stats_.shared.push_back(block);
  return true;
}

// Before a block's frames are written: they are this session's alone. What they hold may be lost.
Status Turn::make_own(BlockIndex block) {
  if (session_.residency_.is_shared(block)) evict_for_pool(1);
  return session_.residency_.make_own(block);
}

// The same, with what they hold.
Status Turn::make_own_copy(BlockIndex block) {
  if (!session_.residency_.is_shared(block)) return make_own(block);
  std::vector<std::byte> bytes(session_.block_bytes(block));
  session_.read_frames(block, bytes);
  EBB_RETURN_IF_ERROR(make_own(block));
  write_frames(block, bytes);
  return {};
}

}  // namespace ebb
