// HotBlocks: where blocks are hot, by exact name, so that residencies can use one another's frames without a copy.
//
// It holds no frames: who is listed here uses them (FramePool counts), and takes the name off the list before it writes
// them, or with the last use (Residency does both). So what is listed holds what its name says for as long as it is. It
// does not know sessions or bytes. Thread rule: one thread at a time (the engine's).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"

namespace ebb {

struct HotBlock {
  // Names are hashes: two blocks of one name are the same if these agree too.
  std::vector<Token> tokens;
  Position anchor;
  std::vector<FrameIndex> frames;  // [layer][KV head]
};

class HotBlocks {
 public:
  [[nodiscard]] std::size_t size() const { return by_name_.size(); }
  // Null when it is not listed. Valid until that name is removed.
  [[nodiscard]] const HotBlock* find(const Hash128& name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &at->second;
  }

  void add(const Hash128& name, HotBlock block) {
    const bool is_new = by_name_.emplace(name, std::move(block)).second;
    EBB_CHECK(is_new, "{} is listed already", name.hex());
  }
  void remove(const Hash128& name) { by_name_.erase(name); }

 private:
  std::map<Hash128, HotBlock> by_name_;
};

}  // namespace ebb
