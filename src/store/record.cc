#include "store/record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "base/stream_copy.h"

namespace ebb {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian, and read without conversion");
static_assert(sizeof(Token) == 4 && std::is_trivially_copyable_v<Token>);

constexpr std::array<char, 8> kMagic = {'e', 'b', 'b', 'b', 'l', 'o', 'c', 'k'};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kBodyChecksumOffset = 160;
constexpr std::size_t kHeaderChecksumOffset = 176;
// Far above any block, and far below where sums of sizes could overflow.
constexpr std::uint64_t kMostFrameBytes = std::uint64_t{1} << 40;

// What is hashed and then copied at a time: larger pieces leave the innermost cache in between, smaller ones cost calls.
constexpr std::size_t kPieceBytes = 16 * 1024;

std::uint64_t round_up(std::uint64_t n) { return (n + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment; }

template <class T>
void put(std::span<std::byte> bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

void write_header(std::span<std::byte> bytes, const RecordHeader& header) {
  std::ranges::fill(bytes.first(kRecordHeaderBytes), std::byte{0});
  put(bytes, 0, kMagic);
  put(bytes, 8, kVersion);
  put(bytes, 16, header.n_tokens);
  put(bytes, 20, header.n_frames);
  put(bytes, 24, header.frame_bytes);
  put(bytes, 32, header.begin.value());
  put(bytes, 36, header.anchor.value());
  put(bytes, 48, header.key.model);
  put(bytes, 64, header.key.layout);
  put(bytes, 80, header.key.name);
  put(bytes, 96, header.content);
  put(bytes, 112, header.lineage);
}

bool in_range(Position first, std::int32_t n_tokens) {
  return first.value() >= 0 && first.value() <= std::numeric_limits<std::int32_t>::max() - n_tokens;
}

bool makes_sense(const RecordHeader& h) {
  const bool frames_fit = h.n_frames == 0 ? h.frame_bytes == 0
                                          : h.n_frames > 0 && h.frame_bytes <= kMostFrameBytes &&
                                                h.frame_bytes % static_cast<std::uint64_t>(h.n_frames) == 0;
  return h.n_tokens >= 0 && frames_fit && in_range(h.begin, h.n_tokens) && in_range(h.anchor, h.n_tokens);
}

Status body_error(const RecordHeader& header) {
  return error(Code::kDamaged, "the record of block {}: its bytes do not match their checksum; it is not used",
               header.key.name.hex());
}

}  // namespace

std::uint64_t RecordHeader::frames_offset() const {
  return kRecordHeaderBytes + round_up(std::uint64_t{4} * static_cast<std::uint32_t>(n_tokens));
}

std::uint64_t RecordHeader::record_bytes() const { return frames_offset() + round_up(frame_bytes); }

Result<RecordHeader> parse_record_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kRecordHeaderBytes) {
    return error(Code::kDamaged, "{} bytes where a record's header has {}", bytes.size(), kRecordHeaderBytes);
  }
  if (get<std::array<char, 8>>(bytes, 0) != kMagic) return error(Code::kDamaged, "bytes that are no record");
  if (const auto version = get<std::uint32_t>(bytes, 8); version != kVersion) {
    return error(Code::kUnsupported, "a record of format version {}, and this ebb reads {}", version, kVersion);
  }
  if (get<Hash128>(bytes, kHeaderChecksumOffset) != hash_bytes(bytes.first(kHeaderChecksumOffset))) {
    return error(Code::kDamaged, "a record whose header does not match its checksum");
  }
  if (const auto flags = get<std::uint32_t>(bytes, 12); flags != 0) {
    return error(Code::kUnsupported, "a record with flags {:#x}, and this ebb knows none", flags);
  }
  const RecordHeader header = {
      .key = {.model = get<Hash128>(bytes, 48), .layout = get<Hash128>(bytes, 64), .name = get<Hash128>(bytes, 80)},
      .content = get<Hash128>(bytes, 96),
      .lineage = get<Hash128>(bytes, 112),
      .begin = Position(get<std::int32_t>(bytes, 32)),
      .anchor = Position(get<std::int32_t>(bytes, 36)),
      .n_tokens = get<std::int32_t>(bytes, 16),
      .n_frames = get<std::int32_t>(bytes, 20),
      .frame_bytes = get<std::uint64_t>(bytes, 24)};
  if (!makes_sense(header)) {
    return error(Code::kDamaged, "a record of {} tokens from position {} and {} frames of {} bytes together",
                 header.n_tokens, header.begin.value(), header.n_frames, header.frame_bytes);
  }
  return header;
}

RecordBytes::RecordBytes(std::size_t n_bytes)
    : data_(static_cast<std::byte*>(std::aligned_alloc(kRecordAlignment, round_up(n_bytes)))), n_bytes_(n_bytes) {
  if (data_ == nullptr) throw std::bad_alloc();
}

void RecordBytes::Free::operator()(std::byte* data) const { std::free(data); }

Result<RecordHandle> EncodedRecord::open(RecordBytes bytes) {
  EBB_ASSIGN_OR_RETURN(const RecordHeader header, parse_record_header(bytes.bytes()));
  if (header.record_bytes() != bytes.bytes().size()) {
    return error(Code::kDamaged, "the record of block {} has {} bytes, and its header announces {}",
                 header.key.name.hex(), bytes.bytes().size(), header.record_bytes());
  }
  return RecordHandle(new EncodedRecord(header, std::move(bytes)));
}

std::span<const Token> EncodedRecord::tokens() const {
  const auto* first = reinterpret_cast<const Token*>(bytes().data() + kRecordHeaderBytes);
  return {first, static_cast<std::size_t>(header_.n_tokens)};
}

Status EncodedRecord::match(const RecordKey& key) const {
  if (header_.key == key) return {};
  if (header_.key.name != key.name) {
    return error(Code::kDamaged, "the record of block {} lies where that of block {} was looked for",
                 header_.key.name.hex(), key.name.hex());
  }
  return error(Code::kDamaged, "block {} was saved by another model or layout ({}, {}; expected {}, {})",
               key.name.hex(), header_.key.model.hex(), header_.key.layout.hex(), key.model.hex(), key.layout.hex());
}

// take(frame, hasher, bytes) hashes the bytes of one frame, and does with them what it will.
template <class Take>
Status EncodedRecord::hash_and_take(const Take& take) const {
  const std::span<const std::byte> all = bytes();
  const std::size_t frames_begin = header_.frames_offset();
  const std::size_t frames_end = frames_begin + header_.frame_bytes;
  Hasher hasher;
  hasher.add_raw_bytes(all.subspan(kRecordHeaderBytes, frames_begin - kRecordHeaderBytes));
  const auto n_frames = static_cast<std::size_t>(header_.n_frames);
  const std::size_t n_bytes = n_frames == 0 ? 0 : header_.frame_bytes / n_frames;
  for (std::size_t i = 0; i < n_frames; ++i) take(i, hasher, all.subspan(frames_begin + i * n_bytes, n_bytes));
  hasher.add_raw_bytes(all.subspan(frames_end));
  return hasher.finish() == get<Hash128>(all, kBodyChecksumOffset) ? Status() : body_error(header_);
}

Status EncodedRecord::copy_frames(const FrameSink& sink) const {
  return hash_and_take([&](std::size_t frame, Hasher& hasher, std::span<const std::byte> bytes) {
    hasher.add_raw_bytes(bytes);
    sink(static_cast<std::int32_t>(frame), bytes);
  });
}

Status EncodedRecord::copy_frames(std::span<std::byte* const> into) const {
  EBB_CHECK(into.size() == static_cast<std::size_t>(header_.n_frames), "{} places for {} frames", into.size(),
            header_.n_frames);
  return hash_and_take([&](std::size_t frame, Hasher& hasher, std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
      const auto piece = bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at));
      hasher.add_raw_bytes(piece);
      copy_past_cache(into[frame] + at, piece);
    }
  });
}

Status EncodedRecord::verify() const {
  const Hash128 actual = hash_bytes(bytes().subspan(kRecordHeaderBytes));
  return actual == get<Hash128>(bytes(), kBodyChecksumOffset) ? Status() : body_error(header_);
}

RecordBuilder::RecordBuilder(const RecordHeader& header, std::span<const Token> tokens)
    : header_(header), bytes_([&] {
        header_.n_tokens = static_cast<std::int32_t>(tokens.size());
        EBB_CHECK(makes_sense(header_), "{} tokens from {}, anchor {}, {} frames of {} bytes together",
                  header_.n_tokens, header_.begin.value(), header_.anchor.value(), header_.n_frames,
                  header_.frame_bytes);
        return header_.record_bytes();
      }()) {
  const std::span<std::byte> all = bytes_.bytes();
  write_header(all, header_);
  const std::size_t token_bytes = tokens.size_bytes();
  if (token_bytes > 0) std::memcpy(all.data() + kRecordHeaderBytes, tokens.data(), token_bytes);
  const std::size_t frames_begin = header_.frames_offset();
  std::ranges::fill(all.subspan(kRecordHeaderBytes + token_bytes, frames_begin - kRecordHeaderBytes - token_bytes),
                    std::byte{0});
  std::ranges::fill(all.subspan(frames_begin + header_.frame_bytes), std::byte{0});
}

std::span<std::byte> RecordBuilder::frames() {
  return bytes_.bytes().subspan(header_.frames_offset(), header_.frame_bytes);
}

RecordHandle RecordBuilder::seal() && {
  const std::span<std::byte> all = bytes_.bytes();
  put(all, kBodyChecksumOffset, hash_bytes(all.subspan(kRecordHeaderBytes)));
  put(all, kHeaderChecksumOffset, hash_bytes(all.first(kHeaderChecksumOffset)));
  return RecordHandle(new EncodedRecord(header_, std::move(bytes_)));
}

}  // namespace ebb
