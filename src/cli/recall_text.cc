#include "cli/recall_text.h"

#include <fmt/format.h>

#include "base/text_table.h"
#include "text/utf8_stream.h"

namespace ebb {
namespace {

// Of a block's text.
constexpr std::size_t kShownBytes = 48;

std::string in_heads(const Considered& considered) {
  const std::size_t n = considered.heads.size();
  return n == 0 ? "" : fmt::format(" in {} head{}", n, n == 1 ? "" : "s");
}

// What the block beside it says begins or ends across the border between them.
std::string beside(const Considered& considered) { return considered.score == 0.0 ? ", beside what was found" : ""; }

std::string away_text(const RecallLook::Told& told) {
  if (!told.away) return "did not come";
  switch (*told.away) {
    case Away::kNoRoom: return "no room beside what came before it";
    case Away::kLate: return "reading it would have taken too long";
    case Away::kLost: return "lost";
  }
  return "";
}

std::string became_text(const RecallLook::Told& told) {
  switch (told.considered.verdict) {
    case Verdict::kAsks:
      return told.came ? "the question; came back" : told.away ? "the question; " + away_text(told) : "the question";
    case Verdict::kRecall:
      return (told.came ? "came back" + in_heads(told.considered) : "chosen, " + away_text(told)) +
             beside(told.considered);
    case Verdict::kKeep: return "was hot, stayed";
    case Verdict::kWeak: return "too weak";
    case Verdict::kBeyond: return "no place left";
  }
  return "";
}

// One line, without what a terminal would act on.
std::string beginning_of(const Session& session, BlockIndex block) {
  if (block.value() >= session.n_blocks()) return "";
  const Result<std::string> text = session.block_text(block);
  if (!text.ok()) return "";
  std::string shown;
  for (const char c : *text) {
    const bool is_plain = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    if (shown.size() < kShownBytes) shown += is_plain ? c : ' ';
  }
  return to_valid_utf8(shown);
}

std::string look_text(const Session& session, const RecallLook& look) {
  std::string text = fmt::format("{}, {}: looked at {} blocks in {:.2f} ms, chose {}\n", moment_name(look.moment),
                                 look.selector, look.n_looked_at, look.ms, look.n_chosen());
  if (const std::int32_t n_other = session.n_blocks() - look.n_looked_at; look.selector == kEmbedding && n_other > 0) {
    text += fmt::format("{} others have no vector yet (embedding:wait=MS waits longer)\n", n_other);
  }
  for (const std::string& name : look.unknown_names) text += fmt::format("nothing is called {}\n", name);
  if (look.told.empty()) return text;
  TextTable table({{"block", TextTable::Align::kLeft},
                   {"score"},
                   {"", TextTable::Align::kLeft},
                   {"begins with", TextTable::Align::kLeft}});
  for (const RecallLook::Told& told : look.told) {
    table.add_row({told.name, fmt::format("{:.3f}", told.considered.score), became_text(told),
                   beginning_of(session, told.considered.block)});
  }
  return text + table.render();
}

}  // namespace

std::string back_text(const Acts& acts) {
  const std::string text = fmt::format("{} block{} came back", acts.n_back(), acts.n_back() == 1 ? "" : "s");
  return acts.recomputed.empty() ? text : text + fmt::format(" ({} computed again)", acts.recomputed.size());
}

std::string recall_text(const Session& session, const TurnStats& turn) {
  std::string text;
  for (const RecallLook& look : turn.looks) text += (text.empty() ? "" : "\n") + look_text(session, look);
  if (text.empty()) return "nothing was looked for: no selector, or nothing asked\n";
  text += fmt::format("\nin all, while the reply was written too, {} and {} left", back_text(turn.acts),
                      turn.acts.evicted.size());
  if (turn.n_computed_again > 0) {
    text += fmt::format("; {} tokens of the question were computed a second time, with them in sight",
                        turn.n_computed_again);
  }
  if (turn.n_renewed > 0) {
    text += fmt::format("; {} first tokens of what came back were computed again where it lies", turn.n_renewed);
  }
  if (turn.n_late > 0) {
    text += fmt::format(
        "; {} chosen block{} stayed away, since reading {} would have taken longer than a turn waits "
        "(--recall-ms)",
        turn.n_late, turn.n_late == 1 ? "" : "s", turn.n_late == 1 ? "it" : "them");
  }
  return text + "\n";
}

}  // namespace ebb
