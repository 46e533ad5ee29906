// Image bytes: a session's image as it is kept on disk or sent elsewhere.
//
// It holds the token ids of the whole conversation: as secret as the text itself. Nothing of it is believed before its
// checksum holds; what it says is then checked again by Session::restore. Little-endian:
//
//   "ebbsessn", version 3 (u32), counts of tokens, unfinished tokens, parts and blocks (u32 each), turns (i32),
//   next anchor (i32), epoch (i64), counters (9 i64 in kCounters' order), tokens, unfinished tokens
//   (i32 each), parts, blocks, of a session that has a state its borders, XXH3-128 of all before it
//   part:   begin, end (i32), source (u32), pinned (u32), priority (f64), bytes of its name (u32), the name
//   block:  variant, body (16 bytes each), anchor (i32), whether it is exact (u32), epoch (i64), pinned (u32), runs (u32);
//           each run: visible (16), tokens (i32)
//   borders: how many (u32), each: name, body (16 bytes each)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "session/session.h"

namespace ebb {

[[nodiscard]] std::vector<std::byte> encode_image(const SessionImage& image);
// kUnsupported for another version, whose blocks have other names; kDamaged for anything that is not a whole, unaltered image.
Result<SessionImage> decode_image(std::span<const std::byte> bytes);

}  // namespace ebb
