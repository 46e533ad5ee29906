// Grammar for numbers between bounds.
//
// A bounded number is written plainly: no exponent, no leading zeros, at most 16 digits behind the point.
//
// Thread rule: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ebb {

// A decimal number, digit by digit: no sign of zero, no leading zeros in `whole`, no trailing ones in `fraction`.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction = {};

  // The value of a JSON number's text, exponents too; nothing if it needs more than 18 digits before the point or 16
  // behind it.
  [[nodiscard]] static std::optional<Decimal> parse(std::string_view text);
  // -1, 0, 1: less, equal, greater than `other`.
  [[nodiscard]] int compare(const Decimal& other) const;
};

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

// An expression for exactly the integers (numbers) between the bounds that can be written so; nothing if there is none.
[[nodiscard]] std::optional<std::string> integer_between(const std::optional<NumberBound>& least,
                                                         const std::optional<NumberBound>& most);
[[nodiscard]] std::optional<std::string> number_between(const std::optional<NumberBound>& least,
                                                        const std::optional<NumberBound>& most);

}  // namespace ebb
