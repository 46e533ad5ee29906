#include "store/ram_tier.h"

namespace ebb {

Status RamTier::put(const Record& record) {
  std::vector<std::byte> bytes = encode(record);
  if (bytes.size() > max_bytes_) {
    return error(Code::kOutOfBudget, "a record of {} bytes for a RAM tier of {}; raise its cap", bytes.size(),
                 max_bytes_);
  }
  drop(record.key.name);
  while (stats_.bytes + bytes.size() > max_bytes_) {
    ++stats_.n_dropped;
    drop(Hash128(by_use_.front()));
  }
  stats_.bytes += bytes.size();
  ++stats_.n_records;
  ++stats_.n_puts;
  by_use_.push_back(record.key.name);
  records_.emplace(record.key.name, Kept{.bytes = std::move(bytes), .use = std::prev(by_use_.end())});
  return {};
}

bool RamTier::touch(const Hash128& name) {
  const auto kept = records_.find(name);
  if (kept == records_.end()) return false;
  by_use_.splice(by_use_.end(), by_use_, kept->second.use);
  return true;
}

Result<Record> RamTier::get(const RecordKey& key) {
  const auto kept = records_.find(key.name);
  if (kept == records_.end()) {
    ++stats_.n_misses;
    return error(Code::kNotFound, "block {} is not in the RAM tier", key.name.hex());
  }
  Result<Record> record = decode(kept->second.bytes);
  if (!record.ok() || !(record->key == key)) {
    ++stats_.n_refused;
    drop(key.name);
    return record.ok() ? error(Code::kDamaged, "block {} was saved by another model or layout", key.name.hex())
                       : record.status();
  }
  ++stats_.n_hits;
  by_use_.splice(by_use_.end(), by_use_, kept->second.use);
  return record;
}

void RamTier::drop(const Hash128& name) {
  const auto kept = records_.find(name);
  if (kept == records_.end()) return;
  stats_.bytes -= kept->second.bytes.size();
  --stats_.n_records;
  by_use_.erase(kept->second.use);
  records_.erase(kept);
}

void RamTier::damage(const Hash128& name, const std::function<void(std::vector<std::byte>&)>& change) {
  Kept& kept = records_.at(name);
  stats_.bytes -= kept.bytes.size();
  change(kept.bytes);
  stats_.bytes += kept.bytes.size();
}

void RamTier::check_invariants() const {
  std::size_t bytes = 0;
  for (const auto& [name, kept] : records_) bytes += kept.bytes.size();
  EBB_CHECK(bytes == stats_.bytes, "{} bytes kept, {} counted", bytes, stats_.bytes);
  EBB_CHECK(records_.size() == by_use_.size() && records_.size() == static_cast<std::size_t>(stats_.n_records),
            "{} records, {} in use order, {} counted", records_.size(), by_use_.size(), stats_.n_records);
  EBB_CHECK(bytes <= max_bytes_, "{} bytes in a tier of {}", bytes, max_bytes_);
}

}  // namespace ebb
