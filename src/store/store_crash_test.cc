// A process that saves and is killed at a random moment, and what the next one finds.
#include <csignal>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cold_store.h"
#include "store/toy_record.h"

namespace ebb::store_crash_test {
namespace {

ToyRecord toy_of(std::uint64_t number) {
  return {.number = number, .n_frames = 4, .bytes_per_frame = 512 + 64 * (number % 9)};
}

ColdStoreOptions crash_options(const std::filesystem::path& folder) {
  return {.ram_bytes = 16 * 1024,
          .disk = DiskOptions{.folder = folder, .max_bytes = 256 << 20, .segment_bytes = 64 * 1024},
          .queue_bytes = 16 * 1024};
}

// Saves from `first` on until it is killed; tells through the pipe the number behind the last one that is flushed.
[[noreturn]] void save_until_killed(const std::filesystem::path& folder, std::uint64_t first, int pipe) {
  auto store = ColdStore::open(crash_options(folder));
  if (!store.ok()) _exit(1);
  for (std::uint64_t n = first;; ++n) {
    const ToyRecord toy = toy_of(n);
    (*store)->put_behind(make_toy_record(toy)->header(), toy_tokens(toy),
                         [toy](std::span<std::byte> frames) { fill_toy_frames(toy, frames); });
    if (n % 7 == 0 && !(*store)->flush().ok()) _exit(2);
    const std::uint64_t n_flushed = n % 7 == 0 ? n + 1 : 0;
    if (::write(pipe, &n_flushed, sizeof n_flushed) != sizeof n_flushed) _exit(3);
  }
}

TEST(StoreCrash, a_killed_process_leaves_what_it_flushed_and_nothing_wrong) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("ebb_store_crash_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::mt19937_64 random(11);
  std::uint64_t first = 1;
  std::uint64_t n_flushed = 1;
  for (std::int32_t round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(ends[0]);
      save_until_killed(folder, first, ends[1]);
    }
    ::close(ends[1]);
    std::uint64_t n_told = 0;
    for (std::uint64_t left = 1 + random() % 60; left > 0; --left) {
      std::uint64_t told = 0;
      ASSERT_EQ(::read(ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told)) << "round " << round;
      n_flushed = std::max(n_flushed, told);
      ++n_told;
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
    for (std::uint64_t told = 0; ::read(ends[0], &told, sizeof told) == static_cast<ssize_t>(sizeof told);) {
      n_flushed = std::max(n_flushed, told);
      ++n_told;
    }
    ::close(ends[0]);

    const auto store = ColdStore::open(crash_options(folder));
    ASSERT_TRUE(store.ok()) << store.status().message();
    const std::uint64_t last = first + n_told + 1;
    for (std::uint64_t n = 1; n <= last; ++n) {
      const Result<RecordHandle> record = (*store)->get(toy_key(n));
      EXPECT_TRUE(record.ok() || n >= n_flushed) << "round " << round << ": " << record.status().message();
      EXPECT_TRUE(!record.ok() || is_toy_record(**record, toy_of(n))) << "round " << round << ", block " << n;
      const std::vector<std::int32_t> some = {1, 3};
      const Result<RecordHandle> part = (*store)->get(toy_key(n), some);
      EXPECT_EQ(part.ok(), record.ok()) << "round " << round << ", block " << n;
      EXPECT_TRUE(!part.ok() || is_toy_record(**part, toy_of(n), some)) << "round " << round << ", block " << n;
    }
    (*store)->check_invariants();
    first = n_flushed;
  }
  EXPECT_GT(n_flushed, 100U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ebb::store_crash_test
