// DiskTier: the cold store in one folder of append-only segment files.
//
// It keeps an index in memory, built at start by walking the segments' headers, and reads a record back by one read, or
// some of its frames by one for its front and one for each run of frames that touch; all is verified before it is given
// (law 2). It does not know blocks, sessions or RAM. A crash at any moment loses at most what was not synced and never
// yields a wrong record: the checksums decide at every read, and a torn end is passed over (law 8). Segments of a finished
// process are never appended to; a new process opens a segment of its own.
//
//   full     (the cap, or the disk) the oldest segment goes as a whole; of its records those that were read since they
//            were written move on, up to a quarter of it
//   dead     a closed segment of which less than half lives, or one of too many small ones, is moved to the open one
//   sync     SyncPolicy; before a segment is removed whose records were moved, always (but for kNever)
//   failure  after a write that fails, the next 64 records are not tried, then one is; reading goes on
//   version  segments of an earlier format are not read and, counted under the cap, go first; those of a later one stay
//
// One process per folder (a lock on the file `lock`). A folder that may only be read serves what is in it. Records of
// other models may lie in the same folder: they have other names.
//
// Thread rule: any thread. put() and sync() wait for each other; get() waits for neither.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "store/file_system.h"
#include "store/segment.h"
#include "store/tier.h"

namespace ebb {

enum class SyncPolicy {
  kOnClose,      // when a segment is full, and on sync(): a power failure loses at most the open segment's records
  kEveryRecord,  // before put() returns
  kNever,        // when the system pleases, sync() included
};

struct DiskOptions {
  std::filesystem::path folder;
  std::uint64_t max_bytes = std::uint64_t{16} << 30;  // of all segment files together
  // A segment's most bytes; 0: max_bytes / 64, at least 16 MiB, at most max_bytes / 4. Larger ones mean fewer files and
  // more records that go at once when the tier is full.
  std::uint64_t segment_bytes = 0;
  SyncPolicy sync = SyncPolicy::kOnClose;
};

class DiskTier : public Tier {
 public:
  // kIo when the folder cannot be made or listed, or another process has it. `system` must outlive the tier.
  static Result<std::unique_ptr<DiskTier>> open(const DiskOptions& options, FileSystem& system);
  ~DiskTier() override;

  [[nodiscard]] std::int64_t cost_us() const override { return 1000; }
  [[nodiscard]] bool may_wait() const override { return true; }
  [[nodiscard]] bool is_durable() const override { return true; }

  [[nodiscard]] std::optional<Kept> find(const Hash128& name) const override;
  // Ok when it is there already and sound, which is looked at once; other bytes under its name are replaced. kOutOfBudget for a record of more than a quarter of
  // the tier, kIo when the disk refuses or writing is off.
  Status put(const RecordHandle& record) override;
  Result<RecordHandle> get(const RecordKey& key, FrameList frames) override;
  // From the index; its bytes stay in the file until the segment goes, and a restart finds it again.
  void drop(const Hash128& name) override;
  [[nodiscard]] std::vector<Hash128> take_lost() override;
  // kIo when writing is off.
  Status sync() override;

  [[nodiscard]] TierStats stats() const override;
  void check_invariants() const override;

 private:
  struct Place {
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t front_bytes = 0;  // of these, before the frames

    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Entry {
    Place place;
    Hash128 body;
    bool used = false;      // read since it was written here
    bool verified = false;  // written or read whole by this process
  };
  struct Segment {
    std::uint64_t bytes = 0;       // of the file
    std::uint64_t live_bytes = 0;  // of the records that the index has in it
    bool is_outdated = false;      // of an earlier format
  };

  DiskTier(const DiskOptions& options, FileSystem& system);
  [[nodiscard]] std::filesystem::path path(std::uint64_t segment) const;
  Status start();
  Status take_lock();
  void scan(std::uint64_t segment);
  void note_outdated();
  [[nodiscard]] static Place place_of(const RecordHeader& header, std::uint64_t segment, std::uint64_t offset);
  Result<RecordHandle> load(const Entry& entry, const Hash128& name, FrameList frames = {}) const;
  Result<RecordHandle> load_part(const File& file, const Place& place, FrameList frames) const;
  Status read_exactly(const File& file, const Place& place, std::uint64_t offset, std::span<std::byte> into) const;
  void note(const Status& status, std::string_view consequence);

  // With write_mutex_ held.
  [[nodiscard]] bool is_sound(const RecordHeader& header);
  Status may_write();
  [[nodiscard]] Status not_written() const;
  Status write(const EncodedRecord& record);
  enum class Came { kNew, kMoved };
  Status append(const EncodedRecord& record, Came came);
  Result<RecordHandle> load_to_move(const Hash128& name, const Entry& entry);
  Status open_segment();
  Status close_segment();
  Status sync_written();
  Status make_room(std::uint64_t n_bytes);
  Status drop_oldest();
  Status remove_segment(std::uint64_t segment);
  Status compact();
  [[nodiscard]] std::vector<std::uint64_t> find_sparse_segments() const;
  [[nodiscard]] std::vector<std::pair<Hash128, Entry>> entries_in(std::uint64_t segment) const;
  void leave_segment();
  void stop_writing(const Status& status);

  // With index_mutex_ held.
  void insert(const Hash128& name, const Entry& entry);
  void erase(const Hash128& name);
  void forget_segment(std::uint64_t segment);
  void refuse(const Hash128& name, const Status& status);

  const DiskOptions options_;
  FileSystem& system_;
  std::unique_ptr<File> lock_;
  bool read_only_ = false;

  std::mutex write_mutex_;           // taken before index_mutex_
  std::unique_ptr<File> open_file_;  // the segment that is appended to
  std::uint64_t open_segment_ = 0;   // its number, or that of the last one
  bool folder_changed_ = false;      // since it was synced
  bool look_for_sparse_ = true;      // whether compaction may have something to do
  std::int32_t n_untried_ = 0;       // records that are not tried after a failure

  mutable std::mutex index_mutex_;
  std::map<Hash128, Entry> index_;
  std::map<std::uint64_t, Segment> segments_;  // oldest first; the open one too
  std::map<Hash128, RecordHandle> moving_;     // read to be appended again, and not dropped since
  std::vector<Hash128> lost_;
  TierStats stats_;
};

}  // namespace ebb
