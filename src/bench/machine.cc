#include "bench/machine.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/page_memory.h"
#include "bench/read_stream.h"

namespace ebb {
namespace {

// Smaller: the cache answers part of the reads. Larger: the pages take longer to touch than to measure.
constexpr std::size_t kCachesPerBuffer = 16;
constexpr std::size_t kMinBufferBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxBufferBytes = std::size_t{2} << 30;

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

// Runs work(thread, n_threads) on all threads at once, n_repeats times, and returns GB/s of n_bytes each time. The
// threads live through all repeats, so that starting them is not measured.
std::vector<double> measure_gb_s(std::int32_t n_threads, std::int32_t n_repeats, std::size_t n_bytes,
                                 const std::function<void(std::size_t)>& work) {
  std::vector<double> results;
  Stopwatch watch;
  std::barrier start(n_threads, [&watch]() noexcept { watch.restart(); });
  std::barrier finish(n_threads,
                      [&]() noexcept { results.push_back(static_cast<double>(n_bytes) / watch.elapsed_ms() / 1e6); });
  results.reserve(static_cast<std::size_t>(n_repeats) + 1);
  const auto run = [&](std::size_t thread) {
    for (std::int32_t i = 0; i <= n_repeats; ++i) {
      start.arrive_and_wait();
      work(thread);
      finish.arrive_and_wait();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < static_cast<std::size_t>(n_threads); ++i) threads.emplace_back(run, i);
  run(0);
  threads.clear();
  results.erase(results.begin());  // the first touches the pages
  return results;
}

std::span<std::byte> share(std::span<std::byte> bytes, std::size_t part, std::size_t n_parts) {
  const std::size_t n = bytes.size() / n_parts / kReadStep * kReadStep;
  return bytes.subspan(part * n, n);
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

Result<Bandwidth> measure_bandwidth(std::int32_t n_threads, std::int32_t n_repeats) {
  if (n_threads < 1 || n_repeats < 1) {
    return error(Code::kInvalidArgument, "bandwidth on {} threads, {} times: both must be at least 1", n_threads,
                 n_repeats);
  }
  const std::size_t n_bytes = std::clamp(read_last_cache_bytes() * kCachesPerBuffer, kMinBufferBytes, kMaxBufferBytes);
  const PageMemory source(n_bytes);
  const PageMemory target(n_bytes / 2);
  if (!source.is_there() || !target.is_there()) {
    return error(Code::kOutOfBudget, "measuring memory bandwidth takes {} MiB, which the system refuses",
                 (n_bytes + n_bytes / 2) >> 20);
  }
  const auto n_parts = static_cast<std::size_t>(n_threads);
  const std::span<std::byte> first_half = source.bytes().first(n_bytes / 2);
  std::memset(source.bytes().data(), 1, n_bytes);  // untouched pages are all one page of zeros

  std::atomic<std::uint64_t> sum{0};  // a result that is used is a loop that is run
  const auto read = measure_gb_s(n_threads, n_repeats, n_bytes, [&](std::size_t thread) {
    const std::span<const std::byte> part = share(source.bytes(), thread, n_parts);
    sum.fetch_add(read_stream(part.data(), part.size()), std::memory_order_relaxed);
  });
  EBB_CHECK(sum.load() != 0, "a buffer of ones adds up to nothing");
  const auto copy = measure_gb_s(n_threads, n_repeats, n_bytes / 2, [&](std::size_t thread) {
    const std::span<std::byte> to = share(target.bytes(), thread, n_parts);
    std::memcpy(to.data(), share(first_half, thread, n_parts).data(), to.size());
  });
  return Bandwidth{
      .read_gb_s = spread_of(read), .copy_gb_s = spread_of(copy), .n_threads = n_threads, .buffer_bytes = n_bytes};
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
