// Evidence: the numbers that policies may look at. Never tensors, never text.
//
// A snapshot of one session's blocks, taken before a choice; choosing changes nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/span.h"

namespace ebb {

struct BlockEvidence {
  BlockIndex block;
  Span span;
  // May not be evicted: pinned, recalled for this turn, or still being written.
  bool pinned = false;
};

struct Evidence {
  // Hot blocks in position order.
  std::vector<BlockEvidence> blocks;
  // Where the next token goes.
  Position end;
};

}  // namespace ebb
