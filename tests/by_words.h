// Recall by names and words alone, for tests on a random model, whose queries ask for anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "session/recall_look.h"

namespace ebb {

inline RecallAsk by_words(std::string_view question, std::optional<std::int32_t> max_blocks = std::nullopt) {
  return {.cues = find_cues(question),
          .max_blocks = max_blocks,
          .selectors = SelectorList::parse("identity+lexical").value()};
}

}  // namespace ebb
