#include "bench/report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace ebb {
namespace {

constexpr std::string_view kColumnGap = "  ";

// Characters of valid UTF-8: all bytes but those that continue one.
std::size_t n_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, TextTable::Align align) {
  const std::string space(width - n_characters(text), ' ');
  return align == TextTable::Align::kLeft ? text + space : space + text;
}

}  // namespace

void TextTable::add_row(std::vector<std::string> cells) {
  EBB_CHECK(cells.size() == columns_.size() && !cells.empty(), "{} cells in {} columns", cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::render() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  const bool has_titles = std::any_of(titles.begin(), titles.end(), [](const auto& title) { return !title.empty(); });
  std::vector<std::vector<std::string>> lines = rows_;
  if (has_titles) lines.insert(lines.begin(), titles);

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], n_characters(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) row += kColumnGap;
      row += padded(line[i], widths[i], columns_[i].align);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

std::string spread_text(const Spread& spread, int n_decimals) {
  return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", spread.median, n_decimals, spread.min, n_decimals, spread.max,
                     n_decimals);
}

std::string bytes_text(double n_bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (n_bytes >= 999.5 && unit + 1 < kUnits.size()) {
    n_bytes /= 1000.0;
    ++unit;
  }
  const int n_decimals = unit == 0 || n_bytes >= 99.95 ? 0 : n_bytes >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", n_bytes, n_decimals, kUnits[unit]);
}

nlohmann::json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}, {"n", spread.n}};
}

std::string percent_text(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

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

nlohmann::json machine_json(const Machine& machine, const Bandwidth& bandwidth) {
  return {{"cpu", machine.cpu},
          {"n_cpus", machine.n_cpus},
          {"memory_bytes", machine.memory_bytes},
          {"last_cache_bytes", machine.last_cache_bytes},
          {"load_1min", machine.load_1min},
          {"read_gb_per_s", spread_json(bandwidth.read_gb_s)},
          {"copy_gb_per_s", spread_json(bandwidth.copy_gb_s)}};
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
