// NamedArrays: the flat arrays that come with a question, by the names that its "arrays" gives them.
//
// Nobody's lengths are believed: whoever asks for an array says how long it must be. Thread rule: a value; the numbers are the
// caller's and must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_fields.h"

namespace ebb {

using Numbers = std::span<const double>;

class NamedArrays {
 public:
  // kInvalidArgument where names and arrays are not equally many, a name comes twice or is not one of `known`.
  static Result<NamedArrays> read(JsonFields& fields, std::span<const Numbers> arrays,
                                  std::span<const std::string_view> known);

  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  // kInvalidArgument where it is not there, or of another length; `shape` tells that in words.
  [[nodiscard]] Result<Numbers> get(std::string_view name, std::size_t n, std::string_view shape) const;
  // Whole numbers of a bound that ints hold.
  [[nodiscard]] Result<std::vector<std::int32_t>> get_whole(std::string_view name, std::size_t n,
                                                            std::string_view shape, std::int32_t most) const;
  // As many as there are; none where it is missing.
  [[nodiscard]] Result<std::vector<std::int32_t>> get_whole(std::string_view name, std::int32_t most) const;
  // Of any length; null where it is missing.
  [[nodiscard]] const Numbers* find(std::string_view name) const;

 private:
  std::vector<std::string> names_;
  std::vector<Numbers> arrays_;
};

// All of them finite and from `least` to `most`; else the error names the array and the place.
[[nodiscard]] Status check_numbers(std::string_view name, Numbers numbers, double least, double most);

}  // namespace ebb
