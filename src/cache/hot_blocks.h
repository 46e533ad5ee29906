// HotBlocks: where blocks are hot, by exact name, so that hot sets can use one another's frames without a copy.
//
// It holds no frames: who is listed here uses them (FramePool counts), and takes a frame off the list before writing it, or
// with the last use (HotSet does both). So what is listed holds what its name says for as long as it is. A block may be
// listed in some heads only. It does not know sessions. Thread rule: one thread at a time (the engine's).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/ids.h"
#include "cache/block_table.h"
#include "cache/head_set.h"

namespace ebb {

struct HotBlock {
  // Names are hashes: two blocks of one name are the same if these agree too.
  std::vector<Token> tokens;
  Position anchor;
  // What its frames hold, all of them together (body_checksum).
  Hash128 body;
  std::vector<FrameIndex> frames;  // [layer][KV head]; kNoFrame where it is not listed
  std::int32_t n_frames = 0;
};

class HotBlocks {
 public:
  [[nodiscard]] std::size_t size() const { return by_name_.size(); }
  // Null when it is not listed. Valid until that name is gone.
  [[nodiscard]] const HotBlock* find(const Hash128& name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &at->second;
  }

  // Lists a block with the frames that it has; the name must not be listed.
  void add(const Hash128& name, HotBlock block) {
    const bool is_new = by_name_.emplace(name, std::move(block)).second;
    EBB_CHECK(is_new, "{} is listed already", name.hex());
  }
  void add_frame(const Hash128& name, std::size_t head, FrameIndex frame) {
    const auto at = by_name_.find(name);
    EBB_CHECK(at != by_name_.end() && at->second.frames[head] == kNoFrame,
              "{} is to be listed in head {}, and is not listed at all, or there already", name.hex(), head);
    at->second.frames[head] = frame;
    ++at->second.n_frames;
  }
  // The name goes with its last frame.
  void remove_frames(const Hash128& name, const HeadSet& heads) {
    const auto at = by_name_.find(name);
    EBB_CHECK(at != by_name_.end(), "{} is not listed", name.hex());
    HotBlock& block = at->second;
    heads.for_each([&](std::size_t head) {
      EBB_CHECK(block.frames[head] != kNoFrame, "{} is not listed in head {}", name.hex(), head);
      block.frames[head] = kNoFrame;
      --block.n_frames;
    });
    if (block.n_frames == 0) by_name_.erase(at);
  }

 private:
  std::map<Hash128, HotBlock> by_name_;
};

}  // namespace ebb
