#include "store/memory_tier.h"

namespace ebb {
namespace {

// Costs to get a record back, per byte, on the clock that runs by one each time that everything backed was replaced once
// (GreedyDual: Cao and Irani, 1997). A larger second figure keeps records that lie only here through more of these rounds,
// at the cost of reads; with 1 a forward pass counts for no more than a read.
constexpr std::int64_t kCostBacked = 1;
constexpr std::int64_t kCostOnlyHere = 8;

}  // namespace

MemoryTier::Rank MemoryTier::rank(const Entry& entry) {
  return {entry.clock + (entry.is_backed ? kCostBacked : kCostOnlyHere), entry.use};
}

void MemoryTier::use(const Hash128& name, Entry& entry) {
  order_.erase(rank(entry));
  entry.clock = clock_;
  entry.use = ++n_uses_;
  order_.emplace(rank(entry), name);
}

std::optional<Tier::Kept> MemoryTier::find(const Hash128& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(name);
  if (found == records_.end()) return std::nullopt;
  return Kept{.body = found->second.record->header().body};
}

void MemoryTier::touch(const Hash128& name) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(name);
  if (found != records_.end()) use(name, found->second);
}

Status MemoryTier::put(const RecordHandle& record) {
  const std::lock_guard lock(mutex_);
  const std::size_t n_bytes = record->bytes().size();
  if (n_bytes > stats_.max_bytes) {
    Status refused = error(Code::kOutOfBudget, "a record of {} bytes for a cold store of {} in RAM; raise its cap",
                           n_bytes, stats_.max_bytes);
    ++stats_.n_write_errors;
    stats_.last_error = refused.message();
    return refused;
  }
  const Hash128 name = record->key().name;
  erase(name);
  while (stats_.bytes + n_bytes > stats_.max_bytes) {
    const auto [victim_rank, victim] = *order_.begin();
    clock_ = victim_rank.first;
    ++stats_.n_dropped;
    erase(victim);
  }
  Entry& entry = records_[name];
  entry.record = record;
  use(name, entry);
  stats_.bytes += n_bytes;
  ++stats_.n_records;
  ++stats_.n_puts;
  return {};
}

Result<RecordHandle> MemoryTier::get(const RecordKey& key, FrameList frames) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(key.name);
  if (found == records_.end()) {
    ++stats_.n_misses;
    return error(Code::kNotFound, "block {} is not in RAM", key.name.hex());
  }
  Entry& entry = found->second;
  if (Status match = entry.record->match(key, frames); !match.ok()) {
    stats_.last_error = match.message();
    ++stats_.n_refused;
    erase(key.name);
    return match;
  }
  ++stats_.n_hits;
  use(key.name, entry);
  return entry.record;
}

void MemoryTier::set_backed(const Hash128& name, bool is_backed) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(name);
  if (found == records_.end()) return;
  order_.erase(rank(found->second));
  found->second.is_backed = is_backed;
  order_.emplace(rank(found->second), name);
}

void MemoryTier::drop(const Hash128& name) {
  const std::lock_guard lock(mutex_);
  erase(name);
}

void MemoryTier::erase(const Hash128& name) {
  const auto found = records_.find(name);
  if (found == records_.end()) return;
  stats_.bytes -= found->second.record->bytes().size();
  --stats_.n_records;
  order_.erase(rank(found->second));
  records_.erase(found);
}

void MemoryTier::refuse(const RecordHandle& record) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(record->key().name);
  if (found == records_.end() || found->second.record != record) return;
  ++stats_.n_refused;
  erase(record->key().name);
}

TierStats MemoryTier::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void MemoryTier::check_invariants() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [name, entry] : records_) {
    bytes += entry.record->bytes().size();
    const auto place = order_.find(rank(entry));
    EBB_CHECK(place != order_.end() && place->second == name, "block {} is not in its place", name.hex());
  }
  EBB_CHECK(bytes == stats_.bytes && bytes <= stats_.max_bytes, "{} bytes kept, {} counted, {} allowed", bytes,
            stats_.bytes, stats_.max_bytes);
  EBB_CHECK(records_.size() == order_.size() && records_.size() == static_cast<std::size_t>(stats_.n_records),
            "{} records, {} in order, {} counted", records_.size(), order_.size(), stats_.n_records);
}

}  // namespace ebb
