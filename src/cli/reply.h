// Runs a generation to its end and shows its text on stdout as it comes.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/generation.h"

namespace ebb {

class InterruptListener;

// The generation is finished afterwards, whatever happens. Ctrl-C ends it with FinishReason::kCancelled and is no
// error, nor is a context that is full: that ends the reply, and stderr says so.
Status stream_reply(Engine& engine, Generation& generation, InterruptListener& interrupt);

// Tokens, speeds, frames and memory, for --verbose and /stats.
[[nodiscard]] std::string reply_stats_text(const Generation& generation, const Session& session);
[[nodiscard]] std::string session_stats_text(Engine& engine, const Session& session);
// Of a generation that has ended: the budget that was in force for its prompt and for its reply, and the peak in each.
[[nodiscard]] std::string budget_use_text(const Generation& generation, const Session& session);
// A sentence if moves of quantised blocks lost precision; else empty.
[[nodiscard]] std::string move_loss_text(const Engine& engine, const Session& session);

}  // namespace ebb
