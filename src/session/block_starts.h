// BlockStarts: full blocks that sessions computed, found by what was visible before them, for prompts that share only the
// first tokens of one.
//
// It holds names and tokens, never bytes: who finds a block here must still find it hot or saved under its exact name. It
// is a bounded memory of the newest; what is forgotten is computed again. Thread rule: one thread at a time (the engine's).
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"

namespace ebb {

class BlockStarts {
 public:
  struct Match {
    Hash128 name;  // of the block
    std::size_t n_common = 0;
  };

  explicit BlockStarts(std::size_t n_most = 4096) : n_most_(n_most) {}

  // `place`: everything but its tokens that makes the bytes of the block's rows; `tokens`: its first ones, as far as they
  // were computed there.
  void add(const Hash128& place, const Hash128& name, std::span<const Token> tokens) {
    const auto [begin, end] = by_place_.equal_range(place);
    if (std::any_of(begin, end, [&](const auto& entry) { return entry.second.name == name; })) return;
    order_.push_back(by_place_.emplace(place, Start{name, {tokens.begin(), tokens.end()}}));
    if (order_.size() <= n_most_) return;
    by_place_.erase(order_.front());
    order_.pop_front();
  }

  // The block there that has most of its first tokens in common with these; none has any: n_common is 0.
  [[nodiscard]] Match find(const Hash128& place, std::span<const Token> tokens) const {
    Match best;
    const auto [begin, end] = by_place_.equal_range(place);
    for (auto at = begin; at != end; ++at) {
      const Start& start = at->second;
      const auto differs = std::ranges::mismatch(start.tokens, tokens).in1;
      const auto n_common = static_cast<std::size_t>(differs - start.tokens.begin());
      if (n_common > best.n_common) best = {.name = start.name, .n_common = n_common};
    }
    return best;
  }

  [[nodiscard]] std::size_t size() const { return by_place_.size(); }

 private:
  struct Start {
    Hash128 name;
    std::vector<Token> tokens;
  };
  using ByPlace = std::multimap<Hash128, Start>;

  std::size_t n_most_;
  ByPlace by_place_;
  std::deque<ByPlace::iterator> order_;
};

}  // namespace ebb
