// Failing memory: an allocation of this test program that throws, as if memory were short.
//
// It replaces operator new of the whole program, which is as before until it is told. What allocates by malloc (ggml) never
// fails. Thread rule: each thread has its own.
#pragma once

#include <cstdint>

namespace ebb {

// From now on, of this thread's allocations the n-th throws std::bad_alloc, counted from 0; the others don't.
void fail_allocation(std::int64_t n);
// None throws from now on. Whether one has.
bool stop_failing();

}  // namespace ebb
