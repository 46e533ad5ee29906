// Frame slots: single tokens' rows of one frame copied into another.
//
// It knows where a layout keeps the elements and scales of a slot; it does not know what they mean, rotates nothing and
// rounds nothing. Layouts that seal have no rows of single tokens in their sealed frames: their open layout has.
// Thread rule: a function of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cache/frame_layout.h"

namespace ebb {

// K and V of slots [from, from + n_slots) of one frame to [to, to + n_slots) of the other; the rest of it is not touched.
// Both hold layout.frame_bytes().
void copy_slots(const FrameLayout& layout, std::span<const std::byte> source, std::int32_t from,
                std::span<std::byte> target, std::int32_t to, std::int32_t n_slots);

}  // namespace ebb
