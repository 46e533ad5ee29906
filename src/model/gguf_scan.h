// scan_gguf: a bounded walk over the header of a GGUF file, before gguf.h sees it.
//
// gguf.h checks much, but it allocates what counts ask for, stops the process on some contradictions, and says in the
// log, not to us, what was wrong. The walk reads each byte of the header at most once, allocates only the names, and
// refuses what gguf.h would refuse, what a model file never needs, and tensors that do not lie inside the file.
//
//   magic "GGUF", version u32, n_tensors u64, n_keys u64
//   n_keys    x  name, type u32, value                (string: u64 length, bytes; array: type u32, count u64, elements)
//   n_tensors x  name, n_dims u32, n_dims x u64, type u32, offset u64
//   padding to the alignment; the tensors' bytes, each padded, in the order of the table
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ebb {

// More of any is no model that ebb could load, but memory and time that a hostile header costs.
inline constexpr std::uint64_t kMaxGgufKeys = 1U << 16U;
inline constexpr std::uint64_t kMaxGgufTensors = 1U << 16U;
// Over all arrays of a file: a vocabulary of 262144 tokens has 1.3 million in its four.
inline constexpr std::uint64_t kMaxGgufArrayElements = 1U << 22U;
inline constexpr std::uint64_t kMaxGgufStringBytes = 1U << 26U;

// `file` names the file in messages.
Status scan_gguf(std::span<const std::byte> bytes, const std::string& file);

// Names from a file, fit for a one-line message: printable ASCII, cut at 64 characters.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace ebb
