// LaneFolder: the images of lanes on disk, so that a later process takes them up again.
//
// One file for each lane's last image (engine/lane_image.h), named by a number that only grows: "lane-00000042.ebb". A new
// image goes into a new file, is synced, and then the old file goes; nothing that was written is changed. So a crash leaves
// the old image, or both, of which the later one counts if it is whole. All files together are at most max_bytes: of too
// many the longest unsaved of the owner that has most goes, those of other models and owners only from the half that they may have. It does not know
// sessions, and does not keep K and V: those are the cold store's.
//
// What cannot be written is counted, and costs work later (law 8). Thread rule: any thread; files are written on one of its
// own, where the last image of a lane replaces one that waits, so that at most one waits for each lane.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/lane_image.h"
#include "store/file_system.h"
#include "store/work_thread.h"

namespace ebb {

struct LaneFolderOptions {
  std::filesystem::path folder;
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
  FileSystem* system = nullptr;  // the machine's own when null
  // Where the blocks of images are, which outlives the folder: an image is written once they are. Null: at once.
  ColdStore* store = nullptr;
};

struct LaneFolderStats {
  std::size_t n_images = 0;    // of this process's lanes
  std::uint64_t bytes = 0;     // of all files
  std::int64_t n_waiting = 0;  // saved, and not written yet
  std::int64_t n_written = 0;
  std::int64_t n_write_errors = 0;
  std::int64_t n_dropped = 0;  // made room for others
  std::int64_t n_resumed = 0;  // given by load()
  std::int64_t n_refused = 0;  // damaged, and removed; or not to be read
  std::int64_t n_foreign = 0;  // of another model, layout, version or owner, and left alone while there is room
  // The last thing that went wrong, in words for the user; empty when nothing did.
  std::string last_error;
};

class LaneFolder {
 public:
  // Reads every file; kIo when the folder cannot be made or listed.
  static Result<std::unique_ptr<LaneFolder>> open(const LaneFolderOptions& options);
  // Writes what waits.
  ~LaneFolder() { flush(); }
  LaneFolder(const LaneFolder&) = delete;
  LaneFolder& operator=(const LaneFolder&) = delete;

  // Those that `fits` accepts, the longest unsaved first. To be called once, before the others.
  [[nodiscard]] std::vector<LaneImage> load(const std::function<bool(const LaneImage&)>& fits);
  // In place of what it has of that owner and public id, behind. Waits while the store's queue is full.
  void save(LaneImage image);
  void forget(std::string_view owner, std::string_view public_id);
  // Until all of that is done.
  void flush();
  [[nodiscard]] LaneFolderStats stats() const;

 private:
  using Key = std::pair<std::string, std::string>;  // owner, public id
  struct Waiting {
    LaneImage image;
    std::uint64_t call = 0;
  };
  struct Kept {
    std::uint64_t file = 0;
    std::uint64_t call = 0;
  };

  explicit LaneFolder(const LaneFolderOptions& options);
  [[nodiscard]] std::filesystem::path path(std::uint64_t file) const;
  Result<LaneImage> read(std::uint64_t file);
  void put_behind(std::size_t n_bytes, std::function<void()> task);
  void take(LaneImage image);
  void write(const Key& key);
  void remove(const Key& key, std::uint64_t call);
  Status replace_file(const Key& key, const Waiting& next);
  Status write_file(std::uint64_t file, std::span<const std::byte> bytes);
  void make_room(std::uint64_t n_bytes);
  [[nodiscard]] std::uint64_t least_wanted() const;
  void remove_file(std::uint64_t file);
  void note(const Status& status);

  const LaneFolderOptions options_;
  FileSystem& system_;

  mutable std::mutex mutex_;
  std::map<Key, Waiting> waiting_;
  std::map<Key, Kept> kept_;
  std::map<std::uint64_t, std::uint64_t> file_bytes_;  // by number, foreign ones too
  std::set<std::uint64_t> foreign_;                    // of these
  std::uint64_t n_files_ = 0;                          // the last number given
  std::uint64_t n_calls_ = 0;
  LaneFolderStats stats_;

  WorkThread writer_;  // last: what it runs uses all of the above
};

}  // namespace ebb
