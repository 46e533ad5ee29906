#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ebb {

void check_failed(const char* file, int line, std::string_view law, const std::string& values) {
  std::fprintf(stderr, "ebb: broken law at %s:%d: %.*s%s%s\n", file, line, static_cast<int>(law.size()), law.data(),
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

}  // namespace ebb
