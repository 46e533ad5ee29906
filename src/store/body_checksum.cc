#include "store/body_checksum.h"

#include <array>

#include "store/record.h"

namespace ebb {
namespace {

// What a part of a record of that many bytes is followed by.
std::span<const std::byte> padding_behind(std::size_t n_bytes) {
  static constexpr std::array<std::byte, kRecordAlignment> kZeros{};
  return std::span(kZeros).first((kRecordAlignment - n_bytes % kRecordAlignment) % kRecordAlignment);
}

}  // namespace

BodyHasher::BodyHasher(std::span<const Token> tokens) {
  hasher_.add_raw_bytes(std::as_bytes(tokens)).add_raw_bytes(padding_behind(tokens.size_bytes()));
}

BodyHasher& BodyHasher::add_frame_checksum(const Hash128& checksum) {
  hasher_.add(checksum);
  ++n_frames_;
  return *this;
}

Hash128 BodyHasher::finish() {
  hasher_.add_raw_bytes(padding_behind(n_frames_ * sizeof(Hash128)));
  return hasher_.finish();
}

Hash128 body_checksum(std::span<const Token> tokens, std::span<const std::span<const std::byte>> frames) {
  BodyHasher hasher(tokens);
  for (const std::span<const std::byte> frame : frames) hasher.add_frame(frame);
  return hasher.finish();
}

}  // namespace ebb
