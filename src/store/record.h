// Record: one block's K and V with all that is needed to tell whether they may be used again.
//
// It knows bytes, not frames. encode() gives the bytes that a tier keeps; decode() verifies every one of them and refuses
// what is damaged, foreign or of another version (law 2).
//
//   offset  bytes  what (little-endian)
//        0      8  "ebbblock"
//        8      4  format version, 1
//       12      4  n_tokens
//       16     16  model fingerprint (low, high)
//       32     16  layout fingerprint
//       48     16  exact name of the block
//       64      4  position of the first token
//       68      4  n_frames
//       72      8  bytes of frames that follow the tokens
//       80     16  XXH3-128 of bytes 0..79, tokens and frames
//       96  4 * n_tokens   token ids
//        .  ...            frames, [layer][KV head], padded as the layout says
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"

namespace ebb {

// What a record must match to be used.
struct RecordKey {
  Hash128 model;
  Hash128 layout;
  Hash128 name;  // the exact name: lineage and tokens

  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};

struct Record {
  RecordKey key;
  Position begin;
  std::vector<Token> tokens;
  std::int32_t n_frames = 0;
  std::vector<std::byte> frames;
};

[[nodiscard]] std::vector<std::byte> encode(const Record& record);
// kDamaged for anything that is not a whole, unaltered record of this version.
Result<Record> decode(std::span<const std::byte> bytes);

}  // namespace ebb
