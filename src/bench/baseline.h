// The baseline bench: ebb under a budget beside leaving out the oldest messages, and beside evicting nothing.
//
// EVOKE's protocol: a fact is planted, short messages follow, and the last one asks for it; 14, 28 and 56 turns, a
// budget of 1024 tokens, and a client that says its whole history each time (bench/resend.h). Thread rule: one run at a
// time.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/resend.h"

namespace ebb {

struct BaselineOptions {
  ResendSetup setup;
  // The turns of a conversation, the one that plants and the one that asks included; one case each.
  std::vector<std::int32_t> turns = {14, 28, 56};
  std::int32_t budget_tokens = 1024;
  // Conversations of each case, each with a fact of its own.
  std::int32_t n_sessions = 15;
  // The length of a message: EVOKE's sessions grow by about 220 a turn.
  std::int32_t message_tokens = 200;
};

// kInvalidArgument for options that leave nothing to measure.
Result<ResendReport> run_baseline(const BaselineOptions& options);

}  // namespace ebb
