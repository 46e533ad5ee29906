#include "store/cold_store_test.h"

#include <atomic>
#include <latch>
#include <thread>

namespace ebb {
namespace {

TEST(ColdStore, gives_back_from_ram_what_was_put) {
  const auto store = open_in_ram();
  EXPECT_EQ(store->get(toy_key(1)).status().code(), Code::kNotFound);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).ok());
  EXPECT_TRUE(store->find(toy_key(1).name));
  EXPECT_TRUE(gets(*store, 1));
  store->drop(toy_key(1).name);
  EXPECT_FALSE(store->find(toy_key(1).name));
  EXPECT_TRUE(store->flush().ok());
  store->check_invariants();
}

TEST(ColdStore, a_record_put_behind_is_pending_until_its_frames_were_copied) {
  const auto store = open_in_ram();
  std::latch may_copy(1);
  const ToyRecord toy = {.number = 1};
  store->put_behind(announced(toy), toy_tokens(toy), [&](std::span<std::byte> frames) {
    may_copy.wait();
    fill_toy_frames(toy, frames);
  });
  EXPECT_TRUE(store->is_pending(toy_key(1).name));
  EXPECT_EQ(store->find(toy_key(1).name), toy_body(toy));
  EXPECT_FALSE(store->touch(toy_key(1).name, toy_body(toy)));
  EXPECT_EQ(store->stats().n_pending, 1);
  may_copy.count_down();
  store->wait(toy_key(1).name);
  EXPECT_FALSE(store->is_pending(toy_key(1).name));
  EXPECT_TRUE(gets(*store, 1));
}

// Its frames are still to be read, whatever else came under its name: who waits for it must go on waiting.
TEST(ColdStore, a_record_stays_pending_when_the_same_one_is_put_by_others) {
  const auto store = open_in_ram();
  std::latch may_copy(1);
  const ToyRecord toy = {.number = 1};
  store->put_behind(announced(toy), toy_tokens(toy), [&](std::span<std::byte> frames) {
    may_copy.wait();
    fill_toy_frames(toy, frames);
  });
  ASSERT_TRUE(store->put(make_toy_record(toy)).ok());
  EXPECT_TRUE(store->is_pending(toy_key(1).name));
  may_copy.count_down();
  store->wait(toy_key(1).name);
  EXPECT_TRUE(gets(*store, 1));
}

TEST(ColdStore, waits_for_a_pending_record_that_is_asked_for) {
  const auto store = open_in_ram();
  for (std::uint64_t n = 1; n < 200; ++n) {
    put_behind(*store, {.number = n});
    EXPECT_TRUE(gets(*store, n)) << n;
  }
}

TEST(ColdStore, copies_a_name_once_however_often_it_is_put_behind) {
  const auto store = open_in_ram();
  std::atomic<int> n_filled = 0;
  const ToyRecord toy = {.number = 1};
  for (int i = 0; i < 10; ++i) {
    store->put_behind(announced(toy), toy_tokens(toy), [&](std::span<std::byte> frames) {
      ++n_filled;
      fill_toy_frames(toy, frames);
    });
  }
  EXPECT_TRUE(store->flush().ok());
  EXPECT_EQ(n_filled, 1);
}

TEST(ColdStore, keeps_longest_in_ram_what_was_touched_last) {
  const auto store = open_in_ram(2 * kOne);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).ok());
  ASSERT_TRUE(store->put(make_toy_record({.number = 2})).ok());
  EXPECT_TRUE(store->touch(toy_key(1).name, toy_body({.number = 1})));
  EXPECT_FALSE(store->touch(toy_key(1).name, toy_body({.number = 1, .variant = 1})));
  EXPECT_FALSE(store->touch(toy_key(7).name, toy_body({.number = 7})));
  ASSERT_TRUE(store->put(make_toy_record({.number = 3})).ok());
  EXPECT_TRUE(store->find(toy_key(1).name));
  EXPECT_FALSE(store->find(toy_key(2).name));
  put_behind(*store, {.number = 1});
  ASSERT_TRUE(store->put(make_toy_record({.number = 4})).ok());
  EXPECT_TRUE(store->find(toy_key(1).name));
}

TEST(ColdStore, says_so_when_no_tier_has_room_for_a_record) {
  const auto store = open_in_ram(kOne);
  EXPECT_EQ(store->put(make_toy_record({.number = 1, .n_frames = 9})).status().code(), Code::kOutOfBudget);
  put_behind(*store, {.number = 1, .n_frames = 9});
  store->wait(toy_key(1).name);
  EXPECT_FALSE(store->find(toy_key(1).name));
  EXPECT_EQ(store->stats().tier("ram").n_write_errors, 2);
  EXPECT_FALSE(store->stats().tier("ram").last_error.empty());
}

TEST(ColdStore, a_record_that_a_reader_found_damaged_is_dropped_and_the_disks_is_given) {
  FaultFileSystem system;
  const auto store = *try_open(system, 1 << 20);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).ok());
  ASSERT_TRUE(store->flush().ok());
  const RecordHandle damaged = *damaged_copy(*make_toy_record({.number = 1}), kOne - 1, std::byte{1});
  ASSERT_TRUE(store->put(damaged).ok());  // bytes of RAM that rotted
  const RecordHandle read = *store->get(toy_key(1));
  EXPECT_FALSE(is_toy_record(*read, {.number = 1}));
  store->refuse(read);
  EXPECT_EQ(store->stats().tier("ram").n_refused, 1);
  EXPECT_TRUE(gets(*store, 1));
}

TEST(ColdStore, a_sound_record_that_is_refused_all_the_same_goes_from_every_tier) {
  FaultFileSystem system;
  const auto store = *try_open(system, 1 << 20);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).ok());
  ASSERT_TRUE(store->flush().ok());
  store->refuse(*store->get(toy_key(1)));
  EXPECT_EQ(store->get(toy_key(1)).status().code(), Code::kNotFound);
}

TEST(ColdStore, gives_from_disk_what_ram_had_to_drop) {
  FaultFileSystem system;
  const auto store = *try_open(system, 2 * kOne);
  for (std::uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(store->put(make_toy_record({.number = n})).ok());
  for (std::uint64_t n = 1; n <= 20; ++n) EXPECT_TRUE(gets(*store, n)) << n;
  ASSERT_TRUE(store->flush().ok());
  EXPECT_EQ(store->stats().tier("ram").n_records, 2);
  EXPECT_EQ(store->stats().tier("disk").n_records, 20);
  EXPECT_EQ(store->stats().queued_bytes, 0U);
  store->check_invariants();
}

TEST(ColdStore, has_after_a_restart_what_was_put_before) {
  FaultFileSystem system;
  {
    const auto store = *try_open(system, 2 * kOne);
    for (std::uint64_t n = 1; n <= 20; ++n) put_behind(*store, {.number = n});
  }
  const auto store = *try_open(system, 2 * kOne);
  for (std::uint64_t n = 1; n <= 20; ++n) EXPECT_TRUE(gets(*store, n)) << n;
}

TEST(ColdStore, goes_on_in_ram_and_says_so_once_the_disk_is_full) {
  FaultFileSystem system;
  system.set_space(3 * kOne);
  const auto store = *try_open(system, 1 << 20);
  for (std::uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(store->put(make_toy_record({.number = n})).ok());
  EXPECT_EQ(store->flush().code(), Code::kIo);
  EXPECT_NE(store->stats().tier("disk").last_error.find("No space left"), std::string::npos)
      << store->stats().tier("disk").last_error;
  EXPECT_GT(store->stats().tier("disk").n_write_errors, 0);
  for (std::uint64_t n = 1; n <= 20; ++n) EXPECT_TRUE(gets(*store, n)) << n;
  // With room again, it is used again before long.
  system.set_space(1 << 20);
  for (std::uint64_t n = 21; n <= 120; ++n) ASSERT_TRUE(store->put(make_toy_record({.number = n})).ok());
  EXPECT_TRUE(store->flush().ok());
  EXPECT_GT(store->stats().tier("disk").n_records, 20);
  store->check_invariants();
}

TEST(ColdStore, a_slow_disk_makes_who_puts_wait_and_loses_nothing) {
  FaultFileSystem system;
  std::latch may_write(1);
  system.before_append([&] { may_write.wait(); });
  const auto store = *try_open(system, 2 * kOne, 4 * kOne);
  std::thread putter([&] {
    for (std::uint64_t n = 1; n <= 50; ++n) EXPECT_TRUE(store->put(make_toy_record({.number = n})).ok());
  });
  // While nothing can be written, what waits stays within its bound and can be had.
  EXPECT_LE(store->stats().queued_bytes, 4 * kOne);
  may_write.count_down();
  putter.join();
  for (std::uint64_t n = 1; n <= 50; ++n) EXPECT_TRUE(gets(*store, n)) << n;
}

TEST(ColdStore, what_is_dropped_while_it_is_written_is_gone) {
  FaultFileSystem system;
  std::latch is_writing(1);
  std::latch may_write(1);
  std::atomic<int> n_appends = 0;
  system.before_append([&] {
    if (n_appends++ > 0) return;
    is_writing.count_down();
    may_write.wait();
  });
  const auto store = *try_open(system, 1 << 20);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).ok());
  is_writing.wait();
  store->drop(toy_key(1).name);
  may_write.count_down();
  EXPECT_TRUE(store->flush().ok());
  EXPECT_FALSE(store->find(toy_key(1).name));
  EXPECT_EQ(store->get(toy_key(1)).status().code(), Code::kNotFound);
}

TEST(ColdStore, another_models_record_is_refused_in_every_tier) {
  FaultFileSystem system;
  const auto store = *try_open(system, 1 << 20);
  ASSERT_TRUE(store->put(make_toy_record({.number = 1})).ok());
  ASSERT_TRUE(store->flush().ok());
  RecordKey foreign = toy_key(1);
  foreign.model = {9, 9};
  EXPECT_EQ(store->get(foreign).status().code(), Code::kDamaged);
  EXPECT_EQ(store->get(toy_key(1)).status().code(), Code::kNotFound);
  EXPECT_EQ(store->stats().tier("ram").n_refused, 1);
  EXPECT_EQ(store->stats().tier("disk").n_refused, 1);
}

TEST(ColdStore, serves_many_threads_at_once) {
  FaultFileSystem system;
  const auto store = *try_open(system, 4 * kOne, 8 * kOne);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 300; ++i) {
        const std::uint64_t n = 1 + (i * 7 + t * 13) % 60;
        switch ((i + t) % 5) {
          case 0: EXPECT_TRUE(store->put(make_toy_record({.number = n})).ok()); break;
          case 1: put_behind(*store, {.number = n}); break;
          case 2: {
            const auto fetch = store->fetch({{toy_key(n), {0}}, {toy_key(n + 1), {}}});
            if (i % 2 == 0) fetch->wait();
            break;
          }
          case 3: store->wait(toy_key(n).name); break;
          default: break;
        }
        const Result<RecordHandle> record = store->get(toy_key(n));
        EXPECT_TRUE(record.ok() ? is_toy_record(**record, {.number = n}) : record.status().code() == Code::kNotFound);
        if (i % 50 == 0) store->drop(toy_key(n).name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(store->flush().ok());
  store->check_invariants();
}

}  // namespace
}  // namespace ebb
