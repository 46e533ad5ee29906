// TierStats: what one tier of the cold store holds and what became of what was asked of it. Plain numbers, a snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ebb {

struct TierStats {
  std::string name;  // "ram", "disk"
  std::int64_t n_records = 0;
  std::size_t bytes = 0;  // of memory, or of files
  std::size_t max_bytes = 0;
  std::int64_t n_puts = 0;
  std::int64_t n_hits = 0;
  std::int64_t n_misses = 0;        // never kept, or dropped
  std::int64_t n_refused = 0;       // kept, and damaged, foreign or unreadable: never used, and dropped
  std::int64_t n_dropped = 0;       // made room for others
  std::int64_t n_write_errors = 0;  // not kept, because a write failed or writing is off after one
  bool writing_off = false;         // nothing is written at the moment
  // The last thing that went wrong, in words for the user; empty when nothing did.
  std::string last_error;
  // What the user should know although nothing went wrong; mostly empty.
  std::string notice;
};

}  // namespace ebb
