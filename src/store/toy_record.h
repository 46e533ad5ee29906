// Records for tests: small, and each byte told by the record's number, so that a wrong one cannot pass for another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "store/record.h"

namespace ebb {

struct ToyRecord {
  std::uint64_t number = 1;
  std::int32_t n_frames = 2;
  std::size_t bytes_per_frame = 128;
};

inline RecordHeader toy_header(const ToyRecord& toy) {
  return {.key = {.model = {1, 2}, .layout = {3, 4}, .name = {toy.number, 5}},
          .content = {toy.number, 6},
          .lineage = {toy.number, 7},
          .begin = Position(64),
          .anchor = Position(32),
          .n_tokens = 3,
          .n_frames = toy.n_frames,
          .frame_bytes = toy.bytes_per_frame * static_cast<std::size_t>(toy.n_frames)};
}

inline std::vector<Token> toy_tokens(const ToyRecord& toy) {
  return {Token(7), Token(8), Token(static_cast<std::int32_t>(toy.number))};
}

inline void fill_toy_frames(const ToyRecord& toy, std::span<std::byte> frames) {
  std::uint64_t state = toy.number * 0x9E3779B97F4A7C15U + 1;
  for (std::byte& b : frames) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    b = static_cast<std::byte>(state >> 56);
  }
}

inline RecordHandle make_toy_record(const ToyRecord& toy) {
  RecordBuilder builder(toy_header(toy), toy_tokens(toy));
  fill_toy_frames(toy, builder.frames());
  return std::move(builder).seal();
}

inline RecordKey toy_key(std::uint64_t number) { return toy_header({.number = number}).key; }

// Whether all of it is as make_toy_record made it.
inline bool is_toy_record(const EncodedRecord& record, const ToyRecord& toy) {
  const RecordHandle expected = make_toy_record(toy);
  std::vector<std::byte> frames;
  const Status status = record.copy_frames(
      [&](std::int32_t, std::span<const std::byte> bytes) { frames.insert(frames.end(), bytes.begin(), bytes.end()); });
  const auto want = expected->bytes().subspan(expected->header().frames_offset(), expected->header().frame_bytes);
  return status.ok() && record.header() == expected->header() && std::ranges::equal(frames, want) &&
         std::ranges::equal(record.tokens(), expected->tokens());
}

// The same bytes with one changed.
inline Result<RecordHandle> damaged_copy(const EncodedRecord& record, std::size_t byte, std::byte change) {
  RecordBytes bytes(record.bytes().size());
  std::ranges::copy(record.bytes(), bytes.bytes().begin());
  bytes.bytes()[byte] ^= change;
  return EncodedRecord::open(std::move(bytes));
}

}  // namespace ebb
