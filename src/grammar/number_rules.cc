#include "grammar/number_rules.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fmt/format.h"

namespace ebb {
namespace {

using Expression = std::optional<std::string>;

constexpr std::size_t kMaxDigits = 18;
// Numbers without a bound above have as many digits as this, or one more than their bound below.
constexpr std::size_t kFreeDigits = 16;

std::string digits(char first, char last) {
  return first == last ? fmt::format("\"{}\"", first) : fmt::format("[{}-{}]", first, last);
}

std::string any_digits(std::size_t least, std::size_t most) {
  if (most == 0) return "\"\"";
  return least == most ? fmt::format("[0-9]{{{}}}", least) : fmt::format("[0-9]{{{},{}}}", least, most);
}

std::string in_turn(const std::string& first, const std::string& second) {
  return second == "\"\"" ? first : first + " " + second;
}

Expression one_of(const std::vector<std::string>& ways) {
  if (ways.empty()) return std::nullopt;
  return ways.size() == 1 ? ways[0] : fmt::format("({})", fmt::join(ways, " | "));
}

// All texts of as many digits, from one to the other.
std::string same_length(std::string_view from, std::string_view to) {
  if (from.empty()) return "\"\"";
  const std::size_t n = from.size() - 1;
  const std::string lowest(n, '0');
  const std::string highest(n, '9');
  if (from.substr(1) == lowest && to.substr(1) == highest) return in_turn(digits(from[0], to[0]), any_digits(n, n));
  if (from[0] == to[0]) return in_turn(digits(from[0], from[0]), same_length(from.substr(1), to.substr(1)));
  std::vector<std::string> ways = {in_turn(digits(from[0], from[0]), same_length(from.substr(1), highest))};
  if (from[0] + 1 < to[0]) {
    ways.push_back(in_turn(digits(static_cast<char>(from[0] + 1), static_cast<char>(to[0] - 1)), any_digits(n, n)));
  }
  ways.push_back(in_turn(digits(to[0], to[0]), same_length(lowest, to.substr(1))));
  return *one_of(ways);
}

std::uint64_t number_of(const std::string& whole) { return std::strtoull(whole.c_str(), nullptr, 10); }

// Whole numbers from `from` to `to`, or without end.
Expression whole_between(std::uint64_t from, std::optional<std::uint64_t> to) {
  if (to && *to < from) return std::nullopt;
  std::vector<std::string> ways;
  if (from == 0) {
    ways.emplace_back("\"0\"");
    if (to == 0U) return one_of(ways);
    from = 1;
  }
  const std::string least = std::to_string(from);
  if (!to) {
    const std::size_t n = least.size();
    if (least != "1") ways.push_back(same_length(least, std::string(n, '9')));
    const std::size_t first = least == "1" ? 0 : n;
    ways.push_back(in_turn("[1-9]", any_digits(first, std::max(first, kFreeDigits - 1))));
    return one_of(ways);
  }
  const std::string most = std::to_string(*to);
  for (std::size_t n = least.size(); n <= most.size(); ++n) {
    ways.push_back(same_length(n == least.size() ? least : "1" + std::string(n - 1, '0'),
                               n == most.size() ? most : std::string(n, '9')));
  }
  return one_of(ways);
}

// What is left of a bound on the digits behind the point, once the digits before it were equal to its own.
struct Rest {
  std::string_view digits;
  bool exclusive = false;
};

Expression fraction_digits(const std::optional<Rest>& least, const std::optional<Rest>& most, std::size_t n_left,
                           bool needs_digit);

// The digits from here on, where the next is `d`.
std::optional<Rest> behind(const std::optional<Rest>& bound, char d) {
  if (!bound) return std::nullopt;
  const char own = bound->digits.empty() ? '0' : bound->digits[0];
  if (own != d) return std::nullopt;
  return Rest{bound->digits.empty() ? bound->digits : bound->digits.substr(1), bound->exclusive};
}

// Zeros, and then a digit above zero.
Expression above_zero(std::size_t n_left) {
  if (n_left == 0) return std::nullopt;
  return fmt::format("\"0\"{{0,{}}} [1-9] {}", n_left - 1, any_digits(0, kFreeDigits));
}

Expression fraction_digits(const std::optional<Rest>& least, const std::optional<Rest>& most, std::size_t n_left,
                           bool needs_digit) {
  if (least && least->digits.empty() && !least->exclusive) return fraction_digits({}, most, n_left, needs_digit);
  if (!least && !most) return any_digits(needs_digit ? 1 : 0, std::max<std::size_t>(n_left, 1));
  if (most && most->digits.empty()) {  // only zeros may follow, or nothing may
    if (most->exclusive || least) return std::nullopt;
    return fmt::format("\"0\"{{{},{}}}", needs_digit ? 1 : 0, std::max<std::size_t>(n_left, 1));
  }
  if (least && least->digits.empty() && !most) return above_zero(std::max<std::size_t>(n_left, 1));
  std::vector<std::string> ways;
  if (!least && !needs_digit) ways.emplace_back("\"\"");  // `most` has digits, so that zero lies below it
  if (n_left == 0) return one_of(ways);
  const char low = least && !least->digits.empty() ? least->digits[0] : '0';
  const char high = most ? most->digits[0] : '9';
  const auto add = [&](char d) {
    const Expression rest = fraction_digits(behind(least, d), behind(most, d), n_left - 1, false);
    if (rest) ways.push_back(in_turn(digits(d, d), *rest));
  };
  if (low > high) return one_of(ways);
  // The digits at the bounds go on under them, those between are free.
  const char first_free = static_cast<char>(low + (least ? 1 : 0));
  const char last_free = static_cast<char>(high - (most ? 1 : 0));
  if (least) add(low);
  if (most && (high != low || !least)) add(high);
  if (first_free <= last_free) ways.push_back(in_turn(digits(first_free, last_free), any_digits(0, n_left - 1)));
  return one_of(ways);
}

bool is_zero(std::string_view digits) { return digits.find_first_not_of('0') == std::string_view::npos; }

// The point and what is behind it, or nothing.
Expression fraction(const std::optional<Rest>& least, const std::optional<Rest>& most) {
  std::vector<std::string> ways;
  const bool zero_is_in = (!least || (is_zero(least->digits) && !least->exclusive)) &&
                          (!most || !is_zero(most->digits) || !most->exclusive);
  if (zero_is_in) ways.emplace_back("\"\"");
  if (const Expression rest = fraction_digits(least, most, kFreeDigits, true)) ways.push_back("\".\" " + *rest);
  return one_of(ways);
}

// Numbers of one sign, by their magnitude.
Expression magnitude_between(const NumberBound& least, const std::optional<NumberBound>& most) {
  const std::uint64_t from = number_of(least.value.whole);
  const Rest low{least.value.fraction, least.exclusive};
  std::vector<std::string> ways;
  const auto add = [&](const Expression& whole, const Expression& rest) {
    if (whole && rest) ways.push_back(in_turn(*whole, *rest));
  };
  if (!most) {
    add(whole_between(from, from), fraction(low, {}));
    add(whole_between(from + 1, {}), fraction({}, {}));
    return one_of(ways);
  }
  const std::uint64_t to = number_of(most->value.whole);
  const Rest high{most->value.fraction, most->exclusive};
  if (from > to) return std::nullopt;
  if (from == to) {
    add(whole_between(from, from), fraction(low, high));
    return one_of(ways);
  }
  add(whole_between(from, from), fraction(low, {}));
  if (from + 1 < to) add(whole_between(from + 1, to - 1), fraction({}, {}));
  add(whole_between(to, to), fraction({}, high));
  return one_of(ways);
}

NumberBound magnitude(const NumberBound& bound) {
  NumberBound copy = bound;
  copy.value.negative = false;
  return copy;
}

// The least whole magnitude that the bound lets in from below, or the greatest from above (then maybe none).
std::optional<std::uint64_t> whole_from(const NumberBound& bound) {
  const std::uint64_t whole = number_of(bound.value.whole);
  return whole + (bound.exclusive || !bound.value.fraction.empty() ? 1 : 0);
}
std::optional<std::uint64_t> whole_to(const NumberBound& bound) {
  const std::uint64_t whole = number_of(bound.value.whole);
  if (!bound.exclusive || !bound.value.fraction.empty()) return whole;
  if (whole == 0) return std::nullopt;
  return whole - 1;
}

Expression whole_magnitude_between(const NumberBound& least, const std::optional<NumberBound>& most) {
  const auto from = whole_from(least);
  if (!most) return whole_between(*from, {});
  const auto to = whole_to(*most);
  return to ? whole_between(*from, to) : std::nullopt;
}

template <class Between>
Expression both_signs(const std::optional<NumberBound>& least, const std::optional<NumberBound>& most,
                      Between between) {
  std::vector<std::string> ways;
  const NumberBound zero{.value = {}, .exclusive = false};
  if (!most || !most->value.negative) {
    const NumberBound from = least && !least->value.negative ? *least : zero;
    if (const Expression way = between(from, most)) ways.push_back(*way);
  }
  if (!least || least->value.negative) {
    // Mirrored: the upper bound is the least magnitude. Zero has no sign.
    const NumberBound from = most && most->value.negative ? magnitude(*most) : NumberBound{{}, true};
    const std::optional<NumberBound> to = least ? std::optional(magnitude(*least)) : std::nullopt;
    if (const Expression way = between(from, to)) ways.push_back("\"-\" " + *way);
  }
  return one_of(ways);
}

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal decimal;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  const long exponent = e == text.npos ? 0 : std::strtol(std::string(text.substr(e + 1)).c_str(), nullptr, 10);
  if (exponent > 40 || exponent < -40) return std::nullopt;
  const std::string_view mantissa = text.substr(0, e);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string all(mantissa.substr(0, point));
  if (point < mantissa.size()) all += mantissa.substr(point + 1);
  long n_whole = static_cast<long>(point) + exponent;
  while (n_whole < 1) {
    all.insert(all.begin(), '0');
    ++n_whole;
  }
  if (all.size() < static_cast<std::size_t>(n_whole)) all.resize(static_cast<std::size_t>(n_whole), '0');
  decimal.whole = all.substr(0, static_cast<std::size_t>(n_whole));
  decimal.fraction = all.substr(static_cast<std::size_t>(n_whole));
  decimal.whole.erase(0, std::min(decimal.whole.find_first_not_of('0'), decimal.whole.size() - 1));
  while (!decimal.fraction.empty() && decimal.fraction.back() == '0') decimal.fraction.pop_back();
  if (decimal.whole.size() > kMaxDigits || decimal.fraction.size() > kFreeDigits) return std::nullopt;
  decimal.negative = negative && !(decimal.whole == "0" && decimal.fraction.empty());
  return decimal;
}

int Decimal::compare(const Decimal& other) const {
  if (negative != other.negative) return negative ? -1 : 1;
  int order = 0;
  if (whole != other.whole) {
    order = number_of(whole) < number_of(other.whole) ? -1 : 1;
  } else if (fraction != other.fraction) {
    order = fraction < other.fraction ? -1 : 1;
  }
  return negative ? -order : order;
}

std::optional<std::string> integer_between(const std::optional<NumberBound>& least,
                                           const std::optional<NumberBound>& most) {
  return both_signs(least, most, whole_magnitude_between);
}

std::optional<std::string> number_between(const std::optional<NumberBound>& least,
                                          const std::optional<NumberBound>& most) {
  return both_signs(least, most, magnitude_between);
}

}  // namespace ebb
