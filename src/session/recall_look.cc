#include "session/recall_look.h"

#include <algorithm>

namespace ebb {

std::string_view moment_name(Moment moment) {
  switch (moment) {
    case Moment::kBeforePrompt: return "before the prompt";
    case Moment::kBeforeTail: return "before its tail";
    case Moment::kBehindTail: return "behind its tail";
  }
  return "";
}

std::int32_t RecallLook::n_chosen() const {
  return static_cast<std::int32_t>(std::ranges::count_if(told, [](const Told& one) {
    return one.considered.verdict == Verdict::kRecall || one.considered.verdict == Verdict::kKeep;
  }));
}

std::vector<BlockIndex> chosen_blocks(const std::vector<RecallLook>& looks) {
  std::vector<BlockIndex> chosen;
  // What is to come first: what is hot already needs no more than to stay.
  for (const Verdict wanted : {Verdict::kRecall, Verdict::kKeep}) {
    for (const RecallLook& look : looks) {
      for (const RecallLook::Told& told : look.told) {
        const auto& [block, score, verdict] = told.considered;
        if (verdict == wanted && std::ranges::find(chosen, block) == chosen.end()) chosen.push_back(block);
      }
    }
  }
  return chosen;
}

}  // namespace ebb
