// Recorded agent sessions, and what a client would ask of a server in their course.
//
// A record is a file of one JSON object a line (../shared/workloads/README.md): what was said, by whom, in which conversation. A request
// is all that stands before an assistant's line; that line is then said again, whatever the server answered. On the way happens what
// happens to agents, at the same places of every session:
//
//   0 --- 1/4 ------------ 1/2 -------- 5/8 ------------- 3/4 ------------------ 7/8 --------- 1
//         a reminder that  kill -9,     another session   tool results but the   all is summed
//         moves with the   start again  asks before each  last three are         up, and begun
//         last message                  request           cleared                anew with that
//
// No hour passes on the way. Neither ebb nor llama-server has a timer on sessions: what an idle hour changes is that the connection is
// closed (ours after 120 s), and each request is made on a connection of its own; and, where a template says date or time, the prompt.
//
// It asks no server and knows none. Thread rule: pure functions, but for the files that are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/json_fields.h"

namespace ebb {

struct RecordedSession {
  std::string id;
  Json tools;     // null where it has none
  Json messages;  // as chat requests have them
};

// A file of such lines, or a folder of such files (*.jsonl). kNotFound where there is none, kDamaged where a line is something else.
Result<std::vector<RecordedSession>> read_recorded_sessions(const std::filesystem::path& path);
// Whether the path is of such a record, and not of request bodies.
[[nodiscard]] bool is_session_record(const std::filesystem::path& path);

enum class AgentEvent : std::uint8_t {
  kPlain,     // what was said before, and more
  kReminder,  // the reminder that stood in the last message is now in this one
  kKilled,    // the server was killed and started again just before
  kOther,     // another session asks
  kBeside,    // ... and now this one again
  kCleared,   // old tool results were cleared since the last request
  kSummary,   // a summary of everything is asked for
  kAnew,      // begun anew with it
};
inline constexpr std::size_t kAgentEvents = 8;
[[nodiscard]] std::string_view name_of(AgentEvent event);

struct AgentRequest {
  AgentEvent event = AgentEvent::kPlain;
  std::string session;
  Json tools;
  Json messages;
};

// What an agent asks without anything that happens on the way: all that stands before each of the assistant's lines.
[[nodiscard]] std::size_t n_requests(const RecordedSession& session);
[[nodiscard]] Json messages_of_request(const RecordedSession& session, std::size_t n);
// The session as far as its first n requests and the lines that answer them.
[[nodiscard]] RecordedSession first_requests(const RecordedSession& session, std::size_t n);

// Whether that message is a tool's result that is cleared on the way.
[[nodiscard]] bool is_cleared_on_the_way(const RecordedSession& session, std::size_t message);

// What the session asks, in order, and between its requests the other session, where it is another, its own.
[[nodiscard]] std::vector<AgentRequest> make_agent_requests(const RecordedSession& session,
                                                            const RecordedSession& other);

}  // namespace ebb
