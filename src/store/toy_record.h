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
  std::uint64_t variant = 0;  // other bytes under the same name
};

inline RecordHeader toy_header(const ToyRecord& toy) {
  return {.key = {.model = {1, 2}, .layout = {3, 4}, .name = {toy.number, 5}},
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
  std::uint64_t state = (toy.number + (toy.variant << 32)) * 0x9E3779B97F4A7C15U + 1;
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

// The bytes of a toy record of the usual size.
inline const std::size_t kOne = make_toy_record({})->bytes().size();

inline RecordKey toy_key(std::uint64_t number) { return toy_header({.number = number}).key; }

inline Hash128 toy_body(const ToyRecord& toy) { return make_toy_record(toy)->header().body; }

// Whether all that it has, or those frames, are as make_toy_record made them.
inline bool is_toy_record(const EncodedRecord& record, const ToyRecord& toy, FrameList frames = {}) {
  const RecordHandle expected = make_toy_record(toy);
  std::vector<std::byte> got;
  std::vector<std::byte> want;
  const auto into = [](std::vector<std::byte>& bytes) {
    return
        [&](std::int32_t, std::span<const std::byte> frame) { bytes.insert(bytes.end(), frame.begin(), frame.end()); };
  };
  const Status status = record.copy_frames(into(got), frames);
  return status.ok() && expected->copy_frames(into(want), frames).ok() && record.header() == expected->header() &&
         got == want && std::ranges::equal(record.tokens(), expected->tokens());
}

// A copy of a record with one byte changed.
inline Result<RecordHandle> damaged_copy(const EncodedRecord& record, std::size_t byte, std::byte change) {
  RecordBytes bytes(record.bytes().size());
  std::ranges::copy(record.bytes(), bytes.bytes().begin());
  bytes.bytes()[byte] ^= change;
  return EncodedRecord::open(std::move(bytes));
}

}  // namespace ebb
