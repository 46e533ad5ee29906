// Policy: in which order hot blocks should leave the cache.
//
// A policy is a pure function of the evidence. How many leave, and that pinned ones do not, is choose's part
// (policy/choose.h). Thread rule: immutable; any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "policy/evidence.h"

namespace ebb {

class Policy {
 public:
  virtual ~Policy() = default;
  // As flags and reports name it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // One score for each of evidence.blocks; the lowest leaves first, the earlier position where scores are equal.
  [[nodiscard]] virtual std::vector<double> score(const Evidence& evidence) const = 0;
};

// Oldest position first: what every sliding cache does. The baseline that others must beat.
[[nodiscard]] std::unique_ptr<Policy> make_recency_policy();

}  // namespace ebb
