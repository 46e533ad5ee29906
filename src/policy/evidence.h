// Evidence: the numbers that policies may look at. Never tensors, never text.
//
// A snapshot of one session's blocks, taken before a choice; choosing changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/span.h"

namespace ebb {

// Who said it.
enum class Source : std::uint8_t { kSystem, kUser, kAssistant, kTool };

// How firmly a block is held.
enum class Hold : std::uint8_t {
  kNone,
  kProtected,  // a sink, recent, the system's, or of the reply under way: leaves only when nothing else can
  kKept,       // asked for by the turn under way: leaves last
  kPinned,     // by the caller, or still written to: never leaves
};

// The head in evidence about a block as a whole.
inline constexpr std::int32_t kAllHeads = -1;

struct BlockEvidence {
  BlockIndex block;
  // [layer][KV head], where a policy chooses by head; kAllHeads: wherever the block is hot.
  std::int32_t head = kAllHeads;
  // That come free when it leaves.
  std::int32_t n_frames = 1;
  Span span;
  Hold hold = Hold::kNone;
  Source source = Source::kUser;
  // Given by the caller; 1 is normal, more stays longer.
  double priority = 1.0;
  // The session's step in which the block was last written, recalled or notably looked at by attention.
  std::int64_t last_access = 0;
  // What attention gives it lately: share of the mass, decayed from step to step; none where nobody measures it.
  std::optional<double> attention;
  // Cosine, 0..1, of its words and what the session's last messages are about; none where there are no words.
  std::optional<double> focus;
  // 1 when it was recalled, fading with each turn.
  double recovery = 0.0;
};

struct Evidence {
  // Hot blocks in position order; by head, those of a block one after the other.
  std::vector<BlockEvidence> blocks;
  // Where the next token goes.
  Position end;
};

}  // namespace ebb
