#include "plain/named_arrays.h"

#include <algorithm>
#include <cmath>

namespace ebb {

Result<NamedArrays> NamedArrays::read(JsonFields& fields, std::span<const Numbers> arrays,
                                      std::span<const std::string_view> known) {
  NamedArrays named;
  named.names_ = fields.texts("arrays", known.size());
  EBB_RETURN_IF_ERROR(fields.status());
  if (named.names_.size() != arrays.size()) {
    return error(Code::kInvalidArgument, "Field 'arrays': names {} arrays, and {} came", named.names_.size(),
                 arrays.size());
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string& name = named.names_[i];
    if (std::ranges::find(known, name) == known.end()) {
      return error(Code::kInvalidArgument, "Field 'arrays': '{}' is not known here; there are {}", name.substr(0, 64),
                   fmt::join(known, ", "));
    }
    if (std::ranges::count(named.names_, name) > 1) {
      return error(Code::kInvalidArgument, "Field 'arrays': '{}' is given twice", name);
    }
  }
  named.arrays_.assign(arrays.begin(), arrays.end());
  return named;
}

const Numbers* NamedArrays::find(std::string_view name) const {
  const auto at = std::ranges::find(names_, name);
  return at == names_.end() ? nullptr : &arrays_[static_cast<std::size_t>(at - names_.begin())];
}

Result<Numbers> NamedArrays::get(std::string_view name, std::size_t n, std::string_view shape) const {
  const Numbers* const numbers = find(name);
  if (numbers == nullptr) return error(Code::kInvalidArgument, "array '{}' is missing; give {}", name, shape);
  if (numbers->size() == n) return *numbers;
  return error(Code::kInvalidArgument, "array '{}' has {} numbers, and {} are {}", name, numbers->size(), shape, n);
}

Result<std::vector<std::int32_t>> NamedArrays::get_whole(std::string_view name, std::size_t n, std::string_view shape,
                                                         std::int32_t most) const {
  EBB_RETURN_IF_ERROR(get(name, n, shape).status());
  return get_whole(name, most);
}

Result<std::vector<std::int32_t>> NamedArrays::get_whole(std::string_view name, std::int32_t most) const {
  const Numbers* const numbers = find(name);
  std::vector<std::int32_t> whole;
  if (numbers == nullptr) return whole;
  EBB_RETURN_IF_ERROR(check_numbers(name, *numbers, 0.0, most));
  for (const double number : *numbers) {
    if (number != std::floor(number)) {
      return error(Code::kInvalidArgument, "array '{}': {} is no whole number", name, number);
    }
    whole.push_back(static_cast<std::int32_t>(number));
  }
  return whole;
}

Status check_numbers(std::string_view name, Numbers numbers, double least, double most) {
  const auto is_wrong = [&](double number) { return !(number >= least && number <= most); };
  const auto wrong = std::ranges::find_if(numbers, is_wrong);
  if (wrong == numbers.end()) return {};
  return error(Code::kInvalidArgument, "array '{}': {} at {}; give numbers from {} to {}", name, *wrong,
               wrong - numbers.begin(), least, most);
}

}  // namespace ebb
