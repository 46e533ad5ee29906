#include "store/memory_tier.h"

namespace ebb {
namespace {

// Costs to get a record back, per byte, on the clock that runs by one each time that everything on disk was replaced
// once (GreedyDual: Cao and Irani, 1997). A larger second figure keeps records that lie only here through more of these
// rounds, at the cost of disk reads; with 1 a forward pass counts for no more than a read.
constexpr std::int64_t kCostOnDisk = 1;
constexpr std::int64_t kCostOnlyHere = 8;

}  // namespace

MemoryTier::Rank MemoryTier::rank(const Kept& kept) {
  return {kept.clock + (kept.on_disk ? kCostOnDisk : kCostOnlyHere), kept.use};
}

void MemoryTier::use(const Hash128& name, Kept& kept) {
  order_.erase(rank(kept));
  kept.clock = clock_;
  kept.use = ++n_uses_;
  order_.emplace(rank(kept), name);
}

bool MemoryTier::touch(const Hash128& name) {
  const auto found = records_.find(name);
  if (found != records_.end()) use(name, found->second);
  return found != records_.end();
}

std::optional<Hash128> MemoryTier::find_content(const Hash128& content) const {
  const auto found = by_content_.lower_bound({content, Hash128()});
  if (found == by_content_.end() || found->first != content) return std::nullopt;
  return found->second;
}

Status MemoryTier::put(RecordHandle record, bool on_disk) {
  const std::size_t n_bytes = record->bytes().size();
  if (n_bytes > stats_.max_bytes) {
    Status refused = error(Code::kOutOfBudget, "a record of {} bytes for a cold store of {} in RAM; raise its cap",
                           n_bytes, stats_.max_bytes);
    // A tier of no bytes was switched off: nothing went wrong.
    if (stats_.max_bytes > 0) {
      ++stats_.n_write_errors;
      stats_.last_error = refused.message();
    }
    return refused;
  }
  const Hash128 name = record->key().name;
  drop(name);
  while (stats_.bytes + n_bytes > stats_.max_bytes) {
    const auto [victim_rank, victim] = *order_.begin();
    clock_ = victim_rank.first;
    ++stats_.n_dropped;
    drop(victim);
  }
  by_content_.emplace(record->header().content, name);
  Kept& kept = records_[name];
  kept.record = std::move(record);
  kept.on_disk = on_disk;
  use(name, kept);
  stats_.bytes += n_bytes;
  ++stats_.n_records;
  ++stats_.n_puts;
  return {};
}

Result<RecordHandle> MemoryTier::get(const RecordKey& key) {
  const auto found = records_.find(key.name);
  if (found == records_.end()) {
    ++stats_.n_misses;
    return error(Code::kNotFound, "block {} is not in RAM", key.name.hex());
  }
  Kept& kept = found->second;
  if (Status match = kept.record->match(key); !match.ok()) {
    stats_.last_error = match.message();
    refuse(RecordHandle(kept.record));
    return match;
  }
  ++stats_.n_hits;
  use(key.name, kept);
  return kept.record;
}

void MemoryTier::set_on_disk(const Hash128& name, bool on_disk) {
  const auto found = records_.find(name);
  if (found == records_.end()) return;
  order_.erase(rank(found->second));
  found->second.on_disk = on_disk;
  order_.emplace(rank(found->second), name);
}

void MemoryTier::drop(const Hash128& name) {
  const auto found = records_.find(name);
  if (found == records_.end()) return;
  const Kept& kept = found->second;
  stats_.bytes -= kept.record->bytes().size();
  --stats_.n_records;
  by_content_.erase({kept.record->header().content, name});
  order_.erase(rank(kept));
  records_.erase(found);
}

void MemoryTier::refuse(const RecordHandle& record) {
  const auto found = records_.find(record->key().name);
  if (found == records_.end() || found->second.record != record) return;
  ++stats_.n_refused;
  drop(record->key().name);
}

void MemoryTier::check_invariants() const {
  std::size_t bytes = 0;
  for (const auto& [name, kept] : records_) {
    bytes += kept.record->bytes().size();
    const auto place = order_.find(rank(kept));
    EBB_CHECK(place != order_.end() && place->second == name, "block {} is not in its place", name.hex());
    EBB_CHECK(by_content_.contains({kept.record->header().content, name}), "block {} is not found by content",
              name.hex());
  }
  EBB_CHECK(bytes == stats_.bytes && bytes <= stats_.max_bytes, "{} bytes kept, {} counted, {} allowed", bytes,
            stats_.bytes, stats_.max_bytes);
  EBB_CHECK(records_.size() == order_.size() && records_.size() == by_content_.size() &&
                records_.size() == static_cast<std::size_t>(stats_.n_records),
            "{} records, {} in order, {} by content, {} counted", records_.size(), order_.size(), by_content_.size(),
            stats_.n_records);
}

}  // namespace ebb
