// FusedFileSystem: the machine's files in a process that is to be killed -9 at a moment that is counted in work, not in
// time: at the n-th piece of work, or in the middle of it. Thread rule: any thread; the work of all of them is counted.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "store/file_system.h"

namespace ebb {

// Burns down by one with each piece of work; at its end the process is killed.
class Fuse {
 public:
  explicit Fuse(std::uint64_t n_work) : n_left_(static_cast<std::int64_t>(n_work)) {}
  // What is half done when the kill comes is done by `half`.
  void burn(const std::function<void()>& half = nullptr) {
    if (n_left_.fetch_sub(1) != 1) return;
    if (half) half();
    (void)::kill(::getpid(), SIGKILL);
  }

 private:
  std::atomic<std::int64_t> n_left_;
};

// A file on which every change burns the fuse.
class FusedFile : public File {
 public:
  FusedFile(std::unique_ptr<File> file, Fuse& fuse) : file_(std::move(file)), fuse_(fuse) {}
  Status append(std::span<const std::byte> bytes) override {
    fuse_.burn([&] { (void)file_->append(bytes.first(bytes.size() * 2 / 3)); });
    return file_->append(bytes);
  }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) const override {
    return file_->read(offset, into);
  }
  Result<std::uint64_t> size() const override { return file_->size(); }
  Status truncate(std::uint64_t n_bytes) override { return file_->truncate(n_bytes); }
  Status sync() override {
    fuse_.burn();
    return file_->sync();
  }
  Result<bool> try_lock() override { return file_->try_lock(); }

 private:
  std::unique_ptr<File> file_;
  Fuse& fuse_;
};

class FusedFileSystem : public FileSystem {
 public:
  explicit FusedFileSystem(Fuse& fuse) : fuse_(fuse) {}
  Result<std::unique_ptr<File>> open(const std::filesystem::path& path, FileUse use) override {
    if (use == FileUse::kAppend) fuse_.burn();
    EBB_ASSIGN_OR_RETURN(std::unique_ptr<File> file, real_file_system().open(path, use));
    return std::unique_ptr<File>(std::make_unique<FusedFile>(std::move(file), fuse_));
  }
  Result<std::vector<std::string>> list(const std::filesystem::path& folder) override {
    return real_file_system().list(folder);
  }
  Status remove(const std::filesystem::path& path) override {
    fuse_.burn();
    return real_file_system().remove(path);
  }
  Status make_folder(const std::filesystem::path& folder) override { return real_file_system().make_folder(folder); }
  Status sync_folder(const std::filesystem::path& folder) override { return real_file_system().sync_folder(folder); }

 private:
  Fuse& fuse_;
};

}  // namespace ebb
