#include "session/recall_look.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ebb {
namespace {

bool is_chosen(const RecallLook::Told& told) {
  const Verdict verdict = told.considered.verdict;
  return verdict == Verdict::kAsks || verdict == Verdict::kRecall || verdict == Verdict::kKeep;
}

template <class Is>
bool any_told(std::span<const RecallLook> looks, const Is& is) {
  return std::ranges::any_of(looks, [&](const RecallLook& look) {
    return std::ranges::any_of(look.told, [&](const RecallLook::Told& told) { return is(told.considered); });
  });
}

}  // namespace

Status no_meanings_error() {
  return error(Code::kInvalidArgument,
               "the selector embedding needs an embedding model; give one (--embedding-model FILE, of the library "
               "EngineOptions::embedding_model: a GGUF such as all-MiniLM or bge), or leave it out of the selectors");
}

std::string_view moment_name(Moment moment) {
  switch (moment) {
    case Moment::kBeforePrompt: return "before the prompt";
    case Moment::kBeforeTail: return "before its tail";
    case Moment::kBehindTail: return "behind its tail";
    case Moment::kWhileWriting: return "while writing";
  }
  return "";
}

std::string_view away_name(Away away) {
  switch (away) {
    case Away::kNoRoom: return "no_room";
    case Away::kLate: return "late";
    case Away::kLost: return "lost";
  }
  return "";
}

std::int32_t RecallLook::n_chosen() const { return static_cast<std::int32_t>(std::ranges::count_if(told, is_chosen)); }

std::int32_t RecallLook::n_came() const {
  const auto came = [](const Told& one) { return is_chosen(one) && one.came; };
  return static_cast<std::int32_t>(std::ranges::count_if(told, came));
}

std::vector<std::int32_t> chosen_heads(std::span<const RecallLook> looks, BlockIndex block) {
  std::set<std::int32_t> heads;
  for (const RecallLook& look : looks) {
    for (const RecallLook::Told& told : look.told) {
      if (told.considered.block != block || !is_chosen(told)) continue;
      if (told.considered.heads.empty()) return {};
      heads.insert(told.considered.heads.begin(), told.considered.heads.end());
    }
  }
  return {heads.begin(), heads.end()};
}

std::vector<BlockIndex> asking_blocks(std::span<const RecallLook> looks) {
  std::vector<BlockIndex> asking;
  for (const RecallLook& look : looks) {
    if (look.selector != kQuestionLook) continue;
    for (const RecallLook::Told& told : look.told) asking.push_back(told.considered.block);
  }
  return asking;
}

bool is_found_for_what_is_asked(std::span<const RecallLook> looks, BlockIndex block) {
  return std::ranges::any_of(looks, [&](const RecallLook& look) {
    return !goes_by_queries(look.moment) && std::ranges::any_of(look.told, [&](const RecallLook::Told& told) {
      return told.considered.block == block && is_chosen(told);
    });
  });
}

bool is_told(std::span<const RecallLook> looks, BlockIndex block) {
  return any_told(looks, [&](const Considered& one) { return one.block == block; });
}

std::vector<BlockIndex> chosen_blocks(std::span<const RecallLook> looks) {
  std::vector<BlockIndex> chosen;
  const auto add = [&](BlockIndex block) {
    if (std::ranges::find(chosen, block) == chosen.end()) chosen.push_back(block);
  };
  std::vector<std::vector<BlockIndex>> by_look;
  for (const RecallLook& look : looks) {
    std::vector<BlockIndex>& own = by_look.emplace_back();
    for (const RecallLook::Told& told : look.told) {
      if (is_chosen(told)) own.push_back(told.considered.block);
    }
    if (look.selector != kQuestionLook && look.selector != kIdentity) continue;
    for (const BlockIndex block : std::exchange(own, {})) add(block);
  }
  std::size_t n_turns = 0;
  for (const auto& own : by_look) n_turns = std::max(n_turns, own.size());
  for (std::size_t turn = 0; turn < n_turns; ++turn) {
    for (const auto& own : by_look) {
      if (turn < own.size()) add(own[turn]);
    }
  }
  return chosen;
}

}  // namespace ebb
