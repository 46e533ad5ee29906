// The version of ebb; the same as the project's in CMakeLists.txt, which a test compares.
#pragma once

#include <string_view>

namespace ebb {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace ebb
