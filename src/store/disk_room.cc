// How the disk tier keeps its index and its size: what goes when it is full, and what is moved when little is left of a
// segment.
#include <algorithm>

#include "store/disk_tier.h"

namespace ebb {
namespace {

// More closed segments than this of less than half their size are moved together: each start leaves one behind.
constexpr std::size_t kMostSmallSegments = 16;

}  // namespace

void DiskTier::insert(const Hash128& name, const Entry& entry) {
  erase(name);
  index_.emplace(name, entry);
  segments_.at(entry.place.segment).live_bytes += entry.place.bytes;
  ++stats_.n_records;
}

void DiskTier::erase(const Hash128& name) {
  const auto found = index_.find(name);
  if (found == index_.end()) return;
  segments_.at(found->second.place.segment).live_bytes -= found->second.place.bytes;
  index_.erase(found);
  --stats_.n_records;
}

std::vector<std::pair<Hash128, DiskTier::Entry>> DiskTier::entries_in(std::uint64_t segment) const {
  const std::lock_guard lock(index_mutex_);
  std::vector<std::pair<Hash128, Entry>> entries;
  for (const auto& [name, entry] : index_) {
    if (entry.place.segment == segment) entries.emplace_back(name, entry);
  }
  return entries;
}

// The file is gone, or about to go.
void DiskTier::forget_segment(std::uint64_t segment) {
  for (auto at = index_.begin(); at != index_.end();) {
    const auto next = std::next(at);
    if (at->second.place.segment == segment) {
      lost_.push_back(at->first);
      erase(Hash128(at->first));
    }
    at = next;
  }
}

Result<RecordHandle> DiskTier::load_to_move(const Hash128& name, const Entry& entry) {
  EBB_ASSIGN_OR_RETURN(RecordHandle record, load(entry, name));
  const std::lock_guard lock(index_mutex_);
  const auto found = index_.find(name);
  if (found == index_.end() || found->second.place != entry.place) {
    return error(Code::kNotFound, "block {} was dropped", name.hex());
  }
  moving_.insert_or_assign(name, record);
  return record;
}

Status DiskTier::make_room(std::uint64_t n_bytes) {
  while (stats().bytes + n_bytes > options_.max_bytes) EBB_RETURN_IF_ERROR(drop_oldest());
  return {};
}

// Second chance: what was read since it was written lies in memory while its segment goes, and is appended again.
Status DiskTier::drop_oldest() {
  const std::uint64_t victim = segments_.begin()->first;
  if (open_file_ && victim == open_segment_) EBB_RETURN_IF_ERROR(close_segment());
  const std::uint64_t n_file_bytes = segments_.at(victim).bytes;
  std::vector<RecordHandle> moved;
  std::uint64_t n_moved_bytes = kSegmentHeaderBytes;
  for (const auto& [name, entry] : entries_in(victim)) {
    if (!entry.used || n_moved_bytes + entry.place.bytes > n_file_bytes / 4) continue;
    Result<RecordHandle> record = load_to_move(name, entry);
    if (!record.ok()) continue;
    n_moved_bytes += entry.place.bytes;
    moved.push_back(*std::move(record));
  }
  Status status = remove_segment(victim);
  for (const RecordHandle& record : moved) {
    if (status.ok()) status = append(*record, Came::kMoved);
  }
  const std::lock_guard lock(index_mutex_);
  stats_.n_dropped -= std::ssize(moved) - std::ssize(moving_);
  moving_.clear();
  return status;
}

// The index forgets it first: who reads a record meanwhile finds none, and no file that is gone.
Status DiskTier::remove_segment(std::uint64_t segment) {
  {
    const std::lock_guard lock(index_mutex_);
    const std::int64_t n_before = stats_.n_records;
    forget_segment(segment);
    stats_.n_dropped += n_before - stats_.n_records;
  }
  const Status removed = system_.remove(path(segment));
  if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  folder_changed_ = true;
  const std::lock_guard lock(index_mutex_);
  stats_.bytes -= segments_.at(segment).bytes;
  segments_.erase(segment);
  return {};
}

// Closed segments of which less than half lives; and, when there are too many of them, small ones.
std::vector<std::uint64_t> DiskTier::find_sparse_segments() const {
  const std::lock_guard lock(index_mutex_);
  std::vector<std::uint64_t> sparse;
  std::vector<std::uint64_t> small;
  for (const auto& [number, segment] : segments_) {
    if (segment.is_outdated || (open_file_ && number == open_segment_)) continue;
    if (segment.live_bytes * 2 < segment.bytes) {
      sparse.push_back(number);
    } else if (segment.bytes * 2 < options_.segment_bytes) {
      small.push_back(number);
    }
  }
  if (small.size() > kMostSmallSegments) sparse.insert(sparse.end(), small.begin(), small.end());
  return sparse;
}

Status DiskTier::compact() {
  look_for_sparse_ = false;
  for (const std::uint64_t segment : find_sparse_segments()) {
    const std::vector<std::pair<Hash128, Entry>> entries = entries_in(segment);
    // What is moved lies there twice for a while; where the cap forbids that, dropping the oldest does the work.
    std::uint64_t n_needed_bytes = 2 * kSegmentHeaderBytes;
    for (const auto& [name, entry] : entries) n_needed_bytes += entry.place.bytes;
    if (stats().bytes + n_needed_bytes > options_.max_bytes) continue;
    for (const auto& [name, entry] : entries) {
      const Result<RecordHandle> record = load_to_move(name, entry);
      if (record.ok()) EBB_RETURN_IF_ERROR(append(**record, Came::kMoved));
    }
    if (options_.sync != SyncPolicy::kNever) EBB_RETURN_IF_ERROR(sync_written());
    EBB_RETURN_IF_ERROR(remove_segment(segment));
  }
  return {};
}

void DiskTier::check_invariants() const {
  const std::lock_guard lock(index_mutex_);
  std::map<std::uint64_t, std::uint64_t> live;
  for (const auto& [name, entry] : index_) {
    const auto segment = segments_.find(entry.place.segment);
    EBB_CHECK(segment != segments_.end(), "block {} lies in segment {}, which is gone", name.hex(),
              entry.place.segment);
    EBB_CHECK(entry.place.offset + entry.place.bytes <= segment->second.bytes, "block {} ends at {} of {} bytes",
              name.hex(), entry.place.offset + entry.place.bytes, segment->second.bytes);
    live[entry.place.segment] += entry.place.bytes;
  }
  std::uint64_t n_bytes = 0;
  for (const auto& [number, segment] : segments_) {
    EBB_CHECK(live[number] == segment.live_bytes, "segment {}: {} bytes live, {} counted", number, live[number],
              segment.live_bytes);
    n_bytes += segment.bytes;
  }
  EBB_CHECK(n_bytes == stats_.bytes, "{} bytes of files, {} counted", n_bytes, stats_.bytes);
  EBB_CHECK(index_.size() == static_cast<std::size_t>(stats_.n_records), "{} records, {} counted", index_.size(),
            stats_.n_records);
}

}  // namespace ebb
