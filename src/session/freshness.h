// Freshness: of what stands behind an edit as it did before, what is to be computed again and what may stay.
//
//   before   |--- kept ---|~~ changed ~~|-- a --|-- b --|-- c --|          slices; b relies on what changed, c on b
//   now      |--- kept ---|~ new ~|-- a --|## b ##|-- c --|                b is computed again; if it comes out as it was, c stays
//
// A slice is stale where it stands right behind an edit, where it relies on a slice that has changed (session/reliances.h) or no longer
// stands before it, or where nobody knows on what it relies. What was computed again and came out another has changed, too: so what
// depends on what depends on an edit is found, as far as the edit reaches and no further.
//
// It knows positions before the edit and now, no K and V. Thread rule: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/span.h"
#include "session/match.h"
#include "session/reliances.h"

namespace ebb {

// Of rows that were computed again, the most that one differs from what it was, as a share of what rows are long (Keeper::change_of);
// above it they have changed. More: what follows from what changed is believed. Less: what only stands elsewhere now counts as changed.
inline constexpr double kMostSame = 0.3;

class Freshness {
 public:
  // `before` says what slices relied on; of what is edited, runs stand elsewhere now: positions of both, in the order of now.
  Freshness(Reliances before, Span edited, std::vector<TokenRun> runs);

  // Of tokens within one slice of before, in a run, that stand there now.
  [[nodiscard]] bool is_stale(Span before, Position now) const;
  // What was computed again came out another.
  void note_changed(Span before);
  // Where the slices are now that tokens within one slice of before rely on; nullopt: anywhere.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> reliances_now(Span before) const;
  // Cuts tokens of before at slices: the first piece.
  [[nodiscard]] Span first_piece(Span before) const;

 private:
  [[nodiscard]] bool is_behind_edit(Position before) const;
  void add_now(std::int32_t slice, std::vector<std::int32_t>& now) const;

  Reliances before_;
  Position edit_;
  std::vector<TokenRun> runs_;
  // [slice of before] where the last of its tokens stands now; behind every position where one does not, or has changed.
  std::vector<Position> stand_until_;
};

}  // namespace ebb
