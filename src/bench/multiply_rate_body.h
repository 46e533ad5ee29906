// What the loops of multiply_rate_*.cc have in common: instructions one behind the other that do not wait for each other.
//
// Each file gives its registers and instructions. It knows no clock. Thread rule: a pure function.
#pragma once

#include <cstdint>

namespace ebb {

// n_loops times sum = multiply(sum) for each of kSums: more than an instruction's cycles times those begun in one, or they wait for each
// other, and no more than there are registers. The operations done, n_operations of each.
template <int kSums, class Register, class Multiply>
double multiply_round(std::int64_t n_loops, int n_operations, const Multiply& multiply) {
  Register sums[kSums] = {};
  for (std::int64_t i = 0; i < n_loops; ++i) {
#pragma GCC unroll 24
    for (Register& sum : sums) {
      sum = multiply(sum);
      // Opaque after each, so that all are done.
      asm volatile("" : "+v"(sum));
    }
  }
  return static_cast<double>(n_operations) * kSums * static_cast<double>(n_loops);
}

}  // namespace ebb
