#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include "cli/command_line.h"

namespace {

// Records are allocated and freed at the rate of eviction. Given back to the system each time, as glibc does by default,
// their pages cost several times what copying the bytes does. Larger: more of what was freed stays with the process.
[[maybe_unused]] constexpr int kKeptBytes = 32 << 20;

}  // namespace

int main(int argc, char** argv) {
#ifdef M_TRIM_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
#endif
  return ebb::run_command_line(argc, argv);
}
