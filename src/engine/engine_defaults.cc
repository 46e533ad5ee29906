// What an engine takes where nobody says.
#include <cstdio>
#include <fstream>
#include <string>

#include "engine/engine.h"

namespace ebb {

std::size_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::size_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %zu kB", &kilobytes) == 1) return kilobytes << 10;
  }
  return 0;
}

std::int32_t block_size_for(std::int32_t budget_tokens) {
  // So many blocks at least, as far as keys of 16 let. More: digests, whose boxes are of blocks, take a larger part of what there is. Fewer: of ten
  // facts that a budget has room for, half have a block.
  constexpr std::int32_t kBlocks = 32;
  for (const std::int32_t size : {64, 32}) {
    if (budget_tokens <= 0 || budget_tokens >= kBlocks * size) return size;
  }
  return 16;
}

}  // namespace ebb
