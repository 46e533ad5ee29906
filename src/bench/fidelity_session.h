// What one session of the fidelity bench reads, as tokens: seeded, and the same for every arm.
//
// It computes nothing. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "bench/sections.h"
#include "text/vocabulary.h"

namespace ebb {

struct FidelityShape {
  std::int32_t n_context = 0;
  std::int32_t n_span = 0;
  std::int32_t n_distance = 0;
  std::int32_t block_size = 0;
  std::uint64_t seed = 0;

  // No session has more, question and what follows it left out.
  [[nodiscard]] std::int32_t most_tokens() const;
};

struct FidelitySession {
  // All that comes before the question. It ends inside a block, so that the last block is open.
  std::vector<Token> history;
  // Whole blocks that hold the fact, neighbours to make up the span.
  std::vector<BlockIndex> span;
  std::vector<Token> question;
  std::string answer;
  // Read behind the reply, whether that ended by itself or not.
  Section more;

  [[nodiscard]] std::int32_t span_end(std::int32_t block_size) const { return (span.back().value() + 1) * block_size; }
};

// kUnsupported where the model's chat template does not let the fact's place be found.
Result<FidelitySession> make_fidelity_session(const Vocabulary& vocabulary, const FidelityShape& shape);

}  // namespace ebb
