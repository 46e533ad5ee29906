#include "bench/machine.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "bench/read_stream.h"

namespace ebb {
namespace {

constexpr std::size_t kMinSweepBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxSweepBytes = std::size_t{256} << 20;

// The text after "key :" in a file of such lines; empty when there is none.
std::string find_line_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::size_t find_bytes(const char* path, const std::string& key) {
  const std::string value = find_line_value(path, key);  // "24684096 kB"
  return value.empty() ? 0 : std::strtoull(value.c_str(), nullptr, 10) * 1024;
}

// From the kernel; sysconf() multiplies shared caches on some virtual machines.
std::size_t read_last_cache_bytes() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::size_t n = 0;
    char unit = ' ';
    if (!(file >> n >> unit)) continue;  // "32768K"
    largest = std::max(largest, unit == 'M' ? n << 20 : n << 10);
  }
  return largest;
}

std::int32_t count_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<std::int32_t>(std::max(std::thread::hardware_concurrency(), 1U));
}

}  // namespace

std::size_t read_resident_bytes() { return find_bytes("/proc/self/status", "VmRSS"); }

Machine read_machine() {
  Machine machine;
  machine.cpu = find_line_value("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown CPU";
  machine.n_cpus = count_cpus();
  machine.last_cache_bytes = read_last_cache_bytes();
  machine.memory_bytes = find_bytes("/proc/meminfo", "MemTotal");
  machine.available_bytes = find_bytes("/proc/meminfo", "MemAvailable");
  double load = 0.0;
  if (getloadavg(&load, 1) == 1) machine.load_1min = load;
  return machine;
}

Result<CacheSweep> CacheSweep::open() {
  // A cache that many machines of a host share is ours in part only.
  const std::size_t n_bytes = std::clamp(read_last_cache_bytes(), kMinSweepBytes, kMaxSweepBytes);
  try {
    return CacheSweep(std::vector<std::byte>(n_bytes / kReadStep * kReadStep, std::byte{1}));
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfBudget, "sweeping the caches takes {} MiB, which the system refuses", n_bytes >> 20);
  }
}

void CacheSweep::sweep() {
  const std::uint64_t sum = read_stream(bytes_.data(), bytes_.size());
  EBB_CHECK(sum != 0, "a buffer of ones adds up to nothing");
}

}  // namespace ebb
