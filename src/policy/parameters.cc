#include "policy/parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>

#include "base/check.h"

namespace ebb {
namespace {

std::string describe(std::span<const Parameter> table) {
  if (table.empty()) return "it takes none";
  std::string text;
  for (const Parameter& p : table) {
    text += fmt::format("{}{} ({} to {}, default {})", text.empty() ? "" : ", ", p.name, p.least, p.most, p.value);
  }
  return text;
}

Result<double> parse_value(const Parameter& parameter, std::string_view text) {
  double value = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = failure == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  const bool fits = is_number && value >= parameter.least && value <= parameter.most;
  if (fits && (!parameter.is_whole || value == std::floor(value))) return value;
  return error(Code::kInvalidArgument, "{} of '{}'; give {} from {} to {}", parameter.name, text,
               parameter.is_whole ? "a whole number" : "a number", parameter.least, parameter.most);
}

}  // namespace

ParameterValues::ParameterValues(std::span<const Parameter> table) : table_(table) {
  std::ranges::transform(table, std::back_inserter(values_), &Parameter::value);
}

Result<ParameterValues> ParameterValues::parse(std::span<const Parameter> table, std::string_view text) {
  ParameterValues values(table);
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t mark = std::min(item.find('='), item.size());
    const auto at = std::ranges::find(table, item.substr(0, mark), &Parameter::name);
    if (at == table.end() || mark == item.size()) {
      return error(Code::kInvalidArgument, "'{}' is no parameter with a value; {}", item, describe(table));
    }
    EBB_ASSIGN_OR_RETURN(values.values_[static_cast<std::size_t>(at - table.begin())],
                         parse_value(*at, item.substr(mark + 1)));
  }
  return values;
}

double ParameterValues::operator[](std::string_view name) const {
  const auto at = std::ranges::find(table_, name, &Parameter::name);
  EBB_CHECK(at != table_.end(), "no parameter '{}'", name);
  return values_[static_cast<std::size_t>(at - table_.begin())];
}

}  // namespace ebb
