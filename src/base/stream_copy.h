// copy_past_cache: memcpy for bytes that nobody reads soon.
//
// A plain store first fetches the line that it is about to overwrite, and pushes others out of the cache; for megabytes
// of K and V on their way into frames both are wasted, a third of all traffic. On x86-64 this writes straight to memory,
// elsewhere it is memcpy. Thread rule: any thread; what was copied is seen by whoever synchronises with this one.
#pragma once

#include <cstddef>
#include <span>

namespace ebb {

// `to` has room for all of `from`, and they do not overlap. Fastest where `to` is a multiple of 16.
void copy_past_cache(std::byte* to, std::span<const std::byte> from);

}  // namespace ebb
