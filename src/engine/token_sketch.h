// TokenSketch: a few hundred numbers that tell how alike two long texts are, wherever in them the likeness stands.
//
// It keeps the kMost smallest of the hashes of all runs of kRun tokens: a sample by content, so that a run that both
// texts have is in both samples or in neither (bottom-k sketches of shingles, Broder 1997). What it costs does not
// depend on how long the texts are. It chooses whom to compare; it proves nothing. Thread rule: as its owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace ebb {

class TokenSketch {
 public:
  // Shorter: phrases that everyone uses count. Longer: scattered edits leave no run whole.
  static constexpr std::size_t kRun = 16;
  // The likeness of two texts is told to 0.03 or better. More: costs memory and time for each lane. Fewer: of many
  // conversations that begin alike, the wrong ones are compared.
  static constexpr std::size_t kMost = 256;

  // Makes it the sketch of `text`. Where that goes on from what it knows, only what is new is read. A text of which
  // only tokens before its last known run changed is taken for one that goes on.
  void follow(std::span<const Token> text);
  // About which share of the runs of both texts together both have: 0 to 1. Texts without a run are like none.
  [[nodiscard]] double likeness(const TokenSketch& other) const;

 private:
  void add(std::uint64_t hash);

  std::vector<std::uint64_t> least_;  // ascending, each once
  std::size_t n_tokens_ = 0;          // read so far
  std::uint64_t last_run_ = 0;        // the hash of the last of them
};

}  // namespace ebb
