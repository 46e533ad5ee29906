// ColdStore: where sessions put the bytes of blocks that leave the cache, and get them back: RAM first, then disk.
//
// It does not know sessions, blocks or frames of the cache: it is given names and bytes. Saving is write-behind, on
// threads of its own and behind bounded queues. Every record is verified before its bytes are used (law 2), and a tier
// that fails costs work, never truth (law 8): what went wrong is in stats(), in words for the user.
//
//   put          record -> RAM now, disk behind
//   put_behind   tokens now; frames copied out by the store's thread -> RAM, then disk
//   get          RAM, what is on its way to disk, disk (and then also into RAM)
//
// Thread rule: any thread may call anything; what is given to put_behind must not call the store.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "store/disk_tier.h"
#include "store/memory_tier.h"
#include "store/record.h"
#include "store/tier_stats.h"
#include "store/work_thread.h"

namespace ebb {

struct ColdStoreOptions {
  std::size_t ram_bytes = std::size_t{1} << 30;
  std::optional<DiskOptions> disk;
  // The most that may wait to be copied out, and the most that may wait to be written, beside ram_bytes.
  std::size_t queue_bytes = std::size_t{256} << 20;
  FileSystem* system = nullptr;  // the machine's own when null
};

struct StoreStats {
  TierStats ram;
  TierStats disk;
  std::int64_t n_pending = 0;    // put behind, and not copied yet
  std::size_t queued_bytes = 0;  // waiting to be copied or written
};

class ColdStore {
 public:
  // Fails only where the disk folder cannot be used at all: see DiskTier::open.
  static Result<std::unique_ptr<ColdStore>> open(const ColdStoreOptions& options);
  // Finishes what was put. Frames that put_behind reads must live until then, or until wait().
  ~ColdStore();
  ColdStore(const ColdStore&) = delete;
  ColdStore& operator=(const ColdStore&) = delete;

  // Whether a tier has the record; one that is pending is not there yet.
  [[nodiscard]] bool contains(const Hash128& exact_name) const;
  // The same; a record in RAM then counts as used now. For a block that is evicted clean.
  bool touch(const Hash128& exact_name);
  // An exact name whose record has that content, for approximate reuse.
  [[nodiscard]] std::optional<Hash128> find_content(const Hash128& content_name) const;

  // Waits while the disk's queue is full. kOutOfBudget when no tier has room for such a record.
  Status put(const RecordHandle& record);

  // Writes the frames of a record into [n_frames * bytes of a frame].
  using Fill = std::function<void(std::span<std::byte> frames)>;
  // The record is pending until `fill` has run on the store's thread: until then what `fill` reads must not change.
  // Waits while the queue is full. A name that is kept or pending already is only touched.
  void put_behind(const RecordHeader& header, std::span<const Token> tokens, Fill fill);
  [[nodiscard]] bool is_pending(const Hash128& exact_name) const;
  // Until that name is not pending.
  void wait(const Hash128& exact_name);

  // Waits for a pending record. kNotFound when no tier has it, kDamaged or kIo when the last one that had it was wrong.
  // The caller copies it out by EncodedRecord::copy_frames, and calls refuse() when that fails.
  Result<RecordHandle> get(const RecordKey& key);
  // A reader found the bytes of this record damaged: drops and counts it. Another tier may still have a good one, so
  // get() is worth a second call. A record that is sound and yet not what the reader wanted goes from every tier.
  void refuse(const RecordHandle& record);
  // Forgets the record in every tier, for good as far as this process goes.
  void drop(const Hash128& exact_name);

  // Reads records from disk into RAM behind, before any writing that waits, in this order.
  void prefetch(std::span<const Hash128> exact_names);
  // Calls `task` on a thread of the store, once all that was put before is in the tiers; must not call the store. Costs
  // room in the queue as a record of n_bytes does.
  void after_puts(std::size_t n_bytes, std::function<void()> task);
  // Until nothing is pending or waits to be written, and the disk has it. The disk's error when it does not.
  Status flush();

  [[nodiscard]] StoreStats stats() const;
  void check_invariants() const;

 private:
  explicit ColdStore(const ColdStoreOptions& options);
  enum class Came { kWhole, kBehind };
  Status keep(const RecordHandle& record, Came came);
  void write_to_disk(const Hash128& name);
  void read_ahead(const Hash128& name);

  mutable std::mutex mutex_;  // taken before the disk tier's
  std::condition_variable changed_;
  MemoryTier ram_;
  std::set<Hash128> pending_;
  std::map<Hash128, RecordHandle> queued_;  // on their way to disk
  std::set<Hash128> reading_;               // being read ahead at this moment

  // Destroyed in reverse: what is pending is copied, then written, then the disk is closed.
  std::unique_ptr<DiskTier> disk_;
  std::unique_ptr<WorkThread> writer_;  // null without a disk
  WorkThread copier_;
};

}  // namespace ebb
