#include "store/record.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "store/body_checksum.h"
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
  EXPECT_EQ(record->header().table_offset(), 128U + 64U);
  EXPECT_EQ(record->header().frames_offset(), 128U + 64U + 64U);
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
    // All but the frames' bits are refused at once, those when they are copied.
    const std::size_t frames_begin = record->header().frames_offset();
    const bool in_frames = i / 8 >= frames_begin && i / 8 < frames_begin + record->header().frame_bytes;
    EXPECT_EQ(flipped.ok(), in_frames) << "bit " << i;
    if (!flipped.ok()) continue;
    EXPECT_EQ((*flipped)->copy_frames([](std::int32_t, std::span<const std::byte>) {}).code(), Code::kDamaged) << i;
    EXPECT_EQ((*flipped)->verify().code(), Code::kDamaged) << "bit " << i;
  }
}

TEST(Record, a_damaged_frame_fails_only_the_copies_that_touch_it) {
  const ToyRecord toy = {.n_frames = 5, .bytes_per_frame = 100};
  const RecordHandle record = make_toy_record(toy);
  const RecordHandle damaged = *damaged_copy(*record, record->header().frames_offset() + 250, std::byte{8});
  EXPECT_TRUE(is_toy_record(*damaged, toy, std::vector<std::int32_t>{0, 1, 3, 4}));
  EXPECT_FALSE(is_toy_record(*damaged, toy, std::vector<std::int32_t>{1, 2}));
  std::vector<std::byte> memory(200);
  const std::vector<std::byte*> places = {memory.data(), memory.data() + 100};
  EXPECT_TRUE(damaged->copy_frames(places, std::vector<std::int32_t>{1, 4}).ok());
  EXPECT_EQ(damaged->copy_frames(places, std::vector<std::int32_t>{2, 4}).code(), Code::kDamaged);
  EXPECT_EQ(damaged->verify().code(), Code::kDamaged);
}

TEST(Record, has_an_own_frame_behind_the_table_for_every_entry_of_it) {
  const RecordHandle record = make_toy_record({.n_frames = 3, .bytes_per_frame = 100});
  EXPECT_TRUE(record
                  ->copy_frames([&](std::int32_t frame, std::span<const std::byte> bytes) {
                    Hash128 entry;
                    std::memcpy(&entry, record->bytes().data() + record->header().table_offset() + 16 * frame, 16);
                    EXPECT_EQ(entry, hash_bytes(bytes));
                  })
                  .ok());
}

TEST(Record, says_what_bytes_it_has_as_who_has_the_frames_can_say_without_it) {
  for (const std::int32_t n_frames : {0, 1, 3, 4, 9}) {
    const ToyRecord toy = {.n_frames = n_frames, .bytes_per_frame = 100};
    std::vector<std::byte> bytes(toy_header(toy).frame_bytes);
    fill_toy_frames(toy, bytes);
    std::vector<std::span<const std::byte>> frames;
    for (std::int32_t i = 0; i < n_frames; ++i) frames.push_back(std::span(bytes).subspan(100 * std::size_t(i), 100));
    EXPECT_EQ(body_checksum(toy_tokens(toy), frames), make_toy_record(toy)->header().body) << n_frames;
    if (n_frames == 0) continue;
    bytes.back() ^= std::byte{1};
    EXPECT_NE(body_checksum(toy_tokens(toy), frames), make_toy_record(toy)->header().body) << n_frames;
  }
  EXPECT_NE(toy_body({.number = 1}), toy_body({.number = 2})) << "their tokens differ";
  EXPECT_NE(toy_body({.variant = 1}), toy_body({.variant = 2}));
}

RecordBytes part_of(const EncodedRecord& record, std::span<const std::int32_t> frames, std::size_t n_lost = 0) {
  const std::size_t n_front = record.header().frames_offset();
  RecordBytes bytes(n_front + frames.size() * record.header().bytes_per_frame() - n_lost);
  std::ranges::copy(record.bytes().first(n_front), bytes.bytes().begin());
  std::span<std::byte> rest = bytes.bytes().subspan(n_front);
  for (const ByteRange& range : frame_ranges(record.header(), frames)) {
    const std::size_t n_bytes = std::min<std::size_t>(range.n_bytes, rest.size());
    std::ranges::copy(record.bytes().subspan(range.begin, n_bytes), rest.begin());
    rest = rest.subspan(n_bytes);
  }
  return bytes;
}

TEST(Record, read_in_part_has_its_front_and_those_frames) {
  const ToyRecord toy = {.n_frames = 6, .bytes_per_frame = 100};
  const RecordHandle whole = make_toy_record(toy);
  const std::vector<std::int32_t> frames = {0, 2, 3, 5};
  const Result<RecordHandle> part = EncodedRecord::open_part(part_of(*whole, frames), frames);
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_TRUE(whole->is_whole());
  EXPECT_FALSE((*part)->is_whole());
  EXPECT_TRUE((*part)->verify().ok());
  EXPECT_TRUE(is_toy_record(**part, toy, frames));
  EXPECT_TRUE(is_toy_record(**part, toy, std::vector<std::int32_t>{2, 5}));
  std::vector<std::int32_t> given;
  EXPECT_TRUE(
      (*part)->copy_frames([&](std::int32_t frame, std::span<const std::byte>) { given.push_back(frame); }).ok());
  EXPECT_EQ(given, frames);
  for (const std::size_t n_lost : {1, 64, 100, 400}) {
    EXPECT_FALSE(EncodedRecord::open_part(part_of(*whole, frames, n_lost), frames).ok()) << n_lost;
  }
  EXPECT_FALSE(EncodedRecord::open_part(part_of(*whole, frames), std::vector<std::int32_t>{0, 2, 3, 6}).ok());
}

TEST(Record, frames_that_touch_are_one_run_of_bytes) {
  const RecordHeader header = make_toy_record({.n_frames = 8, .bytes_per_frame = 100})->header();
  const std::uint64_t begin = header.frames_offset();
  EXPECT_EQ(frame_ranges(header, std::vector<std::int32_t>{0, 1, 2, 5, 7}),
            (std::vector<ByteRange>{{begin, 300}, {begin + 500, 100}, {begin + 700, 100}}));
  EXPECT_TRUE(frame_ranges(header, {}).empty());
}

TEST(Record, a_table_that_is_cut_short_or_not_its_own_is_refused) {
  const RecordHandle record = make_toy_record({.n_frames = 6, .bytes_per_frame = 100});
  for (std::size_t at = record->header().table_offset(); at < record->header().frames_offset(); at += 16) {
    EXPECT_FALSE(open_bytes(record->bytes().first(at)).ok());
    EXPECT_FALSE(damaged_copy(*record, at, std::byte{1}).ok());
  }
  // Under a header that is sound by itself, and announces another table.
  for (const std::int32_t n_frames : {1, 2, 3, 300, 1 << 30}) {
    std::vector<std::byte> bytes(record->bytes().begin(), record->bytes().end());
    std::memcpy(bytes.data() + 24, &n_frames, 4);
    const Hash128 checksum = hash_bytes(std::span(bytes).first(112));
    std::memcpy(bytes.data() + 112, &checksum, sizeof checksum);
    EXPECT_FALSE(open_bytes(bytes).ok()) << n_frames;
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
    // The flags, kind, sizes, positions and zeros lie in bytes 12..47.
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
      bytes[12 + random() % 36] = random() % 2 == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
    }
    const Hash128 checksum = hash_bytes(std::span(bytes).first(112));
    std::memcpy(bytes.data() + 112, &checksum, sizeof checksum);
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
  bytes[8] = std::byte{4};
  EXPECT_EQ(parse_record_header(bytes).status().code(), Code::kUnsupported);
}

TEST(Record, matches_only_its_own_name_kind_model_and_layout) {
  const RecordHandle record = make_toy_record({.number = 4});
  EXPECT_TRUE(record->match(toy_key(4)).ok());
  EXPECT_EQ(record->match(toy_key(5)).code(), Code::kDamaged);
  RecordKey key = toy_key(4);
  key.model.low ^= 1;
  EXPECT_EQ(record->match(key).code(), Code::kDamaged);
  key = toy_key(4);
  key.layout.high ^= 1;
  EXPECT_EQ(record->match(key).code(), Code::kDamaged);
  key = toy_key(4);
  key.kind = RecordKind::kSequenceState;
  EXPECT_EQ(record->match(key).code(), Code::kDamaged);
}

}  // namespace
}  // namespace ebb
