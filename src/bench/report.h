// Results on paper: tables of aligned text for people, JSON files for programs.
//
// It knows no benchmark and measures nothing. Thread rule: one thread at a time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "bench/machine.h"
#include "bench/statistics.h"

namespace ebb {

// Columns of text, as wide as their widest cell (counted in characters, not bytes).
class TextTable {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };

  struct Column {
    std::string title;
    Align align = Align::kRight;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column.
  void add_row(std::vector<std::string> cells);
  // A blank line between groups of rows.
  void add_gap() { rows_.emplace_back(); }
  // Without titles the table is a list of names and values.
  [[nodiscard]] std::string render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // empty: a gap
};

// "64.3 (61.0-65.2)"
[[nodiscard]] std::string spread_text(const Spread& spread, int n_decimals = 1);
// "1.3 GB", "64 MB", "512 B"; powers of 1000, three significant digits at most.
[[nodiscard]] std::string bytes_text(double n_bytes);
// {"median": ..., "min": ..., "max": ..., "n": ...}
[[nodiscard]] nlohmann::json spread_json(const Spread& spread);
// "43%"
[[nodiscard]] std::string percent_text(double share);
// What all figures of a run are held against, in lines for people; says so when other programs were busy.
[[nodiscard]] std::string machine_text(const Machine& machine, const Bandwidth& bandwidth);
[[nodiscard]] nlohmann::json machine_json(const Machine& machine, const Bandwidth& bandwidth);

// The file appears whole or not at all.
Status write_text(const std::filesystem::path& path, std::string_view text);
// Indented, with a newline at its end; whole or not at all.
Status write_json(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace ebb
