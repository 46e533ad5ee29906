// Reliance records: what a full block's slices rely on (session/reliances.h), in a record beside the block's: a session that adopts the
// block by its exact name knows it too.
//
// A block of which some slice relies on all has none. Bytes: 128, 4 for each token and slice, and 4 for each slice that one relies on.
// It knows no policy. Thread rule: as its session's.
#pragma once

#include "session/block_io.h"
#include "session/reliances.h"

namespace ebb {

class RelianceRecords {
 public:
  RelianceRecords(const HotSet& hot, const BlockIo& io) : hot_(hot), io_(io) {}

  // A block whose rows were computed is full now. What the store has no room for is let be.
  void keep(BlockIndex block, const Reliances& reliances) const;
  // Of a block that was adopted whole, where it is known; one that says what cannot be is refused.
  void read(BlockIndex block, Reliances& reliances) const;

 private:
  [[nodiscard]] RecordKey key(BlockIndex block) const;

  const HotSet& hot_;
  const BlockIo& io_;
};

}  // namespace ebb
