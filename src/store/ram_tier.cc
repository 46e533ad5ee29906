#include "store/ram_tier.h"

#include <array>
#include <cstring>

namespace ebb {
namespace {

constexpr std::array<char, 8> kMagic = {'e', 'b', 'b', 'b', 'l', 'o', 'c', 'k'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksumOffset = 80;
constexpr std::size_t kHeaderBytes = 96;

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Hash128 checksum(std::span<const std::byte> bytes) {
  return Hasher().add_bytes(bytes.first(kChecksumOffset)).add_bytes(bytes.subspan(kHeaderBytes)).finish();
}

}  // namespace

std::vector<std::byte> encode(const Record& record) {
  const std::size_t token_bytes = record.tokens.size() * sizeof(std::int32_t);
  std::vector<std::byte> bytes(kHeaderBytes + token_bytes + record.frames.size());
  put(bytes, 0, kMagic);
  put(bytes, 8, kVersion);
  put(bytes, 12, static_cast<std::uint32_t>(record.tokens.size()));
  put(bytes, 16, record.key.model);
  put(bytes, 32, record.key.layout);
  put(bytes, 48, record.key.name);
  put(bytes, 64, record.begin.value());
  put(bytes, 68, record.n_frames);
  put(bytes, 72, static_cast<std::uint64_t>(record.frames.size()));
  for (std::size_t i = 0; i < record.tokens.size(); ++i) {
    put(bytes, kHeaderBytes + i * sizeof(std::int32_t), record.tokens[i].value());
  }
  if (!record.frames.empty()) {
    std::memcpy(bytes.data() + kHeaderBytes + token_bytes, record.frames.data(), record.frames.size());
  }
  put(bytes, kChecksumOffset, checksum(bytes));
  return bytes;
}

Result<Record> decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes)
    return error(Code::kDamaged, "a record of {} bytes, shorter than its header", bytes.size());
  if (get<std::array<char, 8>>(bytes, 0) != kMagic) return error(Code::kDamaged, "bytes that are no record");
  if (const auto version = get<std::uint32_t>(bytes, 8); version != kVersion) {
    return error(Code::kDamaged, "a record of format version {}, and this ebb reads {}", version, kVersion);
  }
  const std::uint64_t token_bytes = std::uint64_t{get<std::uint32_t>(bytes, 12)} * sizeof(std::int32_t);
  const auto frame_bytes = get<std::uint64_t>(bytes, 72);
  const std::uint64_t body_bytes = bytes.size() - kHeaderBytes;
  if (token_bytes > body_bytes || frame_bytes != body_bytes - token_bytes) {
    return error(Code::kDamaged, "a record of {} bytes that announces {} of tokens and {} of frames", bytes.size(),
                 token_bytes, frame_bytes);
  }
  if (get<Hash128>(bytes, kChecksumOffset) != checksum(bytes)) {
    return error(Code::kDamaged, "a record whose checksum does not match its bytes");
  }
  Record record = {
      .key = {.model = get<Hash128>(bytes, 16), .layout = get<Hash128>(bytes, 32), .name = get<Hash128>(bytes, 48)},
      .begin = get<Position>(bytes, 64),
      .n_frames = get<std::int32_t>(bytes, 68)};
  for (std::size_t offset = 0; offset < token_bytes; offset += sizeof(std::int32_t)) {
    record.tokens.emplace_back(get<std::int32_t>(bytes, kHeaderBytes + offset));
  }
  const auto frames = bytes.subspan(kHeaderBytes + token_bytes);
  record.frames.assign(frames.begin(), frames.end());
  return record;
}

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
