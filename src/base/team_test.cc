#include "base/team.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(Team, does_each_part_once_with_any_number_of_threads) {
  for (const int n_threads : {1, 2, 3, 8}) {
    Team team(n_threads);
    EXPECT_EQ(team.n_threads(), n_threads);
    for (const int n_parts : {0, 1, 2, 7, 100}) {
      std::vector<int> done(static_cast<std::size_t>(n_parts));
      team.run(n_parts, [&](std::int32_t part) { ++done[static_cast<std::size_t>(part)]; });
      EXPECT_EQ(done, std::vector<int>(static_cast<std::size_t>(n_parts), 1)) << n_threads;
    }
  }
}

// What one piece wrote is read by the next, as a graph's products are; a part of the wrong piece would see the other's numbers.
TEST(Team, pieces_follow_one_another_and_none_is_mistaken_for_another) {
  Team team(3);
  std::vector<std::int64_t> values(6, 0);
  for (std::int64_t piece = 1; piece <= 20000; ++piece) {
    const int n_parts = static_cast<int>(piece % 6) + 1;
    team.run(n_parts, [&values, n_parts, piece](std::int32_t part) {
      for (std::size_t i = static_cast<std::size_t>(part); i < values.size(); i += static_cast<std::size_t>(n_parts)) {
        values[i] += piece;
      }
    });
    for (const std::int64_t value : values) ASSERT_EQ(value, piece * (piece + 1) / 2);
  }
}

// Long enough that threads which look for work fall asleep.
void let_pass() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

TEST(Team, those_asleep_are_woken_and_a_caller_asleep_too) {
  Team team(2);
  for (int i = 0; i < 50; ++i) {
    let_pass();
    std::atomic<int> n_met = 0;
    // Each waits for the other: one thread alone would never end.
    team.run(2, [&](std::int32_t part) {
      ++n_met;
      while (n_met.load() < 2) std::this_thread::yield();
      if (part == i % 2) let_pass();
    });
  }
}

TEST(Team, who_is_kept_from_running_holds_up_no_part_that_it_has_not_begun) {
  Team team(2);
  std::atomic<bool> is_free = false;
  std::atomic<int> n_others = 0;
  // Whoever takes part 0 is stopped until the other has done all of the rest.
  team.run(50, [&](std::int32_t part) {
    if (part == 0) {
      while (!is_free.load()) std::this_thread::yield();
      return;
    }
    if (++n_others == 49) is_free = true;
  });
  EXPECT_EQ(n_others, 49);
}

}  // namespace
}  // namespace ebb
