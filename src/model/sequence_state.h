// SequenceState: what one sequence carries on from token to token beside K and V, of a fixed size however long it is: what
// recurrent layers will have. No architecture of today has one.
//
// Its maker, the model's side, computes it; whose blocks they are (session/snapshots.h) asks what it was at their borders,
// keeps that and brings it back. It knows neither blocks nor stores. A layer that goes through rows in order has its state at
// hand when it passes a border, so a step says where borders lie and copies wait until it is over: no step is shorter for them.
//
//   begin_step   rows to come, and behind which of them borders lie        drop_step  the rows count for nothing
//   copy_border  as it was at a border of the last step                    reset      before the first token
//   copy_out, copy_in   all of it as it is, or was
//
// Rows that no begin_step announced (blocks that are computed again) pass no border, and nobody takes them back.
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"

namespace ebb {

class SequenceState {
 public:
  virtual ~SequenceState() = default;

  // The size of the whole; more than 0, and always the same.
  [[nodiscard]] virtual std::size_t n_bytes() const = 0;
  // What its bytes mean, beside the model: two of one layout can read each other's.
  [[nodiscard]] virtual Hash128 layout() const = 0;

  virtual void reset() = 0;
  // A border lies behind so many of the step's rows, rising.
  virtual void begin_step(std::span<const std::int32_t> borders) = 0;
  // As it was behind borders[i] rows; until the next begin_step, reset or copy_in.
  virtual void copy_border(std::size_t i, std::span<std::byte> bytes) const = 0;
  // As it was before begin_step, however many of the rows were computed.
  virtual void drop_step() = 0;
  virtual void copy_out(std::span<std::byte> bytes) const = 0;
  // Ends whatever step was begun.
  virtual void copy_in(std::span<const std::byte> bytes) = 0;
};

}  // namespace ebb
