// Duel: two subjects that do the same work in turn, so that what disturbs the machine disturbs both.
//
// Each round gives both the same tokens at the same depth, times them and rolls both back to that depth; who begins
// alternates. A first round, which pays for page faults and graphs, is not counted. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "bench/subject.h"

namespace ebb {

// Milliseconds per round; entry i of both was measured back to back.
struct PairedTimes {
  std::vector<double> a_ms;
  std::vector<double> b_ms;
};

// The largest difference between two rows of logits, as a share of the range of b's.
[[nodiscard]] double logits_difference(std::span<const float> a, std::span<const float> b);

class Duel {
 public:
  // Seeded random tokens, the same ones for both sides; the subjects must outlive the duel and be empty.
  Duel(Subject& a, Subject& b, std::int32_t n_vocab, std::uint32_t seed = 1);

  // Called after each piece of work of one side: a chunk that was filled, or a round.
  std::function<void()> on_step = [] {};
  // Called in each round that counts when one side is done and the other has not begun: what is measured there is of that round.
  std::function<void()> amid_round = [] {};
  // Called in each round that counts, before both sides and behind both in turn: for others that do the same work.
  std::function<Status()> beside_round = [] { return Status(); };

  // Brings both sides to n_tokens resident tokens, by `chunk` at a time. Depths only grow.
  Status fill(std::int32_t n_tokens, std::int32_t chunk);
  // n_tokens in one piece.
  Result<PairedTimes> time_prompt(std::int32_t n_tokens, std::int32_t n_rounds);
  // n_tokens one after the other, as if each had just been sampled.
  Result<PairedTimes> time_decode(std::int32_t n_tokens, std::int32_t n_rounds);
  // The largest difference of the two sides' logits of the last round's last token, as logits_difference() has it.
  [[nodiscard]] double last_difference() const { return last_difference_; }

 private:
  // The tokens of positions [begin, begin + n).
  [[nodiscard]] std::span<const Token> tokens_at(std::int32_t begin, std::int32_t n);
  Result<PairedTimes> time(std::int32_t n_tokens, std::int32_t piece, std::int32_t n_rounds);
  Result<double> time_one(Subject& subject, std::int32_t n_tokens, std::int32_t piece);

  Subject& a_;
  Subject& b_;
  std::int32_t n_vocab_;
  std::mt19937 random_;
  std::vector<Token> tokens_;
  std::int32_t depth_ = 0;
  double last_difference_ = 0.0;
};

}  // namespace ebb
