// Reads of some frames of a record, and records that change places or go while they are read.
#include <algorithm>
#include <array>

#include "store/disk_tier_test.h"

namespace ebb {
namespace {

// Frames that lie apart, and some that touch.
constexpr std::array<std::int32_t, 4> kSomeFrames = {1, 4, 5, 6};

ToyRecord many_frames(std::uint64_t number) { return {.number = number, .n_frames = 8, .bytes_per_frame = 96}; }

TEST(DiskTier, reads_of_a_record_only_the_frames_that_are_asked_for) {
  FaultFileSystem system;
  DiskOptions options = small_options();
  options.max_bytes = options.segment_bytes = 1 << 20;
  const auto tier = open_tier(system, options);
  ASSERT_TRUE(tier->put(make_toy_record(many_frames(1))).ok());
  const std::int64_t n_reads = system.n_reads();
  const Result<RecordHandle> part = tier->get(toy_key(1), kSomeFrames);
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_EQ(system.n_reads(), n_reads + 3) << "the front, a frame, and three that touch";
  EXPECT_FALSE((*part)->is_whole());
  EXPECT_LT((*part)->bytes().size(), make_toy_record(many_frames(1))->bytes().size() - 3 * 96);
  EXPECT_TRUE(is_toy_record(**part, many_frames(1), kSomeFrames));
  EXPECT_TRUE(is_toy_record(**part, many_frames(1), std::vector<std::int32_t>{1, 5}));
  EXPECT_EQ(tier->get(toy_key(1), {}).value()->bytes().size(), make_toy_record(many_frames(1))->bytes().size());
  EXPECT_EQ(system.n_reads(), n_reads + 4) << "a whole record is one read";
}

TEST(DiskTier, a_damaged_frame_fails_only_the_reads_that_touch_it_and_then_the_record_goes) {
  FaultFileSystem system;
  DiskOptions options = small_options();
  options.max_bytes = options.segment_bytes = 1 << 20;
  { ASSERT_TRUE(open_tier(system, options)->put(make_toy_record(many_frames(1))).ok()); }
  std::vector<std::byte> bytes = system.bytes(segment_path(1));
  bytes[kSegmentHeaderBytes + make_toy_record(many_frames(1))->header().frames_offset() + 3 * 96 + 7] ^= std::byte{1};
  system.set_bytes(segment_path(1), bytes);
  const auto tier = open_tier(system, options);
  const Result<RecordHandle> others = tier->get(toy_key(1), kSomeFrames);
  ASSERT_TRUE(others.ok());
  EXPECT_TRUE(is_toy_record(**others, many_frames(1), kSomeFrames));
  EXPECT_EQ(tier->stats().n_refused, 0);
  EXPECT_FALSE(tier->find(toy_key(1).name)->is_verified) << "it was not read whole";
  EXPECT_EQ(tier->get(toy_key(1), std::vector<std::int32_t>{2, 3}).status().code(), Code::kDamaged);
  EXPECT_EQ(tier->get(toy_key(1), kSomeFrames).status().code(), Code::kNotFound);
  EXPECT_EQ(tier->stats().n_refused, 1);
  tier->check_invariants();
}

TEST(DiskTier, a_flipped_bit_anywhere_in_a_record_yields_the_frames_that_are_asked_for_or_an_error) {
  FaultFileSystem system;
  DiskOptions options = small_options();
  options.max_bytes = options.segment_bytes = 1 << 20;
  { ASSERT_TRUE(open_tier(system, options)->put(make_toy_record(many_frames(1))).ok()); }
  const std::vector<std::byte> sound = system.bytes(segment_path(1));
  for (std::size_t bit = kSegmentHeaderBytes * 8; bit < sound.size() * 8; bit += 3) {
    std::vector<std::byte> bytes = sound;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    system.set_bytes(segment_path(1), bytes);
    const auto tier = open_tier(system, options);
    const Result<RecordHandle> part = tier->get(toy_key(1), kSomeFrames);
    const auto frame = static_cast<std::int32_t>(
        (bit / 8 - kSegmentHeaderBytes - make_toy_record(many_frames(1))->header().frames_offset()) / 96);
    const bool in_frames = bit / 8 >= kSegmentHeaderBytes + make_toy_record(many_frames(1))->header().frames_offset();
    EXPECT_EQ(part.ok(), in_frames && std::ranges::count(kSomeFrames, frame) == 0) << bit;
    EXPECT_TRUE(!part.ok() || is_toy_record(**part, many_frames(1), kSomeFrames)) << bit;
  }
}

TEST(DiskTier, a_record_of_fewer_frames_than_are_asked_for_is_refused) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 1);
  EXPECT_EQ(tier->get(toy_key(1), kSomeFrames).status().code(), Code::kDamaged);
  EXPECT_FALSE(tier->find(toy_key(1).name));
}

TEST(DiskTier, other_bytes_under_a_name_take_its_place_and_keep_it_after_a_restart) {
  FaultFileSystem system;
  const ToyRecord other = {.number = 1, .variant = 7};
  {
    const auto tier = open_tier(system);
    put(*tier, 1, 2);
    tier->drop(toy_key(1).name);
    ASSERT_TRUE(tier->put(make_toy_record(other)).ok());
    EXPECT_EQ(tier->find(toy_key(1).name)->body, toy_body(other));
    EXPECT_TRUE(is_toy_record(*tier->get(toy_key(1), {}).value(), other));
  }
  const auto tier = open_tier(system);
  EXPECT_EQ(tier->find(toy_key(1).name)->body, toy_body(other)) << "the older ones lie there too, and were dropped";
  EXPECT_TRUE(is_toy_record(*tier->get(toy_key(1), {}).value(), other));
}

// The file goes while somebody who looked up a record in it is about to open it.
TEST(DiskTier, a_record_whose_segment_goes_at_this_moment_is_a_miss_and_no_damage) {
  FaultFileSystem system;
  const auto tier = open_tier(system);
  put(*tier, 1, 15);
  std::int32_t n_removed = 0;
  system.after_remove([&] {
    ++n_removed;
    EXPECT_EQ(tier->get(toy_key(2), {}).status().code(), Code::kNotFound);
  });
  put(*tier, 16, 16);
  EXPECT_EQ(n_removed, 1);
  EXPECT_EQ(tier->stats().n_refused, 0);
  EXPECT_TRUE(tier->stats().last_error.empty()) << tier->stats().last_error;
  tier->check_invariants();
}

TEST(DiskTier, a_record_that_is_dropped_while_it_is_moved_stays_dropped) {
  FaultFileSystem system;
  DiskOptions options = small_options();
  options.segment_bytes = 8 * kOne + kSegmentHeaderBytes;
  options.max_bytes = 4 * options.segment_bytes;
  const auto tier = open_tier(system, options);
  put(*tier, 1, 31);
  EXPECT_TRUE(gets(*tier, 1));
  system.after_remove([&] { tier->drop(toy_key(1).name); });
  put(*tier, 32, 32);
  EXPECT_TRUE(system.bytes(segment_path(1)).empty());
  EXPECT_FALSE(tier->find(toy_key(1).name));
  tier->check_invariants();
}

// Format 2 had segments of version 1.
TEST(DiskTier, segments_of_an_earlier_format_are_passed_over_with_one_line_and_go_when_room_is_needed) {
  FaultFileSystem system;
  { put(*open_tier(system), 1, 8); }
  for (const std::uint64_t segment : {1, 2}) {
    std::vector<std::byte> bytes = system.bytes(segment_path(segment));
    bytes[8] = std::byte{1};
    system.set_bytes(segment_path(segment), bytes);
  }
  const auto tier = open_tier(system);
  EXPECT_EQ(tier->stats().n_records, 0);
  EXPECT_EQ(tier->stats().n_refused, 0);
  EXPECT_TRUE(tier->stats().last_error.empty()) << tier->stats().last_error;
  EXPECT_NE(tier->stats().notice.find("an earlier ebb"), std::string::npos) << tier->stats().notice;
  EXPECT_EQ(tier->stats().bytes, 2 * (4 * kOne + kSegmentHeaderBytes)) << "counted under the cap";
  put(*tier, 11, 17);
  EXPECT_FALSE(system.bytes(segment_path(1)).empty()) << "there is room yet";
  put(*tier, 18, 25);
  EXPECT_TRUE(system.bytes(segment_path(1)).empty());
  EXPECT_TRUE(system.bytes(segment_path(2)).empty());
  for (std::uint64_t n = 11; n <= 25; ++n) EXPECT_TRUE(gets(*tier, n)) << n;
  tier->check_invariants();
}

TEST(DiskTier, a_segment_of_a_later_version_is_left_alone) {
  FaultFileSystem system;
  { put(*open_tier(system), 1, 1); }
  std::vector<std::byte> bytes = system.bytes(segment_path(1));
  bytes[8] = std::byte{9};
  system.set_bytes(segment_path(1), bytes);
  {
    const auto tier = open_tier(system);
    EXPECT_NE(tier->stats().last_error.find("version 9"), std::string::npos) << tier->stats().last_error;
    put(*tier, 2, 100);
  }
  EXPECT_EQ(system.bytes(segment_path(1)), bytes);
}

}  // namespace
}  // namespace ebb
