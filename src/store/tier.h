// Tier: one place where records are kept: RAM, a disk, a server that others use too.
//
// It knows names and bytes of records, not what composes tiers (store/cold_store.h) nor what other tiers there are. It
// gives only what it verified (law 2), a record that is damaged, foreign or unreadable is dropped and counted, and what
// it cannot keep costs work and never truth (law 8).
//
// Thread rule: any thread may call anything. put, get and sync may wait for a device where may_wait() says so; nothing
// else may, for it is called under locks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/record.h"
#include "store/tier_stats.h"

namespace ebb {

class Tier {
 public:
  struct Kept {
    Hash128 body;  // its body checksum
    // Whether it was written or read whole by this process. Of one that an earlier process left only the header may be
    // known: after a power failure there may be nothing behind it.
    bool is_verified = true;
  };

  Tier() = default;
  virtual ~Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;

  // The cost of getting a block of a megabyte back, about, in microseconds: tiers are asked in this order.
  [[nodiscard]] virtual std::int64_t cost_us() const = 0;
  // Whether it waits for a device: it is then written to behind, and read where nobody else waits.
  [[nodiscard]] virtual bool may_wait() const = 0;
  // Whether what it keeps is there for a later process.
  [[nodiscard]] virtual bool is_durable() const = 0;

  // What it is known to keep under that name; a tier that others write to too may give more.
  [[nodiscard]] virtual std::optional<Kept> find(const Hash128& name) const = 0;
  // The record counts as used now. No effect where it is not.
  virtual void touch(const Hash128& /*name*/) {}
  // Takes a whole record. Ok when it is there already; kOutOfBudget for one that is too large for this tier.
  virtual Status put(const RecordHandle& record) = 0;
  // Those frames of it at least, or, where none are named, all. kNotFound; or kDamaged or kIo for one that is not what
  // was asked for or cannot be read, which is then dropped and counted.
  virtual Result<RecordHandle> get(const RecordKey& key, FrameList frames) = 0;
  virtual void drop(const Hash128& name) = 0;
  // Drops this very record, which a reader found damaged after get() gave it, and counts it. What lies elsewhere and
  // was only read into that record may be sound.
  virtual void refuse(const RecordHandle& /*record*/) {}

  // Whether a tier that costs more keeps that record too, so that losing it here costs a read and no forward pass.
  virtual void set_backed(const Hash128& /*name*/, bool /*is_backed*/) {}
  // Names that were dropped to make room since the last call.
  [[nodiscard]] virtual std::vector<Hash128> take_lost() { return {}; }

  // Returns when all that was put would outlive the process and its machine; an error when that cannot be said.
  virtual Status sync() { return {}; }
  [[nodiscard]] virtual TierStats stats() const = 0;
  virtual void check_invariants() const {}
};

}  // namespace ebb
