// MemoryTier: the cold store in host memory.
//
// It keeps sealed records by exact name under a cap on bytes. When a new one needs the room it drops what is cheapest to
// get back and was least recently used: a record that also lies on disk costs a read, one that lies only here costs a
// forward pass. It does not know blocks, sessions or files. A dropped record costs work, never truth (law 8). Thread
// rule: one thread at a time (the cold store's lock).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "store/record.h"
#include "store/tier_stats.h"

namespace ebb {

class MemoryTier {
 public:
  explicit MemoryTier(std::size_t max_bytes) { stats_.max_bytes = max_bytes; }

  [[nodiscard]] bool contains(const Hash128& name) const { return records_.contains(name); }
  // An exact name whose record has that content.
  [[nodiscard]] std::optional<Hash128> find_content(const Hash128& content) const;

  // Whether the record is kept; if so it counts as used now.
  bool touch(const Hash128& name);
  // Replaces a record of the same name. kOutOfBudget for one larger than the whole tier, which is then unchanged.
  Status put(RecordHandle record, bool on_disk);
  // Counts as a use. kNotFound, or kDamaged for a record that is not what `key` asks for, which is then dropped.
  Result<RecordHandle> get(const RecordKey& key);
  // No effect where the record is not.
  void set_on_disk(const Hash128& name, bool on_disk);
  void drop(const Hash128& name);
  // Drops this very record, which a reader found damaged, and counts it.
  void refuse(const RecordHandle& record);

  [[nodiscard]] const TierStats& stats() const { return stats_; }
  void check_invariants() const;

 private:
  // What is dropped first comes first: the clock at its last use plus its cost to get back, then its last use.
  using Rank = std::pair<std::int64_t, std::int64_t>;

  struct Kept {
    RecordHandle record;
    bool on_disk = false;
    std::int64_t clock = 0;  // at the last use
    std::int64_t use = 0;
  };

  [[nodiscard]] static Rank rank(const Kept& kept);
  void use(const Hash128& name, Kept& kept);

  std::map<Hash128, Kept> records_;
  std::map<Rank, Hash128> order_;
  std::set<std::pair<Hash128, Hash128>> by_content_;  // content, exact name
  std::int64_t clock_ = 0;                            // the rank of what was dropped last
  std::int64_t n_uses_ = 0;
  TierStats stats_;
};

}  // namespace ebb
