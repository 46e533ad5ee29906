// Subject: a runtime as the speed bench drives it: one sequence, whose K/V is filled, measured and rolled back.
//
// Each side of a comparison is one. Both keep their tokens at positions 0, 1, 2, ... and compute in the calling thread
// and threads of their own. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/status.h"

namespace ebb {

class Subject {
 public:
  Subject() = default;
  virtual ~Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  // "ebb"
  [[nodiscard]] virtual std::string name() const = 0;
  // What a reader must know to repeat the measurement: version, KV type, kernels, ...
  [[nodiscard]] virtual std::string description() const = 0;
  // Tokens whose K/V is hot.
  [[nodiscard]] virtual std::int32_t n_resident() const = 0;
  // Computes the tokens behind the resident ones, and the logits of the last.
  virtual Status append(std::span<const Token> tokens) = 0;
  // The logits of the last token appended, [n_vocab]; valid until the next append.
  [[nodiscard]] virtual std::span<const float> last_logits() const = 0;
  // Forgets all but the first n_tokens.
  virtual Status truncate(std::int32_t n_tokens) = 0;
};

}  // namespace ebb
