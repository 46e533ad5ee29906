#include "store/disk_tier_test.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace ebb {
namespace {

TEST(DiskTier, gives_back_what_was_put_now_and_after_a_restart) {
  FaultFileSystem system;
  {
    const auto tier = open_tier(system);
    put(*tier, 1, 10);
    for (std::uint64_t n = 1; n <= 10; ++n) EXPECT_TRUE(gets(*tier, n)) << n;
    EXPECT_EQ(tier->get(toy_key(11), {}).status().code(), Code::kNotFound);
    tier->check_invariants();
  }
  const auto tier = open_tier(system);
  EXPECT_EQ(tier->stats().n_records, 10);
  for (std::uint64_t n = 1; n <= 10; ++n) EXPECT_TRUE(gets(*tier, n)) << n;
  tier->check_invariants();
}

TEST(DiskTier, writes_a_name_once) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 1);
  const std::int64_t n_appends = system.n_appends();
  put(*tier, 1, 1);
  EXPECT_EQ(system.n_appends(), n_appends);
}

TEST(DiskTier, drops_the_oldest_segments_to_stay_under_its_cap) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  for (std::uint64_t n = 1; n <= 100; ++n) {
    put(*tier, n, n);
    EXPECT_LE(tier->stats().bytes, small_options().max_bytes);
  }
  tier->check_invariants();
  EXPECT_FALSE(tier->find(toy_key(1).name));
  EXPECT_TRUE(gets(*tier, 100));
  EXPECT_GE(tier->stats().n_records, 12);
  EXPECT_EQ(tier->stats().n_records + tier->stats().n_dropped, 100);
  EXPECT_EQ(tier->take_lost().size(), static_cast<std::size_t>(tier->stats().n_dropped));
}

TEST(DiskTier, what_is_read_outlives_the_segment_it_was_written_to) {
  FaultFileSystem system;
  // Eight records fill a segment, so that one of them is less than a quarter.
  DiskOptions options = small_options();
  options.segment_bytes = 8 * kOne + kSegmentHeaderBytes;
  options.max_bytes = 4 * options.segment_bytes;
  const auto tier = open_tier(system, options);
  for (std::uint64_t n = 1; n <= 300; ++n) {
    put(*tier, n, n);
    EXPECT_TRUE(gets(*tier, 1)) << n;
    EXPECT_LE(tier->stats().bytes, options.max_bytes);
  }
  EXPECT_FALSE(tier->find(toy_key(2).name));
  tier->check_invariants();
}

TEST(DiskTier, moves_what_lives_out_of_a_segment_that_is_mostly_dead) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 4);
  for (std::uint64_t n = 2; n <= 4; ++n) tier->drop(toy_key(n).name);
  put(*tier, 5, 9);
  const std::vector<std::string> paths = system.paths();
  EXPECT_EQ(std::ranges::count(paths, segment_path(1)), 0);
  for (const std::uint64_t n : {1, 5, 6, 7, 8, 9}) EXPECT_TRUE(gets(*tier, n)) << n;
  for (const std::uint64_t n : {2, 3, 4}) EXPECT_FALSE(tier->find(toy_key(n).name)) << n;
  tier->check_invariants();
}

TEST(DiskTier, many_restarts_do_not_leave_many_small_files) {
  FaultFileSystem system;
  DiskOptions options = small_options();
  options.max_bytes = 400 * kOne;
  options.segment_bytes = 100 * kOne;
  for (std::uint64_t n = 1; n <= 100; ++n) put(*open_tier(system, options), n, n);
  EXPECT_LT(system.paths().size(), 25U);
  const auto tier = open_tier(system, options);
  for (std::uint64_t n = 1; n <= 100; ++n) EXPECT_TRUE(gets(*tier, n)) << n;
}

TEST(DiskTier, reads_while_segments_are_moved_and_dropped_never_take_a_record_for_damaged) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  std::atomic<std::uint64_t> newest = 0;
  std::vector<std::thread> readers;
  for (std::uint64_t t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      for (std::uint64_t i = t; newest < 2000; ++i) {
        const std::uint64_t n = newest - std::min<std::uint64_t>(newest, i % 20);
        const Result<RecordHandle> record = tier->get(toy_key(n), {});
        EXPECT_TRUE(record.ok() ? is_toy_record(**record, {.number = n}) : record.status().code() == Code::kNotFound);
      }
    });
  }
  for (std::uint64_t n = 1; n <= 2000; ++n) {
    EXPECT_TRUE(tier->put(make_toy_record({.number = n})).ok());
    if (n % 4 != 0) tier->drop(toy_key(n - 1).name);  // leaves segments of which little lives
    newest = n;
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(tier->stats().n_refused, 0);
  tier->check_invariants();
}

TEST(DiskTier, a_flipped_bit_anywhere_in_a_file_yields_the_record_or_an_error) {
  FaultFileSystem system;
  { put(*open_tier(system), 1, 2); }
  const std::vector<std::byte> sound = system.bytes(segment_path(1));
  for (std::size_t bit = 0; bit < sound.size() * 8; bit += 5) {
    std::vector<std::byte> bytes = sound;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    system.set_bytes(segment_path(1), bytes);
    const auto tier = open_tier(system);
    std::int32_t n_sound = 0;
    for (std::uint64_t n = 1; n <= 2; ++n) {
      const Result<RecordHandle> record = tier->get(toy_key(n), {});
      EXPECT_TRUE(!record.ok() || is_toy_record(**record, {.number = n})) << bit;
      n_sound += record.ok() ? 1 : 0;
    }
    // Damage costs the record that it hit, and all only where it hit the segment's own header.
    EXPECT_EQ(n_sound, bit / 8 < kSegmentHeaderBytes ? 0 : 1) << bit;
    tier->check_invariants();
  }
}

TEST(DiskTier, a_torn_end_is_passed_over_wherever_it_was_torn) {
  FaultFileSystem system;
  { put(*open_tier(system), 1, 3); }
  const std::vector<std::byte> whole = system.bytes(segment_path(1));
  for (std::size_t n_bytes = 0; n_bytes <= whole.size(); n_bytes += 16) {
    for (const std::string& path : system.paths()) system.erase(path);
    system.set_bytes(segment_path(1), {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n_bytes)});
    const auto tier = open_tier(system);
    const std::size_t n_whole = n_bytes < kSegmentHeaderBytes ? 0 : (n_bytes - kSegmentHeaderBytes) / kOne;
    EXPECT_EQ(tier->stats().n_records, static_cast<std::int64_t>(n_whole)) << n_bytes;
    for (std::uint64_t n = 1; n <= n_whole; ++n) EXPECT_TRUE(gets(*tier, n)) << n_bytes;
    put(*tier, 4, 4);
    EXPECT_TRUE(gets(*tier, 4));
    tier->check_invariants();
  }
}

TEST(DiskTier, records_behind_a_damaged_header_are_found) {
  FaultFileSystem system;
  { put(*open_tier(system), 1, 3); }
  std::vector<std::byte> bytes = system.bytes(segment_path(1));
  std::fill_n(bytes.begin() + kSegmentHeaderBytes, kRecordHeaderBytes, std::byte{0});
  system.set_bytes(segment_path(1), bytes);
  const auto tier = open_tier(system);
  EXPECT_FALSE(tier->find(toy_key(1).name));
  EXPECT_TRUE(gets(*tier, 2));
  EXPECT_TRUE(gets(*tier, 3));
}

TEST(DiskTier, of_two_records_of_one_name_the_sound_one_counts_whichever_came_first) {
  for (const std::uint64_t damaged : {1, 2}) {
    FaultFileSystem system;
    for (const std::uint64_t segment : {1, 2}) {
      const auto header = encode_segment_header(segment);
      std::vector<std::byte> bytes(header.begin(), header.end());
      const RecordHandle record = make_toy_record({.number = 7});
      bytes.insert(bytes.end(), record->bytes().begin(), record->bytes().end());
      if (segment == damaged) bytes.back() ^= std::byte{1};
      system.set_bytes(segment_path(segment), std::move(bytes));
    }
    const auto tier = open_tier(system);
    EXPECT_EQ(tier->stats().n_records, 1);
    EXPECT_TRUE(gets(*tier, 7)) << damaged;
    tier->check_invariants();
  }
}

TEST(DiskTier, a_write_that_was_torn_leaves_no_bytes_behind) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 2);
  system.set_space(tier->stats().bytes + kOne / 2);
  EXPECT_EQ(tier->put(make_toy_record({.number = 3})).code(), Code::kIo);
  EXPECT_EQ(system.bytes(segment_path(1)).size(), tier->stats().bytes);
  EXPECT_EQ(tier->stats().bytes, 2 * kOne + kSegmentHeaderBytes);
}

TEST(DiskTier, a_deleted_file_is_one_message_and_a_miss_for_each_of_its_records) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 8);
  system.erase(segment_path(1));
  EXPECT_FALSE(tier->get(toy_key(1), {}).ok());
  EXPECT_NE(tier->stats().last_error.find(segment_path(1)), std::string::npos) << tier->stats().last_error;
  for (std::uint64_t n = 2; n <= 4; ++n) EXPECT_EQ(tier->get(toy_key(n), {}).status().code(), Code::kNotFound) << n;
  for (std::uint64_t n = 5; n <= 8; ++n) EXPECT_TRUE(gets(*tier, n)) << n;
  EXPECT_EQ(tier->stats().n_refused, 1);
  put(*tier, 9, 60);
  tier->check_invariants();
}

TEST(DiskTier, a_record_that_is_read_where_another_lies_is_refused) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 2);
  // The index is right about where record 1 was; somebody else's file lies there now.
  std::vector<std::byte> bytes = system.bytes(segment_path(1));
  std::copy_n(bytes.begin() + kSegmentHeaderBytes + static_cast<std::ptrdiff_t>(kOne), kOne,
              bytes.begin() + kSegmentHeaderBytes);
  system.set_bytes(segment_path(1), bytes);
  EXPECT_EQ(tier->get(toy_key(1), {}).status().code(), Code::kDamaged);
  EXPECT_FALSE(tier->find(toy_key(1).name));
  EXPECT_TRUE(gets(*tier, 2));
}

TEST(DiskTier, a_full_disk_is_said_once_and_tried_again_after_a_while) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 2);
  system.set_space(0);
  std::int64_t n_failed = 0;
  const std::int64_t n_appends = system.n_appends();
  for (std::uint64_t n = 3; n <= 40; ++n) n_failed += tier->put(make_toy_record({.number = n})).ok() ? 0 : 1;
  EXPECT_EQ(n_failed, 38);
  EXPECT_EQ(system.n_appends(), n_appends + 1);
  EXPECT_EQ(tier->stats().n_write_errors, 38);
  EXPECT_NE(tier->stats().last_error.find("No space left"), std::string::npos) << tier->stats().last_error;
  EXPECT_EQ(tier->sync().code(), Code::kIo);
  EXPECT_TRUE(tier->stats().writing_off);
  EXPECT_TRUE(gets(*tier, 1));
  system.set_space(1 << 20);
  for (std::uint64_t n = 41; n <= 100; ++n) (void)tier->put(make_toy_record({.number = n}));
  EXPECT_TRUE(gets(*tier, 100));
  EXPECT_FALSE(tier->stats().writing_off);
  EXPECT_TRUE(tier->sync().ok());
  tier->check_invariants();
}

TEST(DiskTier, a_disk_that_is_full_before_the_cap_makes_the_oldest_go) {
  FaultFileSystem system;
  system.set_space(10 * kOne);
  const auto tier = open_tier(system);
  put(*tier, 1, 50);
  EXPECT_LE(tier->stats().bytes, 10 * kOne);
  EXPECT_GE(tier->stats().n_records, 5);
  EXPECT_EQ(tier->stats().n_write_errors, 0);
  for (std::uint64_t n = 47; n <= 50; ++n) EXPECT_TRUE(gets(*tier, n)) << n;
  tier->check_invariants();
}

TEST(DiskTier, a_read_only_folder_serves_what_is_in_it) {
  FaultFileSystem system;
  { put(*open_tier(system), 1, 3); }
  system.set_read_only(true);
  const auto tier = open_tier(system);
  EXPECT_NE(tier->stats().last_error.find("Read-only"), std::string::npos) << tier->stats().last_error;
  EXPECT_TRUE(gets(*tier, 2));
  EXPECT_EQ(tier->put(make_toy_record({.number = 4})).code(), Code::kIo);
  EXPECT_EQ(tier->sync().code(), Code::kIo);
}

TEST(DiskTier, a_second_owner_of_a_folder_is_refused_in_words) {
  FaultFileSystem system;
  auto tier = open_tier(system);
  const auto second = DiskTier::open(small_options(), system);
  EXPECT_EQ(second.status().code(), Code::kIo);
  EXPECT_NE(second.status().message().find("another process"), std::string::npos) << second.status().message();
  tier.reset();
  EXPECT_TRUE(DiskTier::open(small_options(), system).ok());
}

TEST(DiskTier, refuses_a_record_too_large_for_its_cap) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  EXPECT_EQ(tier->put(make_toy_record({.number = 1, .n_frames = 100})).code(), Code::kOutOfBudget);
  EXPECT_EQ(tier->stats().n_write_errors, 0);
}

TEST(DiskTier, syncs_as_often_as_its_policy_says) {
  for (const SyncPolicy policy : {SyncPolicy::kOnClose, SyncPolicy::kEveryRecord, SyncPolicy::kNever}) {
    FaultFileSystem system;
    DiskOptions options = small_options();
    options.sync = policy;
    {
      const auto tier = open_tier(system, options);
      put(*tier, 1, 3);
      EXPECT_EQ(system.n_syncs(), policy == SyncPolicy::kEveryRecord ? 3 : 0);
      EXPECT_TRUE(tier->sync().ok());
      EXPECT_EQ(system.n_syncs(), policy == SyncPolicy::kEveryRecord ? 4 : policy == SyncPolicy::kOnClose ? 1 : 0);
    }
    EXPECT_EQ(system.n_syncs() > 0, policy != SyncPolicy::kNever);
  }
}

TEST(DiskTier, a_power_failure_takes_nothing_that_was_synced) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    FaultFileSystem system(seed);
    {
      const auto tier = open_tier(system);
      put(*tier, 1, 6);
      ASSERT_TRUE(tier->sync().ok());
      put(*tier, 7, 7 + seed % 5);
      system.power_off();
    }
    system.power_on();
    const auto tier = open_tier(system);
    for (std::uint64_t n = 1; n <= 6; ++n) EXPECT_TRUE(gets(*tier, n)) << seed << " " << n;
    for (std::uint64_t n = 7; n <= 11; ++n) {
      const Result<RecordHandle> record = tier->get(toy_key(n), {});
      EXPECT_TRUE(!record.ok() || is_toy_record(**record, {.number = n})) << seed << " " << n;
    }
    tier->check_invariants();
  }
}

}  // namespace
}  // namespace ebb
