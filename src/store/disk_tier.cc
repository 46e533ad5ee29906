#include "store/disk_tier.h"

#include <algorithm>

namespace ebb {
namespace {

// After a write that failed, so many records are not tried: a full disk is not asked at every eviction, and one that
// has room again is used again before long.
constexpr std::int32_t kUntriedAfterFailure = 64;
constexpr std::uint64_t kLeastDefaultSegmentBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kDefaultSegments = 64;

DiskOptions with_defaults(DiskOptions options) {
  if (options.segment_bytes == 0) {
    options.segment_bytes = std::max(options.max_bytes / kDefaultSegments, kLeastDefaultSegmentBytes);
  }
  options.segment_bytes = std::min(options.segment_bytes, options.max_bytes / 4);
  return options;
}

}  // namespace

Result<std::unique_ptr<DiskTier>> DiskTier::open(const DiskOptions& options, FileSystem& system) {
  std::unique_ptr<DiskTier> tier(new DiskTier(with_defaults(options), system));
  EBB_RETURN_IF_ERROR(tier->start());
  return tier;
}

DiskTier::DiskTier(const DiskOptions& options, FileSystem& system) : options_(options), system_(system) {
  stats_.name = "disk";
  stats_.max_bytes = options.max_bytes;
}

DiskTier::~DiskTier() {
  const std::lock_guard writing(write_mutex_);
  // What cannot be synced any more is lost work, and there is nobody left to tell.
  if (open_file_) (void)close_segment();
}

std::filesystem::path DiskTier::path(std::uint64_t segment) const { return options_.folder / segment_name(segment); }

Status DiskTier::start() {
  EBB_RETURN_IF_ERROR(system_.make_folder(options_.folder));
  EBB_RETURN_IF_ERROR(take_lock());
  EBB_ASSIGN_OR_RETURN(const std::vector<std::string> names, system_.list(options_.folder));
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    if (const auto number = find_segment_number(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  for (const std::uint64_t number : numbers) scan(number);
  note_outdated();
  if (!numbers.empty()) open_segment_ = numbers.back();
  return {};
}

Status DiskTier::take_lock() {
  const std::filesystem::path path = options_.folder / "lock";
  Result<std::unique_ptr<File>> file = system_.open(path, FileUse::kAppend);
  if (!file.ok()) {
    read_only_ = stats_.writing_off = true;
    note(file.status(), "the folder is only read: what is saved from now on stays in RAM");
    return {};
  }
  lock_ = *std::move(file);
  EBB_ASSIGN_OR_RETURN(const bool locked, lock_->try_lock());
  if (locked) return {};
  return error(Code::kIo, "{}: another process keeps its cold store there; give each process a folder of its own",
               options_.folder.string());
}

void DiskTier::scan(std::uint64_t segment) {
  const Result<std::unique_ptr<File>> file = system_.open(path(segment), FileUse::kRead);
  if (!file.ok()) return note(file.status(), "the segment is left alone");
  const Result<SegmentScan> scan = scan_segment(**file, segment);
  if (!scan.ok() && scan.status().code() != Code::kDamaged) return note(scan.status(), "the segment is left alone");
  const Result<std::uint64_t> n_bytes = (*file)->size();
  if (!n_bytes.ok()) return note(n_bytes.status(), "the segment is left alone");
  const std::lock_guard lock(index_mutex_);
  // One without a sound header holds nothing, and goes when segments are next moved.
  segments_[segment] = {.bytes = *n_bytes, .is_outdated = scan.ok() && scan->is_outdated};
  stats_.bytes += *n_bytes;
  if (!scan.ok()) return;
  for (const ScannedRecord& found : scan->records) {
    // Larger than any that put() takes: nothing that we would read into memory.
    if (found.header.record_bytes() > options_.max_bytes / 4) continue;
    // Two of one name. With the same bytes, the first was being moved when the process died, and is sound, or was found
    // damaged and written again. With others, the first was dropped, or damaged, before the second was written.
    const auto first = index_.find(found.header.key.name);
    const bool is_same = first != index_.end() && first->second.body == found.header.body;
    if (is_same && load(first->second, first->first).ok()) continue;
    insert(found.header.key.name, {.place = place_of(found.header, segment, found.offset), .body = found.header.body});
  }
}

void DiskTier::note_outdated() {
  std::uint64_t n_bytes = 0;
  for (const auto& [number, segment] : segments_) n_bytes += segment.is_outdated ? segment.bytes : 0;
  if (n_bytes == 0) return;
  stats_.notice = fmt::format("{}: {:.1f} MB that an earlier ebb saved are not read; they go when room is needed",
                              options_.folder.string(), static_cast<double>(n_bytes) / 1e6);
}

DiskTier::Place DiskTier::place_of(const RecordHeader& header, std::uint64_t segment, std::uint64_t offset) {
  return {.segment = segment, .offset = offset, .bytes = header.record_bytes(), .front_bytes = header.frames_offset()};
}

std::optional<Tier::Kept> DiskTier::find(const Hash128& name) const {
  const std::lock_guard lock(index_mutex_);
  if (const auto found = index_.find(name); found != index_.end()) {
    return Kept{.body = found->second.body, .is_verified = found->second.verified};
  }
  const auto moving = moving_.find(name);
  if (moving == moving_.end()) return std::nullopt;
  return Kept{.body = moving->second->header().body, .is_verified = false};
}

Status DiskTier::put(const RecordHandle& handle) {
  const EncodedRecord& record = *handle;
  const std::lock_guard writing(write_mutex_);
  if (is_sound(record.header())) return {};
  if (record.bytes().size() > options_.max_bytes / 4) {
    return error(Code::kOutOfBudget, "a record of {} bytes for a disk tier of {}; raise its cap", record.bytes().size(),
                 options_.max_bytes);
  }
  EBB_RETURN_IF_ERROR(may_write());
  Status status = write(record);
  if (status.code() == Code::kOutOfBudget && segments_.size() > 1) {
    // The disk is full before the cap is reached: what is oldest makes room for what is new.
    leave_segment();
    status = drop_oldest();
    if (status.ok()) status = write(record);
  }
  if (!status.ok()) {
    stop_writing(status);
    return error(Code::kIo, "{}", status.message());
  }
  const std::lock_guard lock(index_mutex_);
  ++stats_.n_puts;
  stats_.writing_off = false;
  return {};
}

// Looks, once, at what an earlier process left under that name. Another body is another record, and is replaced.
bool DiskTier::is_sound(const RecordHeader& header) {
  const Hash128& name = header.key.name;
  Entry entry;
  {
    const std::lock_guard lock(index_mutex_);
    const auto found = index_.find(name);
    if (found == index_.end() || found->second.body != header.body) return false;
    if (found->second.verified) return true;
    entry = found->second;
  }
  const Status status = load(entry, name).status();
  const std::lock_guard lock(index_mutex_);
  const auto found = index_.find(name);
  if (found == index_.end()) return false;
  if (status.ok()) {
    found->second.verified = true;
  } else {
    refuse(name, status);
  }
  return status.ok();
}

Status DiskTier::may_write() {
  if (!read_only_ && n_untried_ == 0) return {};
  if (!read_only_) --n_untried_;
  {
    const std::lock_guard lock(index_mutex_);
    ++stats_.n_write_errors;
  }
  return not_written();
}

Status DiskTier::not_written() const {
  return error(Code::kIo, "{}: nothing is written there: {}", options_.folder.string(), stats().last_error);
}

Status DiskTier::write(const EncodedRecord& record) {
  EBB_RETURN_IF_ERROR(make_room(record.bytes().size() + kSegmentHeaderBytes));
  EBB_RETURN_IF_ERROR(append(record, Came::kNew));
  if (options_.sync == SyncPolicy::kEveryRecord) EBB_RETURN_IF_ERROR(sync_written());
  return look_for_sparse_ ? compact() : Status();
}

// Adds a record to the open segment, or to a new one, and the index; one that moves only if nobody dropped it meanwhile.
Status DiskTier::append(const EncodedRecord& record, Came came) {
  const std::span<const std::byte> bytes = record.bytes();
  if (open_file_ && segments_.at(open_segment_).bytes + bytes.size() > options_.segment_bytes) {
    EBB_RETURN_IF_ERROR(close_segment());
  }
  if (!open_file_) EBB_RETURN_IF_ERROR(open_segment());
  EBB_RETURN_IF_ERROR(open_file_->append(bytes));
  const std::lock_guard lock(index_mutex_);
  Segment& segment = segments_.at(open_segment_);
  const Place place = place_of(record.header(), open_segment_, segment.bytes);
  segment.bytes += bytes.size();
  stats_.bytes += bytes.size();
  if (came == Came::kMoved && moving_.erase(record.key().name) == 0) return {};
  insert(record.key().name, {.place = place, .body = record.header().body, .verified = true});
  return {};
}

Status DiskTier::open_segment() {
  ++open_segment_;
  EBB_ASSIGN_OR_RETURN(open_file_, system_.open(path(open_segment_), FileUse::kAppend));
  folder_changed_ = true;
  {
    const std::lock_guard lock(index_mutex_);
    segments_[open_segment_].bytes = kSegmentHeaderBytes;
    stats_.bytes += kSegmentHeaderBytes;
  }
  return open_file_->append(encode_segment_header(open_segment_));
}

Status DiskTier::close_segment() {
  Status synced = options_.sync == SyncPolicy::kNever ? Status() : sync_written();
  open_file_.reset();
  look_for_sparse_ = true;
  return synced;
}

Status DiskTier::sync_written() {
  if (open_file_) EBB_RETURN_IF_ERROR(open_file_->sync());
  if (folder_changed_) EBB_RETURN_IF_ERROR(system_.sync_folder(options_.folder));
  folder_changed_ = false;
  return {};
}

// A segment that failed is never appended to again: what lies behind its last whole record is unknown.
void DiskTier::leave_segment() {
  if (!open_file_) return;
  (void)open_file_->truncate(segments_.at(open_segment_).bytes);
  (void)close_segment();
}

void DiskTier::stop_writing(const Status& status) {
  leave_segment();
  n_untried_ = kUntriedAfterFailure;
  note(status,
       fmt::format("saved blocks stay in RAM only; the disk is tried again after {} of them", kUntriedAfterFailure));
  const std::lock_guard lock(index_mutex_);
  moving_.clear();
  ++stats_.n_write_errors;
  stats_.writing_off = true;
}

void DiskTier::note(const Status& status, std::string_view consequence) {
  const std::lock_guard lock(index_mutex_);
  stats_.last_error = fmt::format("{}; {}", status.message(), consequence);
}

Status DiskTier::sync() {
  const std::lock_guard writing(write_mutex_);
  if (options_.sync != SyncPolicy::kNever) {
    if (Status status = sync_written(); !status.ok()) {
      stop_writing(status);
      return status;
    }
  }
  return read_only_ || n_untried_ > 0 ? not_written() : Status();
}

Result<RecordHandle> DiskTier::get(const RecordKey& key, FrameList frames) {
  while (true) {
    Entry entry;
    {
      const std::lock_guard lock(index_mutex_);
      const auto found = index_.find(key.name);
      if (const auto moving = moving_.find(key.name); found == index_.end() && moving != moving_.end()) {
        EBB_RETURN_IF_ERROR(moving->second->match(key, frames));
        ++stats_.n_hits;
        return moving->second;
      }
      if (found == index_.end()) {
        ++stats_.n_misses;
        return error(Code::kNotFound, "block {} is not on disk", key.name.hex());
      }
      found->second.used = true;
      entry = found->second;
    }
    Result<RecordHandle> record = load(entry, key.name, frames);
    Status status = record.ok() ? (*record)->match(key, frames) : record.status();
    const std::lock_guard lock(index_mutex_);
    const auto found = index_.find(key.name);
    const bool still_there = found != index_.end() && found->second.place == entry.place;
    if (status.ok()) {
      if (still_there && (*record)->is_whole()) found->second.verified = true;
      ++stats_.n_hits;
      return record;
    }
    if (still_there) {
      refuse(key.name, status);
      return error(status.code() == Code::kIo ? Code::kIo : Code::kDamaged, "{}", status.message());
    }
    // It was moved or dropped while it was read, and its old segment removed: look again.
  }
}

// All of it where no frames are named.
Result<RecordHandle> DiskTier::load(const Entry& entry, const Hash128& name, FrameList frames) const {
  const Place& place = entry.place;
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, system_.open(path(place.segment), FileUse::kRead));
  RecordHandle record;
  if (frames.empty()) {
    RecordBytes bytes(place.bytes);
    EBB_RETURN_IF_ERROR(read_exactly(*file, place, 0, bytes.bytes()));
    EBB_ASSIGN_OR_RETURN(record, EncodedRecord::open(std::move(bytes)));
  } else {
    EBB_ASSIGN_OR_RETURN(record, load_part(*file, place, frames));
  }
  if (record->key().name != name || record->header().body != entry.body) {
    return error(Code::kDamaged, "{}: another record at {} than was written there; the block is computed again",
                 path(place.segment).string(), place.offset);
  }
  EBB_RETURN_IF_ERROR(record->verify());
  return record;
}

Result<RecordHandle> DiskTier::load_part(const File& file, const Place& place, FrameList frames) const {
  RecordBytes front(place.front_bytes);
  EBB_RETURN_IF_ERROR(read_exactly(file, place, 0, front.bytes()));
  EBB_ASSIGN_OR_RETURN(const RecordHeader header, parse_record_header(front.bytes()));
  if (header.frames_offset() != place.front_bytes || header.record_bytes() != place.bytes ||
      frames.back() >= header.n_frames) {
    return error(Code::kDamaged, "{}: another record at {}, or one without frame {}; the block is computed again",
                 path(place.segment).string(), place.offset, frames.back());
  }
  RecordBytes bytes(place.front_bytes + frames.size() * header.bytes_per_frame());
  std::ranges::copy(front.bytes(), bytes.bytes().begin());
  std::span<std::byte> rest = bytes.bytes().subspan(place.front_bytes);
  for (const ByteRange& range : frame_ranges(header, frames)) {
    EBB_RETURN_IF_ERROR(read_exactly(file, place, range.begin, rest.first(range.n_bytes)));
    rest = rest.subspan(range.n_bytes);
  }
  return EncodedRecord::open_part(std::move(bytes), frames);
}

Status DiskTier::read_exactly(const File& file, const Place& place, std::uint64_t offset,
                              std::span<std::byte> into) const {
  EBB_ASSIGN_OR_RETURN(const std::size_t n_read, file.read(place.offset + offset, into));
  if (n_read == into.size()) return {};
  return error(Code::kDamaged, "{}: {} of {} bytes at {}, where a record was; the block is computed again",
               path(place.segment).string(), n_read, into.size(), place.offset + offset);
}

void DiskTier::refuse(const Hash128& name, const Status& status) {
  stats_.last_error = status.message();
  ++stats_.n_refused;
  const std::uint64_t segment = index_.at(name).place.segment;
  if (status.code() == Code::kNotFound) {
    // Somebody deleted the file: one message, not one for each of its records.
    forget_segment(segment);
  } else {
    erase(name);
  }
}

void DiskTier::drop(const Hash128& name) {
  const std::lock_guard lock(index_mutex_);
  moving_.erase(name);
  erase(name);
}

std::vector<Hash128> DiskTier::take_lost() {
  const std::lock_guard lock(index_mutex_);
  // What was moved was lost for a moment only.
  std::erase_if(lost_, [&](const Hash128& name) { return index_.contains(name); });
  return std::exchange(lost_, {});
}

TierStats DiskTier::stats() const {
  const std::lock_guard lock(index_mutex_);
  return stats_;
}

}  // namespace ebb
