// Parameters: what a policy may be told besides its name, as a table that reads, checks and explains them.
//
// They are numbers; a switch is 0 or 1. Text form: "window=16,kernel=5", behind a name "NAME:window=16,kernel=5".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ebb {

struct Parameter {
  std::string_view name;
  // Where it is not given.
  double value = 0.0;
  double least = 0.0;
  double most = 0.0;
  bool is_whole = false;
  bool is_odd = false;
  std::string_view summary;
};

// One value for each parameter of a table, all inside their bounds.
class ParameterValues {
 public:
  // The defaults. The table must outlive the values.
  explicit ParameterValues(std::span<const Parameter> table);
  // kInvalidArgument says which are taken, or between which bounds; each may be given once.
  static Result<ParameterValues> parse(std::span<const Parameter> table, std::string_view text);
  // Of "NAME" or "NAME:parameters"; errors begin with `what`.
  static Result<ParameterValues> parse_behind_name(std::span<const Parameter> table, std::string_view spec,
                                                   std::string_view what);

  // `name` must be in the table.
  [[nodiscard]] double operator[](std::string_view name) const;
  [[nodiscard]] std::int32_t whole(std::string_view name) const { return static_cast<std::int32_t>((*this)[name]); }
  // Those that are not at their defaults, as parse() takes them.
  [[nodiscard]] std::string text() const;

 private:
  std::span<const Parameter> table_;
  std::vector<double> values_;
};

// NAME of "NAME" or "NAME:parameters".
[[nodiscard]] inline std::string_view spec_name(std::string_view spec) { return spec.substr(0, spec.find(':')); }

}  // namespace ebb
