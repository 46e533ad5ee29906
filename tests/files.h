// Files of the tests: the ones that come with the source tree, and temporary ones.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

namespace ebb {

// A file named from the source tree's root; nothing when it is not there.
inline std::optional<std::filesystem::path> find_test_file(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(EBB_SOURCE_DIR) / name;
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

// A path of its own in the system's temporary folder, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& suffix) {
    static std::atomic<int> n_made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("ebb-test-" + std::to_string(getpid()) + "-" + std::to_string(n_made++) + suffix);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ebb
