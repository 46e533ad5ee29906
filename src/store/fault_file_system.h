// FaultFileSystem: files in memory that fail as disks do, for tests.
//
// It keeps apart what was synced from what was only written, so that a power failure can take the rest. Faults come at
// random from a seed, or are switched on by a test. Thread rule: any thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "store/file_system.h"

namespace ebb {

class FaultFileSystem : public FileSystem {
 public:
  explicit FaultFileSystem(std::uint64_t seed = 1) : random_(seed) {}

  // One operation in `n` fails in a way of its kind: short, flipped or refused reads; torn, full or refused writes;
  // refused opens, syncs and removals. 0: none.
  void fail_one_in(std::uint32_t n) {
    locked([&] { one_in_ = n; });
  }
  // Writes that would take all files together above this are torn where it ends.
  void set_space(std::uint64_t n_bytes) {
    locked([&] { space_ = n_bytes; });
  }
  void set_read_only(bool read_only) {
    locked([&] { read_only_ = read_only; });
  }
  // Called before each append or read, without a lock: a test may wait in it.
  void before_append(std::function<void()> hook) {
    locked([&] { before_append_ = std::move(hook); });
  }
  void before_read(std::function<void()> hook) {
    locked([&] { before_read_ = std::move(hook); });
  }
  // Called after each removal of a file, without a lock.
  void after_remove(std::function<void()> hook) {
    locked([&] { after_remove_ = std::move(hook); });
  }
  // From now on every operation fails; until power_on(), which takes what was not synced, whole or in part.
  void power_off() {
    locked([&] { power_ = false; });
  }
  void power_on();

  // None where the file is gone, which the store's thread may have removed since paths() told it.
  [[nodiscard]] std::vector<std::byte> bytes(const std::filesystem::path& path) {
    return locked([&] {
      const auto file = files_.find(path.string());
      return file == files_.end() ? std::vector<std::byte>() : file->second->data;
    });
  }
  void set_bytes(const std::filesystem::path& path, std::vector<std::byte> bytes);
  // As somebody's `rm` does.
  void erase(const std::filesystem::path& path) {
    locked([&] { files_.erase(path.string()); });
  }
  [[nodiscard]] std::vector<std::string> paths();
  // Every file as it is at one instant, and back to it, whoever writes meanwhile: a backup that somebody puts back.
  using Copy = std::map<std::string, std::vector<std::byte>>;
  [[nodiscard]] Copy copy();
  void put_back(const Copy& copy);
  [[nodiscard]] std::int64_t n_reads() {
    return locked([&] { return n_reads_; });
  }
  [[nodiscard]] std::int64_t n_appends() {
    return locked([&] { return n_appends_; });
  }
  [[nodiscard]] std::int64_t n_syncs() {
    return locked([&] { return n_syncs_; });
  }

  Result<std::unique_ptr<File>> open(const std::filesystem::path& path, FileUse use) override;
  Result<std::vector<std::string>> list(const std::filesystem::path& folder) override;
  Status remove(const std::filesystem::path& path) override;
  Status make_folder(const std::filesystem::path& folder) override;
  Status sync_folder(const std::filesystem::path& folder) override;

 private:
  friend class FaultFile;

  struct Content {
    std::vector<std::byte> data;
    std::size_t n_synced = 0;
    bool in_folder = false;  // the folder was synced since the file was made
    bool locked = false;
  };

  template <class F>
  std::invoke_result_t<F> locked(F f) {
    const std::lock_guard lock(mutex_);
    return f();
  }
  void set_content(const std::string& path, std::vector<std::byte> bytes);
  [[nodiscard]] std::uint64_t draw(std::uint64_t n) { return random_() % n; }
  [[nodiscard]] bool fails() { return one_in_ > 0 && draw(one_in_) == 0; }
  [[nodiscard]] Status refuse(const std::string& path) const {
    return error(Code::kIo, "{}: {}", path, power_ ? "Input/output error" : "no power");
  }
  Status append(const std::string& path, Content& content, std::span<const std::byte> bytes);
  Result<std::size_t> read(const std::string& path, const Content& content, std::uint64_t offset,
                           std::span<std::byte> into);

  std::mutex mutex_;
  std::mt19937_64 random_;
  std::uint32_t one_in_ = 0;
  std::uint64_t space_ = std::uint64_t{1} << 40;
  bool read_only_ = false;
  bool power_ = true;
  std::function<void()> before_append_;
  std::function<void()> before_read_;
  std::function<void()> after_remove_;
  std::map<std::string, std::shared_ptr<Content>> files_;
  std::map<std::string, std::shared_ptr<Content>> removed_;  // and the folder not synced since
  std::int64_t n_reads_ = 0;
  std::int64_t n_appends_ = 0;
  std::int64_t n_syncs_ = 0;
};

}  // namespace ebb
