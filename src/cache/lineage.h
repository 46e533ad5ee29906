// Lineage: which earlier blocks were visible when a block's K and V were computed.
//
// A block's tokens may be computed over several steps, and what is hot may change between them, so a lineage is a list of
// runs: this many tokens saw that. How the tokens were cut into steps leaves no trace. Thread rule: as its session's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/hash.h"

namespace ebb {

class Lineage {
 public:
  struct Run {
    Hash128 visible;
    std::int32_t n_tokens = 0;

    friend bool operator==(const Run&, const Run&) = default;
  };

  void add(const Hash128& visible, std::int32_t n_tokens) {
    if (!runs_.empty() && runs_.back().visible == visible) {
      runs_.back().n_tokens += n_tokens;
    } else {
      runs_.push_back({visible, n_tokens});
    }
  }

  // Keeps the runs of the first n_tokens.
  void truncate(std::int32_t n_tokens) {
    for (Run& run : runs_) {
      run.n_tokens = std::min(run.n_tokens, n_tokens);
      n_tokens -= run.n_tokens;
    }
    std::erase_if(runs_, [](const Run& run) { return run.n_tokens == 0; });
  }

  void hash_into(Hasher& hasher) const {
    hasher.add(runs_.size());
    for (const Run& run : runs_) hasher.add(run.visible).add(static_cast<std::uint64_t>(run.n_tokens));
  }

  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<Run> runs_;
};

}  // namespace ebb
