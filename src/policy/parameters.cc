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

// Letters of what was given that an error repeats.
constexpr std::size_t kMostEchoed = 64;

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
  const bool is_whole = value == std::floor(value);
  const bool is_odd = is_whole && std::fmod(value, 2.0) == 1.0;
  if (fits && (is_whole || !parameter.is_whole) && (is_odd || !parameter.is_odd)) return value;
  const char* const kind = parameter.is_odd ? "an odd number" : parameter.is_whole ? "a whole number" : "a number";
  return error(Code::kInvalidArgument, "{} of '{}'; give {} from {} to {}", parameter.name, text.substr(0, kMostEchoed),
               kind, parameter.least, parameter.most);
}

}  // namespace

ParameterValues::ParameterValues(std::span<const Parameter> table) : table_(table) {
  std::ranges::transform(table, std::back_inserter(values_), &Parameter::value);
}

Result<ParameterValues> ParameterValues::parse(std::span<const Parameter> table, std::string_view text) {
  ParameterValues values(table);
  std::vector<bool> is_given(table.size(), false);
  for (std::string_view rest = text; !text.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t mark = std::min(item.find('='), item.size());
    const auto at = std::ranges::find(table, item.substr(0, mark), &Parameter::name);
    if (at == table.end() || mark == item.size()) {
      return error(Code::kInvalidArgument, "'{}' is no parameter with a value; {}", item.substr(0, kMostEchoed),
                   describe(table));
    }
    const auto index = static_cast<std::size_t>(at - table.begin());
    if (is_given[index]) return error(Code::kInvalidArgument, "{} is given twice; give it once", at->name);
    is_given[index] = true;
    EBB_ASSIGN_OR_RETURN(values.values_[index], parse_value(*at, item.substr(mark + 1)));
    if (item.size() == rest.size()) break;
    rest.remove_prefix(item.size() + 1);
  }
  return values;
}

Result<ParameterValues> ParameterValues::parse_behind_name(std::span<const Parameter> table, std::string_view spec,
                                                           std::string_view what) {
  const std::string_view name = spec_name(spec);
  if (spec.ends_with(':')) return error(Code::kInvalidArgument, "{}{}: no parameter behind the colon", what, name);
  Result<ParameterValues> values = parse(table, name.size() == spec.size() ? "" : spec.substr(name.size() + 1));
  if (!values.ok()) return error(Code::kInvalidArgument, "{}{}: {}", what, name, values.status().message());
  return values;
}

double ParameterValues::operator[](std::string_view name) const {
  const auto at = std::ranges::find(table_, name, &Parameter::name);
  EBB_CHECK(at != table_.end(), "no parameter '{}'", name);
  return values_[static_cast<std::size_t>(at - table_.begin())];
}

std::string ParameterValues::text() const {
  std::string text;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i] != table_[i].value) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", table_[i].name, values_[i]);
    }
  }
  return text;
}

}  // namespace ebb
