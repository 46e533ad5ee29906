#include "gguf/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ebb {

namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Status open_error(const std::filesystem::path& path, int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR) {
    return error(Code::kNotFound, "{}: no such file; check the path", path.string());
  }
  return error(Code::kIo, "{}: cannot be opened: {}", path.string(), std::strerror(error_number));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer before we can refuse it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return open_error(path, errno);
  MappedFile file(path, descriptor);  // closes the descriptor on every way out
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return open_error(path, errno);
  if (!S_ISREG(status.st_mode)) {
    return error(Code::kIo, "{}: is not a regular file; give the path of a file", path.string());
  }
  if (status.st_size == 0) return error(Code::kDamaged, "{}: is empty; get the file again", path.string());
  const auto n_bytes = static_cast<std::size_t>(status.st_size);
  void* data = mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    return error(Code::kIo, "{}: {} bytes cannot be mapped: {}", path.string(), n_bytes, std::strerror(errno));
  }
  file.data_ = static_cast<const std::byte*>(data);
  file.n_bytes_ = n_bytes;
  return file;
}

MappedFile::MappedFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      n_bytes_(std::exchange(other.n_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    data_ = std::exchange(other.data_, nullptr);
    n_bytes_ = std::exchange(other.n_bytes_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { close(); }

void MappedFile::close() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), n_bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status MappedFile::read_error(std::size_t offset, std::size_t n_bytes) const {
  return error(Code::kIo, "{}: bytes {}..{} cannot be read; check the disk, or whether the file was shortened",
               path_.string(), offset, offset + n_bytes);
}

Status MappedFile::read(std::size_t offset, std::span<std::byte> into) const {
  EBB_CHECK(offset <= n_bytes_ && into.size() <= n_bytes_ - offset, "{}+{} of {}", offset, into.size(), n_bytes_);
  for (std::size_t at = 0; at < into.size();) {
    const ssize_t n = pread(descriptor_, into.data() + at, into.size() - at, static_cast<off_t>(offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return read_error(offset, into.size());
    at += static_cast<std::size_t>(n);
  }
  return {};
}

Status MappedFile::populate(std::size_t offset, std::size_t n_bytes) const {
  EBB_CHECK(offset <= n_bytes_ && n_bytes <= n_bytes_ - offset, "{}+{} of {}", offset, n_bytes, n_bytes_);
  if (n_bytes == 0) return {};
  const std::size_t begin = offset / page_bytes() * page_bytes();
  auto* address = const_cast<std::byte*>(data_ + begin);
  const std::size_t length = offset + n_bytes - begin;
#ifdef MADV_POPULATE_READ
  if (madvise(address, length, MADV_POPULATE_READ) == 0) return {};
  if (errno == EFAULT || errno == EIO || errno == EHWPOISON) {
    return read_error(offset, n_bytes);
  }
#endif
  // Older kernels only take the hint; whether they do is not our business.
  (void)madvise(address, length, MADV_WILLNEED);
  return {};
}

void MappedFile::drop(std::size_t offset, std::size_t n_bytes) const {
  EBB_CHECK(offset <= n_bytes_ && n_bytes <= n_bytes_ - offset, "{}+{} of {}", offset, n_bytes, n_bytes_);
  const std::size_t begin = (offset + page_bytes() - 1) / page_bytes() * page_bytes();
  // The last page of the file is ours to drop although it reaches behind its end.
  const std::size_t end = offset + n_bytes == n_bytes_ ? n_bytes_ : (offset + n_bytes) / page_bytes() * page_bytes();
  if (begin >= end) return;
  (void)madvise(const_cast<std::byte*>(data_ + begin), end - begin, MADV_DONTNEED);
}

}  // namespace ebb
