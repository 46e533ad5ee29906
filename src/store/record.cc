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
constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kBodyOffset = 96;
constexpr std::size_t kHeaderChecksumOffset = 112;
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
  put(bytes, 16, header.key.kind);
  put(bytes, 20, header.n_tokens);
  put(bytes, 24, header.n_frames);
  put(bytes, 32, header.frame_bytes);
  put(bytes, 40, header.begin.value());
  put(bytes, 44, header.anchor.value());
  put(bytes, 48, header.key.model);
  put(bytes, 64, header.key.layout);
  put(bytes, 80, header.key.name);
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

Status frames_error(const RecordHeader& header) {
  return error(Code::kDamaged, "the record of block {}: its bytes do not match their checksum; it is not used",
               header.key.name.hex());
}

Hash128 hash_and_copy(std::byte* into, std::span<const std::byte> frame) {
  if (frame.size() <= kPieceBytes) {
    const Hash128 checksum = hash_bytes(frame);
    copy_past_cache(into, frame);
    return checksum;
  }
  Hasher hasher;
  for (std::size_t at = 0; at < frame.size(); at += kPieceBytes) {
    const auto piece = frame.subspan(at, std::min(kPieceBytes, frame.size() - at));
    hasher.add_raw_bytes(piece);
    copy_past_cache(into + at, piece);
  }
  return hasher.finish();
}

}  // namespace

std::uint64_t RecordHeader::table_offset() const {
  return kRecordHeaderBytes + round_up(std::uint64_t{4} * static_cast<std::uint32_t>(n_tokens));
}

std::uint64_t RecordHeader::frames_offset() const {
  return table_offset() + round_up(sizeof(Hash128) * static_cast<std::uint32_t>(n_frames));
}

std::uint64_t RecordHeader::bytes_per_frame() const {
  return n_frames == 0 ? 0 : frame_bytes / static_cast<std::uint32_t>(n_frames);
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
  const RecordHeader header = {.key = {.model = get<Hash128>(bytes, 48),
                                       .layout = get<Hash128>(bytes, 64),
                                       .name = get<Hash128>(bytes, 80),
                                       .kind = get<RecordKind>(bytes, 16)},
                               .body = get<Hash128>(bytes, kBodyOffset),
                               .begin = Position(get<std::int32_t>(bytes, 40)),
                               .anchor = Position(get<std::int32_t>(bytes, 44)),
                               .n_tokens = get<std::int32_t>(bytes, 20),
                               .n_frames = get<std::int32_t>(bytes, 24),
                               .frame_bytes = get<std::uint64_t>(bytes, 32)};
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
  const auto behind = bytes.bytes().subspan(header.frames_offset() + header.frame_bytes);
  if (!std::ranges::all_of(behind, [](std::byte b) { return b == std::byte{0}; })) return frames_error(header);
  const RecordHandle record(new EncodedRecord(header, std::move(bytes)));
  EBB_RETURN_IF_ERROR(record->check_front());
  return record;
}

Result<RecordHandle> EncodedRecord::open_part(RecordBytes bytes, FrameList frames) {
  EBB_ASSIGN_OR_RETURN(const RecordHeader header, parse_record_header(bytes.bytes()));
  const std::uint64_t n_bytes = header.frames_offset() + frames.size() * header.bytes_per_frame();
  if (n_bytes != bytes.bytes().size()) {
    return error(Code::kDamaged, "{} frames of block {} take {} bytes, and were read as {}", frames.size(),
                 header.key.name.hex(), n_bytes, bytes.bytes().size());
  }
  const RecordHandle record(
      new EncodedRecord(header, std::move(bytes), std::vector<std::int32_t>(frames.begin(), frames.end())));
  EBB_RETURN_IF_ERROR(record->match(header.key, frames));
  EBB_RETURN_IF_ERROR(record->check_front());
  return record;
}

std::span<const Token> EncodedRecord::tokens() const {
  const auto* first = reinterpret_cast<const Token*>(bytes().data() + kRecordHeaderBytes);
  return {first, static_cast<std::size_t>(header_.n_tokens)};
}

Status EncodedRecord::match(const RecordKey& key, FrameList frames) const {
  if (header_.key.name != key.name) {
    return error(Code::kDamaged, "the record of block {} lies where that of block {} was looked for",
                 header_.key.name.hex(), key.name.hex());
  }
  if (header_.key.kind != key.kind) {
    return error(Code::kDamaged, "the record of block {} is of kind {}, and one of kind {} was looked for",
                 key.name.hex(), static_cast<std::uint32_t>(header_.key.kind), static_cast<std::uint32_t>(key.kind));
  }
  if (header_.key != key) {
    return error(Code::kDamaged, "block {} was saved by another model or layout ({}, {}; expected {}, {})",
                 key.name.hex(), header_.key.model.hex(), header_.key.layout.hex(), key.model.hex(), key.layout.hex());
  }
  EBB_CHECK(std::ranges::adjacent_find(frames, std::ranges::greater_equal()) == frames.end(),
            "frames of block {} are asked for in no order", key.name.hex());
  if (!frames.empty() && (frames.front() < 0 || frames.back() >= header_.n_frames)) {
    return error(Code::kDamaged, "block {} was saved with {} frames, and {} to {} were looked for", key.name.hex(),
                 header_.n_frames, frames.front(), frames.back());
  }
  return {};
}

Status EncodedRecord::check_front() const {
  const std::size_t frames_begin = header_.frames_offset();
  const Hash128 actual = hash_bytes(bytes().subspan(kRecordHeaderBytes, frames_begin - kRecordHeaderBytes));
  if (actual == header_.body) return {};
  return error(Code::kDamaged,
               "the record of block {}: its tokens and table do not match their checksum; it is not used",
               header_.key.name.hex());
}

std::span<const std::byte> EncodedRecord::frame(std::int32_t index) const {
  auto place = static_cast<std::size_t>(index);
  if (!is_whole()) {
    const auto found = std::ranges::lower_bound(held_, index);
    EBB_CHECK(found != held_.end() && *found == index, "frame {} of block {} was not read", index,
              header_.key.name.hex());
    place = static_cast<std::size_t>(found - held_.begin());
  }
  const std::size_t n_bytes = header_.bytes_per_frame();
  return bytes().subspan(header_.frames_offset() + place * n_bytes, n_bytes);
}

// take(i, bytes) hashes the bytes of the i-th of these frames, and does with them what it will. The front is checked again:
// what lies in RAM for long may have changed there.
template <class Take>
Status EncodedRecord::check_and_take(FrameList frames, const Take& take) const {
  EBB_RETURN_IF_ERROR(check_front());
  if (frames.empty()) frames = held_;
  const std::size_t n = frames.empty() ? static_cast<std::size_t>(header_.n_frames) : frames.size();
  bool sound = true;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t index = frames.empty() ? static_cast<std::int32_t>(i) : frames[i];
    const std::size_t entry = header_.table_offset() + static_cast<std::size_t>(index) * sizeof(Hash128);
    sound = take(i, frame(index)) == get<Hash128>(bytes(), entry) && sound;
  }
  return sound ? Status() : frames_error(header_);
}

Status EncodedRecord::copy_frames(const FrameSink& sink, FrameList frames) const {
  EBB_RETURN_IF_ERROR(match(header_.key, frames));
  const FrameList named = frames.empty() ? FrameList(held_) : frames;
  return check_and_take(frames, [&](std::size_t i, std::span<const std::byte> bytes) {
    const Hash128 checksum = hash_bytes(bytes);
    sink(named.empty() ? static_cast<std::int32_t>(i) : named[i], bytes);
    return checksum;
  });
}

Status EncodedRecord::copy_frames(std::span<std::byte* const> into, FrameList frames) const {
  EBB_RETURN_IF_ERROR(match(header_.key, frames));
  const FrameList named = frames.empty() ? FrameList(held_) : frames;
  const std::size_t n = named.empty() ? static_cast<std::size_t>(header_.n_frames) : named.size();
  EBB_CHECK(into.size() == n, "{} places for {} frames", into.size(), n);
  return check_and_take(frames,
                        [&](std::size_t i, std::span<const std::byte> bytes) { return hash_and_copy(into[i], bytes); });
}

Status EncodedRecord::verify() const {
  return check_and_take({}, [](std::size_t, std::span<const std::byte> bytes) { return hash_bytes(bytes); });
}

std::vector<ByteRange> frame_ranges(const RecordHeader& header, FrameList frames) {
  std::vector<ByteRange> ranges;
  const std::uint64_t n_bytes = header.bytes_per_frame();
  for (const std::int32_t frame : frames) {
    const std::uint64_t begin = header.frames_offset() + static_cast<std::uint64_t>(frame) * n_bytes;
    if (!ranges.empty() && ranges.back().begin + ranges.back().n_bytes == begin) {
      ranges.back().n_bytes += n_bytes;
    } else {
      ranges.push_back({.begin = begin, .n_bytes = n_bytes});
    }
  }
  return ranges;
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
  // The table is written by seal().
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
  const std::size_t n_bytes = header_.bytes_per_frame();
  const std::size_t frames_begin = header_.frames_offset();
  for (std::size_t i = 0; std::cmp_less(i, header_.n_frames); ++i) {
    put(all, header_.table_offset() + i * sizeof(Hash128),
        hash_bytes(all.subspan(frames_begin + i * n_bytes, n_bytes)));
  }
  header_.body = hash_bytes(all.subspan(kRecordHeaderBytes, frames_begin - kRecordHeaderBytes));
  put(all, kBodyOffset, header_.body);
  put(all, kHeaderChecksumOffset, hash_bytes(all.first(kHeaderChecksumOffset)));
  return RecordHandle(new EncodedRecord(header_, std::move(bytes_)));
}

}  // namespace ebb
