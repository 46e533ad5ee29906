// Lane image: a session's image with what it needs to be taken up again: which model and frame layout its blocks are
// of, and whose it is. What a session is exported as, and what lies on disk for a later process.
//
// It holds the token ids of the whole conversation. K and V are not in it: they come from the cold store by exact name,
// or are computed again. Nothing of it is believed before its checksum holds. Little-endian:
//
//   "ebb lane", version 3 (u32), block size (u32), model, layout (16 bytes each), saved at (i64, seconds since 1970),
//   owner, id, public id, own policy, sparse prompt (u32 and so many bytes each; version 1 has no policy, 1 and 2 no sparse
//   prompt), the image (u32 and so many bytes; session/image.h), XXH3-128 of all before it
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "session/image.h"

namespace ebb {

struct LaneImage {
  Hash128 model;
  Hash128 layout;
  std::int32_t block_size = 0;
  std::int64_t saved_at = 0;
  // Empty in an export: who takes it in becomes its owner.
  std::string owner;
  std::string id;
  std::string public_id;
  // As make_policy() takes it; empty: none of its own. Not believed: who takes it in looks whether it may be chosen.
  std::string policy;
  // How its first prompt was read. Compared, and never carried out.
  std::string sparse_prompt = "none";
  SessionImage image;

  // Whether its blocks are of this engine's model and layout.
  [[nodiscard]] bool is_of(const Engine& engine) const;
};

// The image of a session of this engine, saved now.
[[nodiscard]] LaneImage make_lane_image(const Engine& engine, SessionImage image);

[[nodiscard]] std::vector<std::byte> encode_lane_image(const LaneImage& lane);
// kUnsupported for another version, kDamaged for anything that is not a whole, unaltered lane image.
Result<LaneImage> decode_lane_image(std::span<const std::byte> bytes);

}  // namespace ebb
