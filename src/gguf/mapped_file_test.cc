#include "gguf/mapped_file.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ebb {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() : folder_(std::filesystem::path(testing::TempDir()) / ("mapped_file_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~MappedFileTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  // Pages of this process's memory that hold bytes of files.
  static long file_pages() {
    std::ifstream in("/proc/self/statm");
    long size = 0, resident = 0, shared = 0;
    in >> size >> resident >> shared;
    return shared;
  }

  std::filesystem::path folder_;
};

TEST_F(MappedFileTest, shows_the_bytes_of_the_file_and_keeps_them_when_moved) {
  Result<MappedFile> opened = MappedFile::open(write("a", "hello"));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  MappedFile file = std::move(opened).value();
  MappedFile moved = std::move(file);
  ASSERT_EQ(moved.bytes().size(), 5U);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
  EXPECT_EQ(moved.path().filename(), "a");
  std::array<std::byte, 3> middle{};
  ASSERT_TRUE(moved.read(1, middle).ok());
  EXPECT_EQ(std::memcmp(middle.data(), "ell", 3), 0);
}

TEST_F(MappedFileTest, refuses_what_is_no_file_with_bytes) {
  EXPECT_EQ(MappedFile::open(folder_ / "none").status().code(), Code::kNotFound);
  EXPECT_EQ(MappedFile::open(folder_).status().code(), Code::kIo);
  EXPECT_EQ(MappedFile::open(write("empty", "")).status().code(), Code::kDamaged);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder_ / "pipe").status().code(), Code::kIo);
}

TEST_F(MappedFileTest, dropped_pages_leave_memory_and_their_bytes_stay_readable) {
  const std::size_t n_bytes = 64U << 20U;
  std::string bytes(n_bytes, '\0');
  for (std::size_t i = 0; i < n_bytes; i += 4096) bytes[i] = static_cast<char>(i / 4096 % 127);
  Result<MappedFile> file = MappedFile::open(write("big", bytes));
  ASSERT_TRUE(file.ok());

  ASSERT_TRUE(file->populate(0, n_bytes).ok());
  std::size_t sum = 0;
  for (std::size_t i = 0; i < n_bytes; i += 4096) sum += static_cast<std::size_t>(file->bytes()[i]);
  const long full = file_pages();
  file->drop(0, n_bytes);
  EXPECT_LT(file_pages(), full - static_cast<long>(n_bytes / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 2));

  std::size_t again = 0;
  for (std::size_t i = 0; i < n_bytes; i += 4096) again += static_cast<std::size_t>(file->bytes()[i]);
  EXPECT_EQ(again, sum);
}

TEST_F(MappedFileTest, a_file_that_was_shortened_is_reported) {
  const std::filesystem::path path = write("shrinking", std::string(1U << 20U, 'x'));
  Result<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  file->drop(0, 1U << 20U);
  std::filesystem::resize_file(path, 4096);
  const Status status = file->populate(0, 1U << 20U);
#ifdef __linux__
  EXPECT_EQ(status.code(), Code::kIo) << "needs Linux 5.14 (MADV_POPULATE_READ)";
#endif
  std::array<std::byte, 16> bytes{};
  EXPECT_TRUE(file->read(0, bytes).ok());
  EXPECT_EQ(file->read(8192, bytes).code(), Code::kIo);
}

}  // namespace
}  // namespace ebb
