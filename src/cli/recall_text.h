// What a turn looked for among blocks that left, as a person reads it.
#pragma once

#include <string>

#include "session/session.h"
#include "session/turn.h"

namespace ebb {

// "12 blocks came back", and how many of them were computed again.
[[nodiscard]] std::string back_text(const Acts& acts);

// A table for each look; one line where nothing had left.
[[nodiscard]] std::string recall_text(const Session& session, const TurnStats& turn);

}  // namespace ebb
