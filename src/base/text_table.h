// TextTable: columns of text for people. It measures nothing and prints nothing. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

// "1.3 GB", "64 MB", "512 B"; powers of 1000, three significant digits at most.
[[nodiscard]] std::string bytes_text(double n_bytes);
// "43%"
[[nodiscard]] std::string percent_text(double share);

}  // namespace ebb
