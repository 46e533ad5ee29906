#include "store/file_system.h"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ebb {
namespace {

Status system_error(const std::filesystem::path& path, std::string_view what, int error_number) {
  const bool absent = error_number == ENOENT || error_number == ENOTDIR;
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  const Code code = absent ? Code::kNotFound : full ? Code::kOutOfBudget : Code::kIo;
  return error(code, "{}: cannot be {}: {}", path.string(), what, std::strerror(error_number));
}

class RealFile : public File {
 public:
  RealFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~RealFile() override { ::close(descriptor_); }
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return system_error(path_, "written to", n == 0 ? EIO : errno);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::size_t n_read = 0;
    while (n_read < into.size()) {
      const ssize_t n =
          ::pread(descriptor_, into.data() + n_read, into.size() - n_read, static_cast<off_t>(offset + n_read));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error(path_, "read", errno);
      if (n == 0) break;
      n_read += static_cast<std::size_t>(n);
    }
    return n_read;
  }

  Result<std::uint64_t> size() const override {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return system_error(path_, "measured", errno);
    return static_cast<std::uint64_t>(status.st_size);
  }

  Status truncate(std::uint64_t n_bytes) override {
    return ::ftruncate(descriptor_, static_cast<off_t>(n_bytes)) == 0 ? Status()
                                                                      : system_error(path_, "cut shorter", errno);
  }

  Status sync() override { return ::fdatasync(descriptor_) == 0 ? Status() : system_error(path_, "synced", errno); }

  Result<bool> try_lock() override {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK) return false;
    return system_error(path_, "locked", errno);
  }

 private:
  std::filesystem::path path_;
  int descriptor_;
};

class RealFileSystem : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const std::filesystem::path& path, FileUse use) override {
    // Without O_NONBLOCK a named pipe would wait for its other end.
    const int flags = O_CLOEXEC | O_NONBLOCK | (use == FileUse::kRead ? O_RDONLY : O_RDWR | O_APPEND | O_CREAT);
    const int descriptor = ::open(path.c_str(), flags, 0600);
    if (descriptor < 0) return system_error(path, "opened", errno);
    auto file = std::make_unique<RealFile>(path, descriptor);
    struct stat status {};
    if (fstat(descriptor, &status) != 0) return system_error(path, "opened", errno);
    if (!S_ISREG(status.st_mode)) return error(Code::kIo, "{}: is not a regular file", path.string());
    return std::unique_ptr<File>(std::move(file));
  }

  Result<std::vector<std::string>> list(const std::filesystem::path& folder) override {
    std::error_code code;
    std::vector<std::string> names;
    auto entry = std::filesystem::directory_iterator(folder, code);
    for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
      names.push_back(entry->path().filename().string());
    }
    if (code) return system_error(folder, "listed", code.value());
    return names;
  }

  Status remove(const std::filesystem::path& path) override {
    return ::unlink(path.c_str()) == 0 ? Status() : system_error(path, "removed", errno);
  }

  Status make_folder(const std::filesystem::path& folder) override {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    return code ? system_error(folder, "made", code.value()) : Status();
  }

  Status sync_folder(const std::filesystem::path& folder) override {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return system_error(folder, "opened", errno);
    const int result = ::fsync(descriptor);
    const int error_number = errno;
    ::close(descriptor);
    return result == 0 ? Status() : system_error(folder, "synced", error_number);
  }
};

}  // namespace

FileSystem& real_file_system() {
  static RealFileSystem system;
  return system;
}

}  // namespace ebb
