#include "base/text_table.h"

#include <algorithm>
#include <array>
#include <string_view>

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

std::string percent_text(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

}  // namespace ebb
