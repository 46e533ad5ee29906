// RamTier: the cold store in host memory.
//
// It keeps encoded records by exact name under a cap on bytes, and drops the least recently used when a new one needs
// the room. It does not know blocks or sessions. A dropped record costs work, never truth (law 8). Thread rule: one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>

#include "store/record.h"

namespace ebb {

struct TierStats {
  std::int64_t n_records = 0;
  std::size_t bytes = 0;
  std::int64_t n_puts = 0;
  std::int64_t n_hits = 0;
  std::int64_t n_misses = 0;   // never kept, or dropped
  std::int64_t n_refused = 0;  // kept, and damaged or foreign
  std::int64_t n_dropped = 0;  // made room for others
};

class RamTier {
 public:
  explicit RamTier(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  [[nodiscard]] bool contains(const Hash128& name) const { return records_.contains(name); }
  // Whether the record is kept; if so it counts as used now.
  bool touch(const Hash128& name);
  // kOutOfBudget for a record larger than the whole tier; the tier is then unchanged.
  Status put(const Record& record);
  // kNotFound for a record that is not there; kDamaged for one that is not what `key` asks for, which is then dropped.
  Result<Record> get(const RecordKey& key);
  void drop(const Hash128& name);

  [[nodiscard]] const TierStats& stats() const { return stats_; }
  void check_invariants() const;

  // For tests of faults: changes the kept bytes of one record.
  void damage(const Hash128& name, const std::function<void(std::vector<std::byte>&)>& change);

 private:
  struct Kept {
    std::vector<std::byte> bytes;
    std::list<Hash128>::iterator use;
  };

  std::size_t max_bytes_;
  std::map<Hash128, Kept> records_;
  std::list<Hash128> by_use_;  // least recently used first
  TierStats stats_;
};

}  // namespace ebb
