// Body checksum: the one figure that says what bytes a record has, tokens and frames, whoever made it and wherever it lies.
//
// It is the XXH3-128 of the record's tokens and of the table of its frames' own XXH3-128, so that any frame can be checked
// by itself once tokens and table were. Two blocks with one exact name and different body checksums hold different bytes:
// what is saved must mean these (law 2). It can be had from frames where they lie, without making a record. Thread rule:
// one thread at a time.
#pragma once

#include <cstddef>
#include <span>

#include "base/hash.h"
#include "base/ids.h"

namespace ebb {

class BodyHasher {
 public:
  explicit BodyHasher(std::span<const Token> tokens);

  // In the order that the record has them in.
  BodyHasher& add_frame(std::span<const std::byte> frame) { return add_frame_checksum(hash_bytes(frame)); }
  BodyHasher& add_frame_checksum(const Hash128& checksum);
  // To be called once, behind the last frame.
  [[nodiscard]] Hash128 finish();

 private:
  Hasher hasher_;
  std::size_t n_frames_ = 0;
};

[[nodiscard]] Hash128 body_checksum(std::span<const Token> tokens, std::span<const std::span<const std::byte>> frames);

}  // namespace ebb
