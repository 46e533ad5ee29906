#include "store/segment.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ebb {
namespace {

constexpr std::array<char, 8> kSegmentMagic = {'e', 'b', 'b', 's', 't', 'o', 'r', 'e'};
constexpr std::array<char, 8> kRecordMagic = {'e', 'b', 'b', 'b', 'l', 'o', 'c', 'k'};
constexpr std::uint32_t kSegmentVersion = 2;
constexpr std::size_t kChecksumOffset = 48;
constexpr std::string_view kPrefix = "segment-";
constexpr std::string_view kSuffix = ".ebb";
// How much a search for the next record reads at once.
constexpr std::size_t kSearchBytes = 64 * 1024;

// Whether it is one of an earlier version.
Result<bool> check_segment_header(std::span<const std::byte> bytes, std::uint64_t number) {
  if (bytes.size() < kSegmentHeaderBytes) return error(Code::kDamaged, "a segment without a whole header");
  std::uint32_t version = 0;
  std::memcpy(&version, bytes.data() + 8, sizeof version);
  if (std::memcmp(bytes.data(), kSegmentMagic.data(), kSegmentMagic.size()) == 0 && version != kSegmentVersion) {
    if (version > 0 && version < kSegmentVersion) return true;
    return error(Code::kUnsupported, "a segment of version {}, and this ebb reads {}", version, kSegmentVersion);
  }
  if (std::memcmp(bytes.data(), encode_segment_header(number).data(), kSegmentHeaderBytes) != 0) {
    return error(Code::kDamaged, "not the header of segment {}", number);
  }
  return false;
}

// The next offset, a multiple of 64 from `offset` on, where a record may begin; `end` if there is none.
Result<std::uint64_t> find_record_magic(const File& file, std::uint64_t offset, std::uint64_t end) {
  std::vector<std::byte> chunk(kSearchBytes);
  while (offset < end) {
    EBB_ASSIGN_OR_RETURN(const std::size_t n_read, file.read(offset, chunk));
    if (n_read < kRecordMagic.size()) return end;
    for (std::size_t at = 0; at + kRecordMagic.size() <= n_read; at += kRecordAlignment) {
      if (std::memcmp(chunk.data() + at, kRecordMagic.data(), kRecordMagic.size()) == 0) return offset + at;
    }
    offset += kSearchBytes;
  }
  return end;
}

}  // namespace

std::string segment_name(std::uint64_t number) { return fmt::format("{}{:06}{}", kPrefix, number, kSuffix); }

std::optional<std::uint64_t> find_segment_number(std::string_view file_name) {
  if (!file_name.starts_with(kPrefix) || !file_name.ends_with(kSuffix)) return std::nullopt;
  if (file_name.size() <= kPrefix.size() + kSuffix.size()) return std::nullopt;
  const std::string_view digits = file_name.substr(kPrefix.size(), file_name.size() - kPrefix.size() - kSuffix.size());
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(digits.begin(), digits.end(), number);
  // One number, one name: "segment-1.ebb" is not ours, and "segment-000001.ebb" is.
  if (code != std::errc() || end != digits.end() || segment_name(number) != file_name) return std::nullopt;
  return number;
}

std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(std::uint64_t number) {
  std::array<std::byte, kSegmentHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kSegmentMagic.data(), kSegmentMagic.size());
  std::memcpy(bytes.data() + 8, &kSegmentVersion, sizeof kSegmentVersion);
  std::memcpy(bytes.data() + 16, &number, sizeof number);
  const Hash128 checksum = hash_bytes(std::span(bytes).first(kChecksumOffset));
  std::memcpy(bytes.data() + kChecksumOffset, &checksum, sizeof checksum);
  return bytes;
}

Result<SegmentScan> scan_segment(const File& file, std::uint64_t number) {
  SegmentScan scan;
  EBB_ASSIGN_OR_RETURN(scan.file_bytes, file.size());
  std::array<std::byte, kRecordHeaderBytes> bytes{};
  EBB_ASSIGN_OR_RETURN(const std::size_t n_header, file.read(0, std::span(bytes).first(kSegmentHeaderBytes)));
  EBB_ASSIGN_OR_RETURN(scan.is_outdated, check_segment_header(std::span(bytes).first(n_header), number));
  if (scan.is_outdated) return scan;
  std::uint64_t offset = kSegmentHeaderBytes;
  while (offset < scan.file_bytes) {
    EBB_ASSIGN_OR_RETURN(const std::size_t n_read, file.read(offset, bytes));
    const Result<RecordHeader> header = parse_record_header(std::span(bytes).first(n_read));
    if (header.ok() && header->record_bytes() <= scan.file_bytes - offset) {
      scan.records.push_back({*header, offset});
      offset += header->record_bytes();
      continue;
    }
    EBB_ASSIGN_OR_RETURN(const std::uint64_t next, find_record_magic(file, offset + kRecordAlignment, scan.file_bytes));
    scan.skipped_bytes += std::min(next, scan.file_bytes) - offset;
    offset = next;
  }
  return scan;
}

}  // namespace ebb
