// MemoryTier: the cold store in host memory.
//
// It keeps sealed records by exact name under a cap on bytes. When a new one needs the room it drops what is cheapest to
// get back and was least recently used: a record that a tier of higher cost keeps too costs a read, one that lies only
// here costs a forward pass. It does not know blocks, sessions or files. A dropped record costs work, never truth (law 8).
// Some frames of a record are read through a handle on all of it: no byte moves. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "store/tier.h"

namespace ebb {

class MemoryTier : public Tier {
 public:
  explicit MemoryTier(std::size_t max_bytes) {
    stats_.name = "ram";
    stats_.max_bytes = max_bytes;
  }

  [[nodiscard]] std::int64_t cost_us() const override { return 100; }
  [[nodiscard]] bool may_wait() const override { return false; }
  [[nodiscard]] bool is_durable() const override { return false; }

  [[nodiscard]] std::optional<Kept> find(const Hash128& name) const override;
  void touch(const Hash128& name) override;
  // Replaces a record of the same name. kOutOfBudget for one larger than the whole tier, which is then unchanged.
  Status put(const RecordHandle& record) override;
  // Counts as a use. The whole record, whatever frames are named.
  Result<RecordHandle> get(const RecordKey& key, FrameList frames) override;
  void drop(const Hash128& name) override;
  void refuse(const RecordHandle& record) override;
  void set_backed(const Hash128& name, bool is_backed) override;

  [[nodiscard]] TierStats stats() const override;
  void check_invariants() const override;

 private:
  // What is dropped first comes first: the clock at its last use plus its cost to get back, then its last use.
  using Rank = std::pair<std::int64_t, std::int64_t>;

  struct Entry {
    RecordHandle record;
    bool is_backed = false;
    std::int64_t clock = 0;  // at the last use
    std::int64_t use = 0;
  };

  [[nodiscard]] static Rank rank(const Entry& entry);
  // With mutex_ held.
  void use(const Hash128& name, Entry& entry);
  void erase(const Hash128& name);

  mutable std::mutex mutex_;
  std::map<Hash128, Entry> records_;
  std::map<Rank, Hash128> order_;
  std::int64_t clock_ = 0;  // the rank of what was dropped last
  std::int64_t n_uses_ = 0;
  TierStats stats_;
};

}  // namespace ebb
