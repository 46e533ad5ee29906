// Files of the tests: the ones that come with the source tree, and temporary ones.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace ebb {

// A file named from the source tree's root; nothing when it is not there.
[[nodiscard]] std::optional<std::filesystem::path> find_test_file(const std::string& name);

inline std::filesystem::path bundled_model() { return find_test_file("models/ebb-recall.gguf").value(); }

// A path of its own in the system's temporary folder, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& suffix);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A folder of its own in the system's temporary folder, which exists at first and is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Damages a file: one bit in each kilobyte of it.
void flip_bits(const std::filesystem::path& path);

}  // namespace ebb
