// EBB_CHECK: a law that only a bug of ours can break.
//
// A broken check prints the law and the values and stops the process. It must be unreachable from input, from files and
// from sick disks: those are expected outcomes and travel as Status (base/status.h). Checks stay on in release builds.
#pragma once

#include <string>
#include <string_view>

namespace ebb {

[[noreturn]] void check_failed(const char* file, int line, std::string_view law, const std::string& values);

}  // namespace ebb

// EBB_CHECK(n_hot <= budget, "{} hot frames of {}", n_hot, budget)
#define EBB_CHECK(condition, ...)                                                            \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      ::ebb::check_failed(__FILE__, __LINE__, #condition, ::ebb::check_values(__VA_ARGS__)); \
    }                                                                                        \
  } while (false)

#include <fmt/format.h>

namespace ebb {

inline std::string check_values() { return {}; }

template <class... Args>
std::string check_values(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

}  // namespace ebb
