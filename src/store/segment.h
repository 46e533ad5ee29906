// Segment: one file of the disk tier: a header of 64 bytes, then records, one behind the other, appended and never
// changed.
//
//   offset  bytes  what (little-endian)
//        0      8  "ebbstore"
//        8      4  segment version, 2
//       12      4  0
//       16      8  number of the segment, as in its file's name: segment-000001.ebb
//       24     24  0
//       48     16  XXH3-128 of bytes 0..47
//       64    ...  records (store/record.h), each a multiple of 64 bytes
//
// A scan walks the records by their headers without reading frames. Where no sound header lies (a torn end, a flipped
// bit), it looks for the next one at multiples of 64 bytes, so that damage costs what it hit and nothing behind it.
// Thread rule: functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/file_system.h"
#include "store/record.h"

namespace ebb {

inline constexpr std::size_t kSegmentHeaderBytes = 64;

struct ScannedRecord {
  RecordHeader header;
  std::uint64_t offset = 0;
};

struct SegmentScan {
  std::vector<ScannedRecord> records;
  std::uint64_t file_bytes = 0;
  std::uint64_t skipped_bytes = 0;  // torn or damaged: no record's
  bool is_outdated = false;         // of an earlier version: nothing in it is read
};

[[nodiscard]] std::string segment_name(std::uint64_t number);
// The number in a segment's file name; nothing for other names.
[[nodiscard]] std::optional<std::uint64_t> find_segment_number(std::string_view file_name);

[[nodiscard]] std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(std::uint64_t number);

// kUnsupported for a segment of a later version, kDamaged for a file whose header is not sound, kIo for one that cannot
// be read.
Result<SegmentScan> scan_segment(const File& file, std::uint64_t number);

}  // namespace ebb
