// Block map: the blocks of a session as one line of text, for people to see what is hot, what left and what came back.
#pragma once

#include <span>
#include <string>

#include "session/session.h"

namespace ebb {

// One sign for each block in position order: hot, hot in some heads, recalled in this turn (and still hot), saved, missing.
struct BlockSigns {
  const char* hot = "█";
  const char* partly = "▒";
  const char* recalled = "R";
  const char* saved = "░";
  const char* missing = "·";
};

[[nodiscard]] std::string block_map(const Session& session, std::span<const BlockIndex> recalled,
                                    const BlockSigns& signs = {});
[[nodiscard]] std::string block_map_legend(const BlockSigns& signs = {});

}  // namespace ebb
