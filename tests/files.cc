#include "tests/files.h"

#include <atomic>

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

}  // namespace ebb
