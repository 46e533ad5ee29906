// The gap-fill bench: early facts, asked for late, in a conversation that outgrows its budget and is said anew each turn.
//
// EVOKE's protocol: user turns are chunks of 4000 characters. Each states one fact; from the eighth on, after every second
// one the next of the facts is asked for, from the first on. (EVOKE asks for one fact again and again, which can come from the
// model's own earlier answer; here each is asked for once.) Arms: bench/resend.h. Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/resend.h"

namespace ebb {

struct GapfillOptions {
  ResendSetup setup;
  // Chunks of a conversation, one case each: with the bundled model, within its trained context, and past it.
  std::vector<std::int32_t> chunks = {14, 27};
  std::vector<std::int32_t> budgets = {6000, 14000};
  // Conversations of each case, each with facts of its own.
  std::int32_t n_sessions = 4;
  std::int32_t chunk_characters = 4000;
  // Chunks read before the first question, and between questions.
  std::int32_t n_before = 8;
  std::int32_t n_between = 2;
};

// kInvalidArgument for options that leave nothing to measure.
Result<ResendReport> run_gapfill(const GapfillOptions& options);

}  // namespace ebb
