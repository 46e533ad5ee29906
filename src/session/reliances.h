// Reliances: of each slice of a session, which earlier slices it relies on (model/step_reliances.h).
//
// A client that changes something early in its history leaves most of what stands behind it as it was. What relied on what has
// changed is to be computed again; the rest need only be turned to its new place (session/freshness.h). What no step of this session
// computed, since another session had, and of which no record says more (session/reliance_records.h), relies on all that stands before
// it, as far as is known; so does what relies on more than kMostReliances slices.
//
// Bytes: 32 for each 16 tokens and 4 for each slice that they rely on, some 2 to 4. A step costs what its rows found; a cut what it cuts.
// It knows positions, no tokens and no frames. Thread rule: as its session's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/byte_io.h"
#include "base/ids.h"
#include "base/span.h"
#include "base/status.h"
#include "model/step_reliances.h"

namespace ebb {

// More: more bytes for slices that look everywhere. Less: those are computed again wherever an edit was.
inline constexpr std::size_t kMostReliances = 32;

class Reliances {
 public:
  explicit Reliances(std::int32_t n_slice_tokens) : n_slice_tokens_(n_slice_tokens) {}

  [[nodiscard]] std::int32_t n_slice_tokens() const { return n_slice_tokens_; }
  [[nodiscard]] std::int32_t slice_at(Position position) const { return position.value() / n_slice_tokens_; }
  [[nodiscard]] std::int32_t n_slices() const { return static_cast<std::int32_t>(slices_.size()); }
  [[nodiscard]] Position end() const { return end_; }
  // Of so many tokens, as images have them; kDamaged for slices that rely on later ones.
  static Result<Reliances> restore(std::int32_t n_slice_tokens, Position end,
                                   std::vector<std::optional<std::vector<std::int32_t>>> slices);
  // Of one slice, as images and records have it: how many (u32; 2^32 - 1: all), and those (i32 each).
  void put(std::int32_t slice, ByteWriter& out) const;
  // kDamaged where the bytes end before, or for more than a slice has; nullopt: on all.
  static Result<std::optional<std::vector<std::int32_t>>> get(ByteReader& in);
  // Ascending; nullopt: on all.
  [[nodiscard]] std::optional<std::span<const std::int32_t>> of(std::int32_t slice) const;

  // A step computed the rows of a span behind all that is known, or rows that were cut, and found this, ascending.
  void add(Span rows, std::span<const SliceReliance> found);
  // Rows of a span come to rely on these: they were not computed here, but it is known on what they rely.
  void add(Span rows, std::span<const std::int32_t> on);
  // Rows up to there that nobody told of rely on all.
  void end_at(Position end);
  // So do those of a span from now on.
  void forget(Span rows);
  void cut(Position end);

 private:
  struct Slice {
    bool on_all = false;
    std::vector<std::int32_t> on;
  };
  Slice& slice(std::int32_t index);
  void rely(Slice& slice, std::int32_t on);

  std::int32_t n_slice_tokens_;
  Position end_ = Position(0);
  std::vector<Slice> slices_;
};

}  // namespace ebb
