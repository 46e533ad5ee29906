// FileSystem: the few file operations that the disk tier needs, so that tests can put a sick disk in their place.
//
// It does not know what the bytes mean. Errors are kIo with the path and the system's words, kNotFound for a file that
// is not there, kOutOfBudget for a disk or quota that is full. Thread rule: any thread; one File is appended to by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace ebb {

class File {
 public:
  virtual ~File() = default;
  // Adds all of it to the end. After an error the file may end with a part of it.
  virtual Status append(std::span<const std::byte> bytes) = 0;
  // Fills `into` from `offset` as far as the file goes; how many bytes that were.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) const = 0;
  virtual Result<std::uint64_t> size() const = 0;
  // Cuts the file to its first n_bytes.
  virtual Status truncate(std::uint64_t n_bytes) = 0;
  // Returns when what was appended is on the device (fdatasync).
  virtual Status sync() = 0;
  // Whether this file is now locked for this process, until it is closed; false when another process holds it.
  virtual Result<bool> try_lock() = 0;
};

enum class FileUse { kRead, kAppend };  // kAppend makes the file when there is none

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<File>> open(const std::filesystem::path& path, FileUse use) = 0;
  // Names of the files in a folder, in any order.
  virtual Result<std::vector<std::string>> list(const std::filesystem::path& folder) = 0;
  virtual Status remove(const std::filesystem::path& path) = 0;
  // With the folders above it; ok when it is there.
  virtual Status make_folder(const std::filesystem::path& folder) = 0;
  // Returns when files made in or removed from the folder are so on the device.
  virtual Status sync_folder(const std::filesystem::path& folder) = 0;
};

// The machine's own.
[[nodiscard]] FileSystem& real_file_system();

}  // namespace ebb
