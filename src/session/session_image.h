// SessionImage: all of a session but its hot K and V, as a value: what a fork or a later process starts from (session/image.h has its
// bytes). Blocks come back from the cold store. Thread rule: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/query_moments.h"
#include "policy/attention_notes.h"
#include "session/keeper.h"
#include "session/parts.h"
#include "session/reliances.h"
#include "session/snapshots.h"

namespace ebb {

struct SessionImage {
  struct Block {
    BlockRecordInfo info;
    bool pinned = false;
    // How many steps ago it was last accessed, the share of attention it had, how fresh its recall is.
    std::int64_t age = 0;
    double attention = 0.0;
    double recovery = 0.0;
  };

  std::vector<Token> tokens;
  std::vector<Token> unfinished;
  std::vector<Part> parts;
  std::vector<Block> blocks;
  Position next_anchor;
  std::int64_t epoch = 0;
  // Where the session has a state: its snapshots behind each full block.
  std::vector<Snapshots::Border> borders;
  // What the policy had noted of attention.
  AttentionImage attention;
  // What it had noted of queries.
  QueryImage queries;
  // What its slices rely on, where that was noted.
  std::optional<Reliances> reliances;
  // Turns that said something.
  std::int32_t n_turns = 0;
  // Counting goes on from there.
  SessionStats stats;
};

}  // namespace ebb
