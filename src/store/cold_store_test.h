// Cold stores of toy records, in RAM and over a file system that fails as it is told.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "store/cold_store.h"
#include "store/fault_file_system.h"
#include "store/toy_record.h"

namespace ebb {

inline std::unique_ptr<ColdStore> open_in_ram(std::size_t ram_bytes = 1 << 20) {
  return *ColdStore::open({.ram_bytes = ram_bytes});
}

inline Result<std::unique_ptr<ColdStore>> try_open(FaultFileSystem& system, std::size_t ram_bytes,
                                                   std::size_t queue_bytes = 1 << 20) {
  return ColdStore::open({.ram_bytes = ram_bytes,
                          .disk = DiskOptions{.folder = "store", .max_bytes = 1 << 20, .segment_bytes = 1 << 14},
                          .queue_bytes = queue_bytes,
                          .system = &system});
}

// With the body that its frames will have.
inline RecordHeader announced(const ToyRecord& toy) { return make_toy_record(toy)->header(); }

inline void put_behind(ColdStore& store, const ToyRecord& toy) {
  EXPECT_TRUE(store.put_behind(announced(toy), toy_tokens(toy),
                               [toy](std::span<std::byte> frames) { fill_toy_frames(toy, frames); }));
}

inline bool gets(ColdStore& store, std::uint64_t number) {
  const Result<RecordHandle> record = store.get(toy_key(number));
  return record.ok() && is_toy_record(**record, {.number = number});
}

}  // namespace ebb
