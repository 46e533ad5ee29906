#include "store/record.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "store/toy_record.h"

namespace ebb {
namespace {

Result<RecordHandle> open_bytes(std::span<const std::byte> bytes) {
  RecordBytes copy(bytes.size());
  std::ranges::copy(bytes, copy.bytes().begin());
  return EncodedRecord::open(std::move(copy));
}

TEST(Record, comes_back_as_it_was_made) {
  for (const ToyRecord toy : {ToyRecord{.number = 9}, ToyRecord{.number = 10, .n_frames = 5, .bytes_per_frame = 1000},
                              ToyRecord{.number = 11, .n_frames = 0}}) {
    const RecordHandle made = make_toy_record(toy);
    EXPECT_TRUE(is_toy_record(*made, toy));
    const Result<RecordHandle> back = open_bytes(made->bytes());
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ((*back)->header(), made->header());
    EXPECT_EQ((*back)->header().n_tokens, 3);
    EXPECT_TRUE((*back)->verify().ok());
    EXPECT_TRUE(is_toy_record(**back, toy));
  }
}

TEST(Record, begins_and_ends_its_parts_on_multiples_of_64_bytes) {
  const RecordHandle record = make_toy_record({.n_frames = 3, .bytes_per_frame = 100});
  EXPECT_EQ(record->header().frames_offset(), 256U);
  EXPECT_EQ(record->bytes().size(), 256U + 320U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record->bytes().data()) % kRecordAlignment, 0U);
}

TEST(Record, gives_its_frames_one_by_one_and_in_order) {
  const RecordHandle record = make_toy_record({.n_frames = 4, .bytes_per_frame = 96});
  std::int32_t n_frames = 0;
  EXPECT_TRUE(record
                  ->copy_frames([&](std::int32_t frame, std::span<const std::byte> bytes) {
                    EXPECT_EQ(frame, n_frames++);
                    EXPECT_EQ(bytes.size(), 96U);
                  })
                  .ok());
  EXPECT_EQ(n_frames, 4);
}

TEST(Record, copies_its_frames_to_scattered_places) {
  const ToyRecord toy = {.n_frames = 3, .bytes_per_frame = 20000};
  const RecordHandle record = make_toy_record(toy);
  std::vector<std::byte> memory(100000);
  const std::vector<std::byte*> places = {memory.data() + 60000, memory.data() + 1, memory.data() + 30000};
  ASSERT_TRUE(record->copy_frames(places).ok());
  ASSERT_TRUE(record
                  ->copy_frames([&](std::int32_t frame, std::span<const std::byte> bytes) {
                    EXPECT_TRUE(std::ranges::equal(bytes, std::span(places[static_cast<std::size_t>(frame)], 20000)));
                  })
                  .ok());
  EXPECT_EQ(memory[20001], std::byte{0});
  const Result<RecordHandle> damaged = damaged_copy(*record, 50000, std::byte{4});
  EXPECT_EQ((*damaged)->copy_frames(places).code(), Code::kDamaged);
}

TEST(Record, any_flipped_bit_is_refused_before_its_frames_are_believed) {
  const RecordHandle record = make_toy_record({.bytes_per_frame = 100});
  for (std::size_t i = 0; i < record->bytes().size() * 8; ++i) {
    const Result<RecordHandle> flipped = damaged_copy(*record, i / 8, static_cast<std::byte>(1U << (i % 8)));
    // The header's bits are refused at once, the body's when they are copied.
    EXPECT_EQ(flipped.ok(), i / 8 >= kRecordHeaderBytes) << "bit " << i;
    if (!flipped.ok()) continue;
    EXPECT_EQ((*flipped)->copy_frames([](std::int32_t, std::span<const std::byte>) {}).code(), Code::kDamaged) << i;
    EXPECT_EQ((*flipped)->verify().code(), Code::kDamaged) << "bit " << i;
  }
}

TEST(Record, any_truncation_or_extension_is_refused) {
  const RecordHandle record = make_toy_record({});
  for (std::size_t n = 0; n < record->bytes().size(); ++n) EXPECT_FALSE(open_bytes(record->bytes().first(n)).ok()) << n;
  std::vector<std::byte> longer(record->bytes().begin(), record->bytes().end());
  longer.resize(longer.size() + 64);
  EXPECT_FALSE(open_bytes(longer).ok());
}

// Hostile: whoever wrote them knows how to make a checksum.
TEST(Record, headers_that_are_sealed_and_make_no_sense_are_refused) {
  std::mt19937_64 random(7);
  const RecordHandle record = make_toy_record({});
  const std::vector<std::byte> sound(record->bytes().begin(), record->bytes().end());
  std::int32_t n_refused = 0;
  for (std::int32_t round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = sound;
    // The sizes, positions, flags and zeros lie in bytes 12..47.
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
      bytes[12 + random() % 36] = random() % 2 == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
    }
    const Hash128 checksum = hash_bytes(std::span(bytes).first(176));
    std::memcpy(bytes.data() + 176, &checksum, sizeof checksum);
    const Result<RecordHandle> opened = open_bytes(bytes);
    if (!opened.ok()) {
      ++n_refused;
      continue;
    }
    // Such a record is one that could have been written: its sizes are those of its bytes.
    EXPECT_EQ((*opened)->header().record_bytes(), bytes.size());
    EXPECT_GE((*opened)->header().begin.value(), 0);
    std::size_t n_bytes = 0;
    (void)(*opened)->copy_frames([&](std::int32_t, std::span<const std::byte> frame) { n_bytes += frame.size(); });
    EXPECT_EQ(n_bytes, (*opened)->header().frame_bytes);
  }
  EXPECT_GT(n_refused, 15000);
}

TEST(Record, another_version_is_told_from_damage) {
  const RecordHandle record = make_toy_record({});
  std::vector<std::byte> bytes(record->bytes().begin(), record->bytes().end());
  bytes[8] = std::byte{3};
  EXPECT_EQ(parse_record_header(bytes).status().code(), Code::kUnsupported);
}

TEST(Record, matches_only_its_own_name_model_and_layout) {
  const RecordHandle record = make_toy_record({.number = 4});
  EXPECT_TRUE(record->match(toy_key(4)).ok());
  EXPECT_EQ(record->match(toy_key(5)).code(), Code::kDamaged);
  RecordKey key = toy_key(4);
  key.model.low ^= 1;
  EXPECT_EQ(record->match(key).code(), Code::kDamaged);
  key = toy_key(4);
  key.layout.high ^= 1;
  EXPECT_EQ(record->match(key).code(), Code::kDamaged);
}

}  // namespace
}  // namespace ebb
