#include "tests/files.h"

#include <atomic>
#include <fstream>

#include <unistd.h>

namespace ebb {

std::optional<std::filesystem::path> find_test_file(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(EBB_SOURCE_DIR) / name;
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

TemporaryFile::TemporaryFile(const std::string& suffix) {
  static std::atomic<int> n_made = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("ebb-test-" + std::to_string(getpid()) + "-" + std::to_string(n_made++) + suffix);
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

TemporaryFolder::TemporaryFolder() : path_(TemporaryFile("").path()) { std::filesystem::create_directories(path_); }

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void flip_bits(const std::filesystem::path& path) {
  constexpr std::uintmax_t kStep = 1024;
  const std::uintmax_t n_bytes = std::filesystem::file_size(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (std::uintmax_t at = kStep / 2; at < n_bytes; at += kStep) {
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 4));
  }
}

}  // namespace ebb
