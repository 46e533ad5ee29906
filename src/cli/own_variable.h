// The variable of the environment that stands for a flag of ebb.
//
// Thread rule: a pure function.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace ebb {

// EBB_KV_BUDGET for "kv-budget".
[[nodiscard]] inline std::string own_variable(std::string_view flag) {
  std::string variable = "EBB_" + std::string(flag);
  std::ranges::transform(variable, variable.begin(), [](char letter) {
    return letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  });
  return variable;
}

}  // namespace ebb
