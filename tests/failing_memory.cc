#include "tests/failing_memory.h"

#include <cstdlib>
#include <new>

namespace {

constexpr std::int64_t kNever = -1;

thread_local std::int64_t n_until_failure = kNever;
thread_local bool has_failed = false;

}  // namespace

namespace ebb {

void fail_allocation(std::int64_t n) {
  has_failed = false;
  n_until_failure = n;
}

bool stop_failing() {
  n_until_failure = kNever;
  return has_failed;
}

}  // namespace ebb

void* operator new(std::size_t n_bytes) {
  if (n_until_failure != kNever && n_until_failure-- == 0) {
    has_failed = true;
    throw std::bad_alloc();
  }
  if (void* const bytes = std::malloc(n_bytes == 0 ? 1 : n_bytes); bytes != nullptr) return bytes;
  throw std::bad_alloc();
}

// What the standard library has of these calls the one above; a sanitizer's own do not, and their bytes would be freed below.
void* operator new(std::size_t n_bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(n_bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void operator delete(void* bytes, const std::nothrow_t&) noexcept { std::free(bytes); }
void operator delete(void* bytes) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::size_t) noexcept { std::free(bytes); }
