#include "bench/report.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

namespace ebb {
namespace {

std::string beaten_text(const PeakBeaten& beaten) {
  if (beaten.n_beaten == 0) return {};
  return fmt::format(
      "In {} of {} rounds a pass did more than the probe beside it, up to {:.0f} % of it: what it reads was in the "
      "caches, or the probe\nfound less than there is. Shares of the peak are too high there.\n",
      beaten.n_beaten, beaten.n_rounds, 100.0 * beaten.most);
}

}  // namespace

std::string spread_text(const Spread& spread, int n_decimals) {
  return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", spread.median, n_decimals, spread.min, n_decimals, spread.max,
                     n_decimals);
}

nlohmann::json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}, {"n", spread.n}};
}

std::string share_text(const Spread& share) {
  return fmt::format("{:.0f} ({:.0f}-{:.0f}) %", 100.0 * share.median, 100.0 * share.min, 100.0 * share.max);
}

std::string share_text(const std::optional<PeakShare>& share) { return share ? share_text(share->share) : "-"; }

std::string machine_text(const Machine& machine, const Peak& peak, const PeakBeaten& beaten) {
  std::string text = fmt::format("{}, {} CPUs, {} of memory; {} threads read {} GB/s and copy {} GB/s", machine.cpu,
                                 machine.n_cpus, bytes_text(static_cast<double>(machine.memory_bytes)), peak.n_threads,
                                 spread_text(peak.read_gb_s), spread_text(peak.copy_gb_s));
  for (std::size_t type = 0; type < kMultiplyTypes; ++type) {
    const Spread& limit = peak.multiply_gop_s[type];
    if (limit.median == 0.0) continue;
    text += fmt::format(", {} {} GOP/s", multiply_type_name(static_cast<MultiplyType>(type)), spread_text(limit, 0));
  }
  text += fmt::format(
      "\nThe peak: {} probes beside what was measured, of up to {} (best: {}); it drifted {:.2f}-fold in reading\n",
      peak.read_gb_s.n, bytes_text(static_cast<double>(peak.buffer_bytes)), peak.read_way,
      peak.read_gb_s.max / peak.read_gb_s.min);
  if (machine.load_1min > 0.5) {
    text += fmt::format("Other programs were busy (load {:.1f}): ratios hold, absolute figures are too low.\n",
                        machine.load_1min);
  }
  return text + beaten_text(beaten);
}

nlohmann::json machine_json(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"n_cpus", machine.n_cpus},
          {"memory_bytes", machine.memory_bytes},
          {"last_cache_bytes", machine.last_cache_bytes},
          {"load_1min", machine.load_1min}};
}

nlohmann::json machine_json(const Machine& machine, const Peak& peak, const PeakBeaten& beaten) {
  nlohmann::json json = machine_json(machine);
  json["read_gb_per_s"] = spread_json(peak.read_gb_s);
  json["copy_gb_per_s"] = spread_json(peak.copy_gb_s);
  for (std::size_t type = 0; type < kMultiplyTypes; ++type) {
    const Spread& limit = peak.multiply_gop_s[type];
    if (limit.median == 0.0) continue;
    const auto multiply_type = static_cast<MultiplyType>(type);
    json["limits"][std::string(multiply_type_name(multiply_type))] = {
        {"instruction", multiply_instruction(multiply_type)}, {"gop_per_s", spread_json(limit)}};
  }
  json["probe"] = {{"n_bytes", peak.buffer_bytes}, {"read_way", peak.read_way}};
  // Most over least of the run.
  json["drift"] = {{"read", peak.read_gb_s.max / peak.read_gb_s.min},
                   {"copy", peak.copy_gb_s.max / peak.copy_gb_s.min}};
  json["peak_beaten"] = {{"n_rounds", beaten.n_rounds}, {"n_beaten", beaten.n_beaten}, {"most_share", beaten.most}};
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
