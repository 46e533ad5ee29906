#include "bench/report.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

namespace ebb {
std::string spread_text(const Spread& spread, int n_decimals) {
  return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", spread.median, n_decimals, spread.min, n_decimals, spread.max,
                     n_decimals);
}

nlohmann::json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}, {"n", spread.n}};
}

std::string machine_text(const Machine& machine, const Bandwidth& bandwidth) {
  std::string text =
      fmt::format("{}, {} CPUs, {} of memory; {} threads read {} GB/s and copy {} GB/s\n", machine.cpu, machine.n_cpus,
                  bytes_text(static_cast<double>(machine.memory_bytes)), bandwidth.n_threads,
                  spread_text(bandwidth.read_gb_s), spread_text(bandwidth.copy_gb_s));
  if (machine.load_1min > 0.5) {
    text += fmt::format("Other programs were busy (load {:.1f}): ratios hold, absolute figures are too low.\n",
                        machine.load_1min);
  }
  return text;
}

nlohmann::json machine_json(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"n_cpus", machine.n_cpus},
          {"memory_bytes", machine.memory_bytes},
          {"last_cache_bytes", machine.last_cache_bytes},
          {"load_1min", machine.load_1min}};
}

nlohmann::json machine_json(const Machine& machine, const Bandwidth& bandwidth) {
  nlohmann::json json = machine_json(machine);
  json["read_gb_per_s"] = spread_json(bandwidth.read_gb_s);
  json["copy_gb_per_s"] = spread_json(bandwidth.copy_gb_s);
  return json;
}

Status write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path partial = path;
  partial += ".partial";
  std::ofstream file(partial, std::ios::trunc | std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    return error(Code::kIo, "{}: cannot be written ({}); choose another place for it", path.string(),
                 std::strerror(errno));
  }
  std::error_code failed;
  std::filesystem::rename(partial, path, failed);
  if (failed) return error(Code::kIo, "{}: cannot be written ({})", path.string(), failed.message());
  return {};
}

Status write_json(const std::filesystem::path& path, const nlohmann::json& value) {
  // A text that is not UTF-8 (a model's name, say) must not throw here.
  return write_text(path, value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

}  // namespace ebb
