// Blocks: what a session's past is cut into, and where each piece is.
#pragma once

#include <cstdint>
#include <string>

namespace ebb::api {

enum class BlockState {
  kHot,      // in the KV cache, and nowhere else yet
  kClean,    // in the KV cache and in the cold store: evicting it costs nothing
  kPartly,   // in the KV cache in some heads only, where a policy chooses by head or layer
  kSaved,    // in the cold store: recalling it costs a copy
  kMissing,  // neither: recalling it costs a forward pass
};

struct Block {
  std::int32_t index = 0;
  // Positions [begin, end) of the session; given once and never reused.
  std::int32_t begin = 0;
  std::int32_t end = 0;
  // The part that holds most of it, and its place there: "file:config.py#0".
  std::string name;
  BlockState state = BlockState::kMissing;
};

}  // namespace ebb::api
