#include "cache/frame_pool.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

std::vector<FrameIndex> acquire(FramePool& pool, std::size_t n_frames) {
  std::vector<FrameIndex> frames(n_frames, FrameIndex(-1));
  EXPECT_TRUE(pool.acquire(frames).ok());
  return frames;
}

TEST(FramePool, hands_out_each_frame_once) {
  FramePool pool(50);
  const auto frames = acquire(pool, 50);
  const std::set<FrameIndex> distinct(frames.begin(), frames.end());
  EXPECT_EQ(distinct.size(), 50U);
  EXPECT_EQ(*distinct.begin(), FrameIndex(0));
  EXPECT_EQ(*distinct.rbegin(), FrameIndex(49));
  EXPECT_EQ(pool.n_free(), 0);
  EXPECT_EQ(pool.n_hot(), 50);
  pool.check_invariants();
}

TEST(FramePool, takes_nothing_when_it_has_too_few_and_says_how_many) {
  FramePool pool(5);
  const auto held = acquire(pool, 3);
  std::vector<FrameIndex> wanted(3, FrameIndex(-1));
  const Status status = pool.acquire(wanted);
  EXPECT_EQ(status.code(), Code::kOutOfBudget);
  EXPECT_THAT(status.message(), testing::HasSubstr("3 frames needed, 2 of 5 free"));
  EXPECT_THAT(wanted, testing::Each(FrameIndex(-1)));
  EXPECT_EQ(pool.n_free(), 2);
  pool.check_invariants();
}

TEST(FramePool, acquires_no_frames_when_asked_for_none) {
  FramePool pool(1);
  EXPECT_TRUE(pool.acquire({}).ok());
  EXPECT_EQ(pool.n_hot(), 0);
}

TEST(FramePool, remembers_the_most_that_were_ever_in_use) {
  FramePool pool(10);
  pool.release(acquire(pool, 7));
  EXPECT_EQ(pool.n_hot(), 0);
  EXPECT_EQ(pool.peak_hot(), 7);
  const auto held = acquire(pool, 3);
  EXPECT_EQ(pool.peak_hot(), 7);
}

TEST(FramePool, lends_what_lies_beyond_its_limit_once_and_has_it_back) {
  FramePool pool(10);
  pool.set_limit(6);
  {
    LentFrames first(pool);
    first.set(3);
    LentFrames second(pool);
    second.set(3);
    EXPECT_EQ(first.n_frames() + second.n_frames(), 4) << "of the 4 beyond the limit";
    EXPECT_EQ(pool.n_in_force(), 10);
    first.set(1);
    second.set(3);
    EXPECT_EQ(second.n_frames(), 3) << "what the first gave back";
    const auto held = acquire(pool, 10);
    second.set(0);
    EXPECT_EQ(pool.n_in_force(), 7);
    EXPECT_EQ(pool.n_over(), 3);
    EXPECT_EQ(pool.n_free(), 0);
    pool.set_limit(10);
    EXPECT_EQ(pool.n_in_force(), 10) << "never more than there are";
    pool.set_limit(6);
    pool.release(held);
  }
  EXPECT_EQ(pool.n_in_force(), 6);
  EXPECT_EQ(pool.n_free(), 6);
}

TEST(FramePool, gives_no_frame_beyond_its_limit_and_takes_none_back) {
  FramePool pool(10);
  const auto held = acquire(pool, 6);
  pool.set_limit(4);
  EXPECT_EQ(pool.n_hot(), 6);
  EXPECT_EQ(pool.n_free(), 0);
  pool.release(std::span(held).first(3));
  EXPECT_EQ(pool.n_free(), 1);
  std::vector<FrameIndex> wanted(2, FrameIndex(-1));
  EXPECT_THAT(pool.acquire(wanted).message(), testing::HasSubstr("2 frames needed, 1 of 4 free"));
  pool.set_limit(10);
  EXPECT_TRUE(pool.acquire(wanted).ok());
  pool.check_invariants();
}

TEST(FramePool, shuffles_only_the_order_of_free_frames) {
  FramePool pool(100);
  FramePool shuffled(100);
  shuffled.shuffle_free(5);
  shuffled.check_invariants();
  const auto in_order = acquire(pool, 100);
  const auto frames = acquire(shuffled, 100);
  EXPECT_NE(frames, in_order);
  EXPECT_THAT(frames, testing::UnorderedElementsAreArray(in_order));

  FramePool again(100);
  again.shuffle_free(5);
  EXPECT_EQ(acquire(again, 100), frames);
}

TEST(FramePool, counts_a_shared_frame_once_and_frees_it_with_its_last_user) {
  FramePool pool(3);
  const auto frames = acquire(pool, 2);
  pool.share(frames);
  EXPECT_EQ(pool.n_users(frames[0]), 2);
  EXPECT_EQ(pool.n_hot(), 2);
  pool.release(frames);
  EXPECT_EQ(pool.n_hot(), 2);
  pool.check_invariants();
  pool.release(frames);
  EXPECT_EQ(pool.n_users(frames[0]), 0);
  EXPECT_EQ(pool.n_hot(), 0);
  EXPECT_EQ(pool.peak_hot(), 2);
  pool.check_invariants();
}

TEST(FramePool, agrees_with_a_naive_twin_over_random_operations) {
  constexpr std::int32_t kFrames = 40;
  std::mt19937_64 random(7);
  FramePool pool(kFrames);
  std::vector<FrameIndex> twin_uses;  // a frame as often as it has users
  const auto n_in_use = [&] { return std::set<FrameIndex>(twin_uses.begin(), twin_uses.end()).size(); };
  std::size_t twin_peak = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t n = random() % 13;
    const std::size_t n_before = n_in_use();
    const std::uint64_t choice = random() % 5;
    std::shuffle(twin_uses.begin(), twin_uses.end(), random);
    const std::size_t n_some = std::min(n, twin_uses.size());
    if (choice < 2) {
      std::vector<FrameIndex> frames(n);
      const bool fits = n_before + n <= kFrames;
      ASSERT_EQ(pool.acquire(frames).ok(), fits);
      if (fits) twin_uses.insert(twin_uses.end(), frames.begin(), frames.end());
      ASSERT_EQ(n_in_use(), n_before + (fits ? n : 0));
    } else if (choice == 2) {
      const std::vector<FrameIndex> frames(twin_uses.end() - static_cast<std::ptrdiff_t>(n_some), twin_uses.end());
      pool.share(frames);
      twin_uses.insert(twin_uses.end(), frames.begin(), frames.end());
    } else {
      pool.release(std::span(twin_uses).last(n_some));
      twin_uses.resize(twin_uses.size() - n_some);
    }
    if (i % 50 == 0) pool.shuffle_free(random());
    twin_peak = std::max(twin_peak, n_in_use());
    ASSERT_EQ(static_cast<std::size_t>(pool.n_hot()), n_in_use());
    for (std::int32_t f = 0; f < kFrames; ++f) {
      ASSERT_EQ(pool.n_users(FrameIndex(f)), std::ranges::count(twin_uses, FrameIndex(f)));
    }
    ASSERT_EQ(static_cast<std::size_t>(pool.peak_hot()), twin_peak);
    pool.check_invariants();
  }
}

TEST(FramePoolDeathTest, stops_on_frames_that_are_not_in_use) {
  FramePool pool(3);
  const auto frames = acquire(pool, 1);
  const FrameIndex free((frames[0].value() + 1) % 3);
  const std::vector<FrameIndex> twice = {frames[0], frames[0]};
  EXPECT_DEATH(pool.release({&free, 1}), "released, and it is not in use");
  EXPECT_DEATH(pool.release(twice), "released, and it is not in use");
  const FrameIndex foreign(3);
  EXPECT_DEATH(pool.release({&foreign, 1}), "frame 3 of 3");
  EXPECT_DEATH(pool.share({&free, 1}), "shared, and it is not in use");
  EXPECT_DEATH(FramePool(0), "0 frames");
}

}  // namespace
}  // namespace ebb
