// ColdStore: where sessions put the bytes of blocks that leave the cache, and get them back: a list of tiers, cheapest
// first.
//
// It does not know sessions, blocks or frames of the cache, nor which kinds of tiers there are (cold_store_open.cc
// makes RAM and disk): it is given names and bytes. Saving is write-behind, on threads of its own and behind bounded
// queues. Every record is verified before its bytes are used (law 2), and a tier that fails costs work, never truth
// (law 8): what went wrong is in stats(), in words for the user. Of one name it keeps one body: what would differ is
// turned away, and whoever has it gives it another name.
//
//   put          record -> tiers that do not wait now, the others behind
//   put_behind   tokens now; frames copied out by the store's thread -> the same
//   get          what is in memory or on its way to a tier; then the other tiers, and then into those that cost less
//   fetch        the same on a thread of the store
//
// Thread rule: any thread may call anything; what is given to put_behind, after_puts and fetch must not call the store.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/disk_tier.h"
#include "store/fetch.h"
#include "store/record.h"
#include "store/tier.h"
#include "store/work_thread.h"

namespace ebb {

struct ColdStoreOptions {
  std::size_t ram_bytes = std::size_t{1} << 30;  // 0: no RAM tier
  std::optional<DiskOptions> disk;
  // The most that may wait to be copied out, the most that may wait to be written to a tier, and the most that may be
  // fetched and not taken, each beside ram_bytes.
  std::size_t queue_bytes = std::size_t{256} << 20;
  FileSystem* system = nullptr;  // the machine's own when null
};

struct StoreStats {
  std::vector<TierStats> tiers;  // cheapest first
  std::int64_t n_pending = 0;    // put behind, and not copied yet
  std::int64_t n_changed = 0;    // put behind, and not what was announced once it was copied: not kept
  std::size_t queued_bytes = 0;  // waiting to be copied or written

  // Zeros for a tier that is not there.
  [[nodiscard]] TierStats tier(std::string_view name) const;
};

class ColdStore {
 public:
  // Tiers in RAM and on disk. Fails only where the disk folder cannot be used at all: see DiskTier::open.
  static Result<std::unique_ptr<ColdStore>> open(const ColdStoreOptions& options);
  ColdStore(std::vector<std::unique_ptr<Tier>> tiers, std::size_t queue_bytes);
  // Finishes what was put. Frames that put_behind reads must live until then, or until wait().
  ~ColdStore();
  ColdStore(const ColdStore&) = delete;
  ColdStore& operator=(const ColdStore&) = delete;

  // The body checksum of what a tier keeps under that name, or will once it is not pending; nothing when none does.
  [[nodiscard]] std::optional<Hash128> find(const Hash128& exact_name) const;
  // Whether a tier keeps the name with that very body (pending is not kept); the record then counts as used now. For a
  // block that is evicted clean.
  bool touch(const Hash128& exact_name, const Hash128& body);

  // Waits while a queue is full. kOutOfBudget when no tier has room for such a record. False, and nothing changes,
  // where the name is kept or pending with another body. `record` is whole.
  Result<bool> put(const RecordHandle& record);

  // Writes the frames of a record into [n_frames * bytes of a frame].
  using Fill = std::function<void(std::span<std::byte> frames)>;
  // header.body says what the frames are. The record is pending until `fill` has run on the store's thread: until then
  // what `fill` reads must not change; if it did all the same, the record is counted and not kept. Waits while the
  // queue is full. A name that is kept or pending already with that body is only touched; false, and nothing changes,
  // where it is with another.
  bool put_behind(const RecordHeader& header, std::span<const Token> tokens, Fill fill);
  [[nodiscard]] bool is_pending(const Hash128& exact_name) const;
  // Until that name is not pending.
  void wait(const Hash128& exact_name);

  // Waits for a pending record, and for devices. At least those frames of it (ascending), or all where none are named.
  // kNotFound when no tier has it, kDamaged or kIo when one that had it was wrong. The caller copies it out by
  // EncodedRecord::copy_frames, and calls refuse() when that fails.
  Result<RecordHandle> get(const RecordKey& key, FrameList frames = {});
  // Gets records behind. What is in memory is there at once, and `notify` is then not called; else it is, on a thread
  // of the store, when all is ready. It owns what it uses: nobody waits for it. By the caller, all is ready at the
  // return, and `notify` is never called.
  [[nodiscard]] std::shared_ptr<Fetch> fetch(std::vector<RecordRequest> requests, std::function<void()> notify = {},
                                             ReadBy by = ReadBy::kThread);
  // A reader found the bytes of this record damaged: drops and counts it. Another tier may still have a good one, so
  // get() is worth a second call. A record that is sound and yet not what the reader wanted goes from every tier.
  void refuse(const RecordHandle& record);
  // Forgets the record in every tier, for good as far as this process goes.
  void drop(const Hash128& exact_name);

  // Calls `task` on a thread of the store, once all that was put before is in the tiers that outlive the process; must
  // not call the store. Costs room in the queue as a record of n_bytes does.
  void after_puts(std::size_t n_bytes, std::function<void()> task);
  // Until nothing is pending or waits to be written, and every tier has it for good. The first error where one does
  // not.
  Status flush();

  [[nodiscard]] StoreStats stats() const;
  void check_invariants() const;

 private:
  struct Level {
    std::unique_ptr<Tier> tier;
    std::map<Hash128, RecordHandle> queued;  // on their way to it
    std::unique_ptr<WorkThread> writer;      // null for a tier that never waits
    std::optional<Hash128> writing;          // what the tier is taking at the moment

    // What the tier keeps, and is to keep: what was dropped while the tier took it goes again.
    [[nodiscard]] std::optional<Tier::Kept> find(const Hash128& name) const;
  };
  enum class Came { kWhole, kBehind };

  Result<bool> keep(const RecordHandle& record, Came came);
  void write(std::size_t level, const Hash128& name);
  void push_after(std::size_t level, std::size_t n_bytes, std::function<void()> task);
  // With mutex_ held.
  [[nodiscard]] std::optional<Hash128> find_body(const Hash128& name) const;
  [[nodiscard]] bool is_verified(const Level& level, const RecordHeader& header) const;
  [[nodiscard]] bool is_backed(std::size_t level, const Hash128& name) const;
  void tell_backed(std::size_t below, const Hash128& name);
  Result<RecordHandle> get_from_memory(const RecordKey& key, FrameList frames);
  void promote(std::size_t from, const RecordHandle& record);

  mutable std::mutex mutex_;  // taken before a tier's
  std::condition_variable changed_;
  std::vector<Level> levels_;           // cheapest first; the list never changes
  std::map<Hash128, Hash128> pending_;  // name, body
  std::int64_t n_changed_ = 0;
  WorkThread copier_;
  std::unique_ptr<FetchThread> fetches_;  // last: it reads through all of the above
};

}  // namespace ebb
