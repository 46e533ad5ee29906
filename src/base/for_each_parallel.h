// for_each_parallel: the same for each of a number of things, by several threads that take the next one when they are done.
//
// Thread rule: returns when all is done; the caller is one of the threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ebb {

// `act` runs once for each of 0..n-1, in no order, on up to n_threads threads. What one of them throws is thrown here, once the others
// are done.
void for_each_parallel(std::size_t n, std::int32_t n_threads, const std::function<void(std::size_t)>& act);

}  // namespace ebb
