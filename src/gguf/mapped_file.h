// MappedFile: a file of this machine, read-only, as bytes in memory that the system loads and drops page by page.
//
// It does not know what the bytes mean. The file must not be shortened by others while it is mapped: reading behind its
// new end then stops the process (SIGBUS), as with every memory-mapped file; populate() reports that as an error.
// Thread rule: immutable after open(); all functions may be called from several threads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/status.h"

namespace ebb {

class MappedFile {
 public:
  // Regular files only. kNotFound when there is none, kIo when the system refuses, kDamaged when it is empty.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // The whole file; the first byte lies on a page border.
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, n_bytes_}; }

  // Copies bytes out past the mapping: looking at a few of them there may bring 2 MB of pages each into memory.
  Status read(std::size_t offset, std::span<std::byte> into) const;

  // Loads the pages that hold [offset, offset + n_bytes) now, so that nobody waits for the disk later. kIo when it
  // fails. A system that cannot is not an error: the pages then come at first use.
  Status populate(std::size_t offset, std::size_t n_bytes) const;
  // Takes the pages that lie wholly in [offset, offset + n_bytes) out of this process's memory. Their bytes stay
  // readable and come from the page cache or the disk again.
  void drop(std::size_t offset, std::size_t n_bytes) const;

 private:
  MappedFile(std::filesystem::path path, int descriptor);
  void close();
  Status read_error(std::size_t offset, std::size_t n_bytes) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  std::size_t n_bytes_ = 0;
};

}  // namespace ebb
