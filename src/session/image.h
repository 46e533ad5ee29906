// Image bytes: a session's image as it is kept on disk or sent elsewhere.
//
// It holds the token ids of the whole conversation: as secret as the text itself. Nothing of it is believed before its
// checksum holds; what it says is then checked again by Session::restore. Little-endian:
//
//   "ebbsessn", version 8 (u32), counts of tokens, unfinished tokens, parts and blocks (u32 each), turns (i32),
//   next anchor (i32), epoch (i64), counters (9 i64 in kCounters' order), tokens, unfinished tokens
//   (i32 each), parts, blocks, notes on attention, on slices, on queries, what slices rely on, of a session that has a state its borders, XXH3-128 of all
//   before it
//   part:   begin, end (i32), source (u32), pinned (u32), priority (f64), bytes of its name (u32), the name
//   block:  variant, body (16 bytes each), anchor (i32), whether it is exact (u32), epoch (i64), pinned (u32), runs (u32);
//           each run: visible (16), tokens (i32)
//   attention: how many (u32), each: head, block (i32), total, its queries, of the window the sum and the most, last, reread (f32
//            each), queries in the window (i32); behind them whether totals are pooled (u32; since version 7, before it none were)
//   slices:  slices of a block (i32; 0: nothing follows), where the last block ends (i32), which columns there are (u32, a bit
//            each), and those (f32 each; policy/attention_notes.h)
//   queries: numbers of a query (u32; 0: nothing follows), heads (u32), how many queries each had (i64 each), their sums and the
//            sums of their products (f64 each; model/query_moments.h)
//   what slices rely on (since version 8): tokens of a slice (i32; 0: nothing follows), where the last ends (i32), of each slice how
//            many others (u32; 2^32 - 1: all), and those (i32 each; session/reliances.h)
//   borders: how many (u32), each: name, body (16 bytes each)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "session/session.h"

namespace ebb {

[[nodiscard]] std::vector<std::byte> encode_image(const SessionImage& image);
// Versions 7 and 6 are read too, and 5, which has no notes on slices and queries. kUnsupported for others, whose blocks have other names;
// kDamaged for anything that is not a whole, unaltered image.
Result<SessionImage> decode_image(std::span<const std::byte> bytes);

}  // namespace ebb
