// RecallLook: one look for blocks that a turn should have, as a value: what was asked, and what each selector found of it.
//
// It moves nothing: the turn brings in what was chosen. Kept with a turn's counters, so that a person can see why a block came, or did
// not (ebb explain). Thread rule: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "policy/cues.h"
#include "policy/selector.h"

namespace ebb {

// What a look has back at most for what a message asks, in tokens, if nobody says otherwise: eight blocks of 64, or as many smaller ones. More:
// what merely shares words distracts small models, and leaves less room. Less: of ten things asked for, some stay away.
inline constexpr std::int32_t kMostRecalledTokens = 512;

// The milliseconds that a turn waits for what it asks to come back, if nobody says otherwise: no read is begun that would end later, were it
// as fast as those before; one that is under way is awaited. More: where blocks lie on a slow
// disk, the first word comes later. Less: there, some of what was found stays away. From RAM, eight blocks come in one.
inline constexpr double kMostRecallMs = 2000.0;

// What anybody may say.
inline constexpr double kMostRecallWait = 3.6e6;

// What a turn looks for, and by whom; without cues and names, nothing.
struct RecallAsk {
  std::vector<Cue> cues;
  // Blocks by the names that they have in the session; names that none has are left out.
  std::vector<std::string> names;
  // Beside those that are named, by each look; none: kMostRecalledTokens of them.
  std::optional<std::int32_t> max_blocks = std::nullopt;
  // All reads of the turn together; 0: as long as they take.
  double most_ms = kMostRecallMs;
  SelectorList selectors = SelectorList::fused();

  // max_blocks, where blocks are of so many tokens.
  [[nodiscard]] std::int32_t most_blocks(std::int32_t block_size) const {
    return max_blocks.value_or(std::max(1, kMostRecalledTokens / block_size));
  }

  // Whether anything that it does not name may come back.
  [[nodiscard]] bool looks() const { return max_blocks != 0 && !cues.empty() && !selectors.all().empty(); }
};

// Of selectors that ask for an embedding model, where there is none.
[[nodiscard]] Status no_meanings_error();

// The look that finds where the question stands, which no selector does.
inline constexpr std::string_view kQuestionLook = "question";

enum class Moment : std::uint8_t {
  kBeforePrompt,
  kBeforeTail,    // before the last tokens of a prompt, where blocks have left by then
  kBehindTail,    // by the queries of those tokens, which are computed again where something comes
  kWhileWriting,  // by the queries of the reply's last tokens
};
[[nodiscard]] std::string_view moment_name(Moment moment);
[[nodiscard]] constexpr bool goes_by_queries(Moment moment) {
  return moment == Moment::kBehindTail || moment == Moment::kWhileWriting;
}

// What a reply is saying: a cue of what was asked, which its sentence repeats, or the sentence itself.
struct SayingAsk {
  std::string_view text;
  // The cue that this is; null: none is. And then the one that was said behind it, if there is one. Where both stand is to be in sight.
  const Cue* cue = nullptr;
  const Cue* next = nullptr;
  // What tells of it stands in front of this block, and in none of those in which anything is asked.
  BlockIndex before;
  std::span<const BlockIndex> asking;
};

// Why what was chosen did not come back: what came before it has all the room that may come back; its read would have ended later than a turn
// waits; its bytes are lost.
enum class Away : std::uint8_t { kNoRoom, kLate, kLost };
[[nodiscard]] std::string_view away_name(Away away);

struct RecallLook {
  struct Told {
    Considered considered;
    // Session::block_name, then.
    std::string name;
    // It came back before the next look.
    bool came = false;
    // Chosen, and none of this: it was hot by then, or left again, or another look chose it in other heads.
    std::optional<Away> away;
  };

  Moment moment = Moment::kBeforePrompt;
  std::string_view selector;
  double ms = 0.0;
  // Blocks that it could tell something of.
  std::int32_t n_looked_at = 0;
  std::vector<Told> told;
  // Of the names that were asked for those that nothing has.
  std::vector<std::string> unknown_names;

  [[nodiscard]] std::int32_t n_chosen() const;
  // Of those, what came.
  [[nodiscard]] std::int32_t n_came() const;
};

// The looks while a reply was written: only those that found something cold are told, and of these the first kMostTold.
struct WritingLooks {
  static constexpr std::int32_t kMostTold = 64;

  std::int32_t n = 0;
  std::int32_t n_found = 0;
  double ms = 0.0;
};

// Of several looks, each once: what is to come or to stay. What asks first, then what was named, then the looks' choices by turns, so
// that where room is little what two selectors are surest of comes before what one found besides.
[[nodiscard]] std::vector<BlockIndex> chosen_blocks(std::span<const RecallLook> looks);
// In which heads those that chose a block would have it; none: in all.
[[nodiscard]] std::vector<std::int32_t> chosen_heads(std::span<const RecallLook> looks, BlockIndex block);
// Those that a look for the question tells of: what is asked stands there, whether there is room for it or not.
[[nodiscard]] std::vector<BlockIndex> asking_blocks(std::span<const RecallLook> looks);
// Whether a look by what is asked, before any queries, chose it.
[[nodiscard]] bool is_found_for_what_is_asked(std::span<const RecallLook> looks, BlockIndex block);
// Whether any of them tells something of it, chosen or not.
[[nodiscard]] bool is_told(std::span<const RecallLook> looks, BlockIndex block);

}  // namespace ebb
