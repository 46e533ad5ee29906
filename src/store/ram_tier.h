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
#include <span>
#include <vector>

#include "store/record.h"
#include "store/tier_stats.h"

namespace ebb {

struct Record {
  RecordKey key;
  Position begin;
  std::vector<Token> tokens;
  std::int32_t n_frames = 0;
  std::vector<std::byte> frames;
};

[[nodiscard]] std::vector<std::byte> encode(const Record& record);
// kDamaged for anything that is not a whole, unaltered record of this version.
Result<Record> decode(std::span<const std::byte> bytes);

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
