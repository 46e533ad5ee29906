// The machine that a benchmark runs on: what it is, as the system says; what it can do is measured (bench/peak.h).
//
// It does not know models. Thread rule: pure functions, but for the caches that are swept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace ebb {

struct Machine {
  std::string cpu;          // "AMD EPYC"; "unknown CPU" where the system does not say
  std::int32_t n_cpus = 1;  // that this process may run on
  std::size_t last_cache_bytes = 0;
  std::size_t memory_bytes = 0;
  std::size_t available_bytes = 0;  // what can be taken now without swapping
  double load_1min = 0.0;           // processes that wanted to run in the last minute, this one included
};

[[nodiscard]] Machine read_machine();
// Of this process, now; 0 where the system does not say.
[[nodiscard]] std::size_t read_resident_bytes();

// Empties the processor's caches of what was there: reads memory that nobody else wants, as much as the last one holds.
class CacheSweep {
 public:
  // kOutOfBudget when that memory is refused.
  static Result<CacheSweep> open();
  void sweep();

 private:
  explicit CacheSweep(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::vector<std::byte> bytes_;
};

}  // namespace ebb
