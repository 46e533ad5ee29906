// Facts that are told in a recorded session, and asked for when it is over.
//
//   told    system | user ... fact ... | reply | result ... twin ... fact ... | reply | result ... fact ... | reply | ...
//   asked   the same as far as the last request, nothing cleared and nothing summed up | user: a question
//
// A fact is a line of its own in a user message or a tool's result, at even distances over the text of those; its near twin, of which
// something else is told, stands anywhere in it. What was cleared or summed up on the way is said again where a fact is asked for, since
// the client goes back to the whole session: so each fact is in its prompt, and who has less memory than that must find it. Facts of
// results that were cleared are marked.
//
// It asks no server and knows none. The same options, the same facts, on every machine. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_tasks.h"
#include "bench/recorded_sessions.h"

namespace ebb {

struct AgentFactOptions {
  // Of each session; 0: none are told.
  std::int32_t n_facts = 0;
  RecallSplit split = RecallSplit::kTest;
  RecallLanguage language = RecallLanguage::kBundled;
  std::uint64_t seed = 1;
};

struct AgentFact {
  std::string text;
  std::string question;
  std::string answer;
  // Where it begins, as a share of the text that facts are told in.
  double place = 0.0;
  // Whether it stands in a tool's result that is cleared on the way.
  bool is_cleared = false;
};

struct ToldSession {
  RecordedSession session;
  std::vector<AgentFact> facts;
  // What facts and twins say. All differ, and none stands elsewhere in the session.
  std::vector<std::string> values;
};

// `index`: the session's among those of the run; each has facts of its own. A session without requests has none. kInvalidArgument where
// it has no text to tell them in, or where there are no names left.
Result<ToldSession> tell_facts(const RecordedSession& session, std::int32_t index, const AgentFactOptions& options);
// All that was said before the session's last reply, and the question.
[[nodiscard]] Json messages_of_question(const ToldSession& told, const AgentFact& fact);
// Whether the reply gives the fact's value, and no other before it.
[[nodiscard]] bool is_right(std::string_view reply, const ToldSession& told, const AgentFact& fact);

}  // namespace ebb
