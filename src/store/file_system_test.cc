#include "store/file_system.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk_tier.h"
#include "store/toy_record.h"

namespace ebb {
namespace {

class RealFiles : public testing::Test {
 protected:
  RealFiles() { std::filesystem::remove_all(folder_); }
  ~RealFiles() override { std::filesystem::remove_all(folder_); }

  FileSystem& system_ = real_file_system();
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("ebb_file_system_" + std::to_string(::getpid()));
};

std::array<std::byte, 4> four(int first) {
  return {std::byte(first), std::byte(first + 1), std::byte(first + 2), std::byte(first + 3)};
}

TEST_F(RealFiles, keep_what_was_appended_and_give_as_much_as_there_is) {
  ASSERT_TRUE(system_.make_folder(folder_ / "a" / "b").ok());
  ASSERT_TRUE(system_.make_folder(folder_ / "a" / "b").ok());
  const std::filesystem::path path = folder_ / "a" / "b" / "x";
  {
    const auto file = *system_.open(path, FileUse::kAppend);
    ASSERT_TRUE(file->append(four(1)).ok());
    ASSERT_TRUE(file->append(four(5)).ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(system_.sync_folder(path.parent_path()).ok());
  }
  const auto file = *system_.open(path, FileUse::kAppend);
  std::array<std::byte, 4> bytes{};
  EXPECT_EQ(*file->size(), 8U);
  EXPECT_EQ(*file->read(2, bytes), 4U);
  EXPECT_EQ(bytes, four(3));
  EXPECT_EQ(*file->read(6, bytes), 2U);
  EXPECT_EQ(*file->read(100, bytes), 0U);
  ASSERT_TRUE(file->truncate(3).ok());
  ASSERT_TRUE(file->append(four(9)).ok());
  EXPECT_EQ(*file->read(3, bytes), 4U);
  EXPECT_EQ(bytes, four(9));
  EXPECT_EQ(*system_.list(path.parent_path()), std::vector<std::string>{"x"});
  ASSERT_TRUE(system_.remove(path).ok());
  EXPECT_EQ(system_.remove(path).code(), Code::kNotFound);
}

TEST_F(RealFiles, that_are_none_are_refused) {
  ASSERT_TRUE(system_.make_folder(folder_).ok());
  EXPECT_EQ(system_.open(folder_ / "x", FileUse::kRead).status().code(), Code::kNotFound);
  EXPECT_FALSE(system_.open(folder_, FileUse::kRead).ok());
  EXPECT_FALSE(system_.list(folder_ / "x").ok());
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(system_.open(folder_ / "pipe", FileUse::kRead).status().code(), Code::kIo);
  // A file where the folder should be.
  ASSERT_TRUE(system_.open(folder_ / "file", FileUse::kAppend).ok());
  EXPECT_FALSE(system_.make_folder(folder_ / "file" / "store").ok());
}

TEST_F(RealFiles, are_locked_by_one_at_a_time) {
  ASSERT_TRUE(system_.make_folder(folder_).ok());
  auto first = *system_.open(folder_ / "lock", FileUse::kAppend);
  const auto second = *system_.open(folder_ / "lock", FileUse::kAppend);
  EXPECT_TRUE(*first->try_lock());
  EXPECT_FALSE(*second->try_lock());
  first.reset();
  EXPECT_TRUE(*second->try_lock());
}

TEST_F(RealFiles, carry_a_disk_tier_over_restarts_and_segments) {
  const DiskOptions options = {.folder = folder_ / "store", .max_bytes = 1 << 20, .segment_bytes = 4096};
  {
    const auto tier = *DiskTier::open(options, system_);
    for (std::uint64_t n = 1; n <= 50; ++n) ASSERT_TRUE(tier->put(make_toy_record({.number = n})).ok());
    EXPECT_FALSE(DiskTier::open(options, system_).ok());
  }
  const auto tier = *DiskTier::open(options, system_);
  for (std::uint64_t n = 1; n <= 50; ++n) {
    const Result<RecordHandle> record = tier->get(toy_key(n), {});
    ASSERT_TRUE(record.ok()) << record.status().message();
    EXPECT_TRUE(is_toy_record(**record, {.number = n}));
  }
  std::uint64_t n_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder)) n_bytes += entry.file_size();
  EXPECT_EQ(n_bytes, tier->stats().bytes);
  std::filesystem::remove_all(options.folder);
  EXPECT_FALSE(tier->get(toy_key(1), {}).ok());
  EXPECT_EQ(tier->put(make_toy_record({.number = 51})).code(), Code::kIo);
  EXPECT_FALSE(tier->stats().last_error.empty());
  tier->check_invariants();
}

}  // namespace
}  // namespace ebb
