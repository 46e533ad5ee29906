// A disk tier of four segments of four small records, over a file system that fails as it is told.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "store/disk_tier.h"
#include "store/fault_file_system.h"
#include "store/toy_record.h"

namespace ebb {

// Four records fill a segment, sixteen the tier.
inline DiskOptions small_options() {
  return {.folder = "store",
          .max_bytes = 4 * (4 * kOne + kSegmentHeaderBytes),
          .segment_bytes = 4 * kOne + kSegmentHeaderBytes};
}

inline std::unique_ptr<DiskTier> open_tier(FaultFileSystem& system, const DiskOptions& options = small_options()) {
  return *DiskTier::open(options, system);
}

inline void put(DiskTier& tier, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t n = first; n <= last; ++n) ASSERT_TRUE(tier.put(make_toy_record({.number = n})).ok()) << n;
}

inline bool gets(DiskTier& tier, std::uint64_t number) {
  const Result<RecordHandle> record = tier.get(toy_key(number), {});
  return record.ok() && is_toy_record(**record, {.number = number});
}

inline std::string segment_path(std::uint64_t number) { return "store/" + segment_name(number); }

}  // namespace ebb
