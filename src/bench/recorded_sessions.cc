#include "bench/recorded_sessions.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/split_text.h"
#include "bench/api_client.h"
#include "bench/json_lines.h"

namespace ebb {
namespace {

constexpr std::string_view kClearedResult = "[Old tool result content cleared]";
constexpr std::string_view kMovingReminder =
    "\n<system-reminder>Keep to the plan: read before you write.</system-reminder>";
constexpr std::size_t kResultsKept = 3;
// Letters of each thing said that the summary keeps, and of the whole of it.
constexpr std::size_t kSummedUp = 160;
constexpr std::size_t kSummary = 6000;

Result<std::string> read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) return error(Code::kIo, "{}: cannot be read", path.string());
  return text;
}

Result<std::string> needed_text(JsonFields& line, const char* name) {
  const Json* const found = line.find(name);
  if (found != nullptr && found->is_string()) return found->get<std::string>();
  return error(Code::kDamaged, "it has no {}", name);
}

Json member(const Json& of, const char* name) { return of.contains(name) ? of[name] : Json(); }

// What one who speaks said.
Json message_of(JsonFields& line, std::string_view role) {
  Json message = {{"role", role}, {"content", nullptr}};
  for (const char* name : {"content", "reasoning_content", "tool_calls"}) {
    if (const Json* const found = line.find(name); found != nullptr) message[name] = *found;
  }
  return message;
}

// A line's message or messages.
Status add_messages(JsonFields& line, Json& messages) {
  EBB_ASSIGN_OR_RETURN(const std::string role, needed_text(line, "role"));
  if (role == "user") {
    const Json* const system = line.find("system");
    if (system != nullptr) messages.push_back({{"role", "system"}, {"content", *system}});
  }
  if (role == "user" || role == "assistant") {
    messages.push_back(message_of(line, role));
    return {};
  }
  const Json* const results = line.find("tool_results");
  if (role != "tool" || results == nullptr || !results->is_array()) {
    return error(Code::kDamaged, "its role is '{}', and neither user, assistant nor tool with tool_results", role);
  }
  for (const Json& result : *results) {
    if (!result.is_object()) return error(Code::kDamaged, "one of its tool_results is no object");
    messages.push_back(
        {{"role", "tool"}, {"tool_call_id", member(result, "tool_call_id")}, {"content", member(result, "content")}});
  }
  return {};
}

Status add_record(const std::filesystem::path& path, std::vector<RecordedSession>& sessions) {
  EBB_ASSIGN_OR_RETURN(const std::string text, read_all(path));
  const Status read = read_json_lines(text, [&](JsonFields& line) -> Status {
    EBB_ASSIGN_OR_RETURN(const std::string id, needed_text(line, "conversation_id"));
    auto session = std::ranges::find(sessions, id, &RecordedSession::id);
    if (session == sessions.end()) session = sessions.insert(session, {.id = id, .messages = Json::array()});
    if (const Json* const tools = line.find("tools"); tools != nullptr) session->tools = *tools;
    return add_messages(line, session->messages);
  });
  if (read.ok()) return {};
  return error(read.code(), "{}: {}", path.string(), read.message());
}

std::vector<std::filesystem::path> records_in(const std::filesystem::path& folder) {
  std::error_code failure;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

bool is_tool_result(const Json& message) { return message["role"] == "tool"; }

// Tool results of the first `n` messages but the last few of those.
void clear_results(Json& messages, std::size_t n) {
  std::size_t n_kept = 0;
  for (std::size_t i = std::min(n, messages.size()); i-- > 0;) {
    if (!is_tool_result(messages[i])) continue;
    if (n_kept++ >= kResultsKept) messages[i]["content"] = kClearedResult;
  }
}

void add_text(Json& message, std::string_view text) {
  if (message["content"].is_string()) message["content"].get_ref<std::string&>() += text;
}

std::string text_of(const Json& message) {
  const Json content = member(message, "content");
  if (content.is_string() && content != "") return content.get<std::string>();
  const Json thought = member(message, "reasoning_content");
  return thought.is_string() ? thought.get<std::string>() : "";
}

// What a model would have made of it.
std::string summary_of(const Json& messages) {
  std::string summary = "Done so far:";
  for (const Json& message : messages) {
    if (message["role"] != "assistant" || summary.size() > kSummary) continue;
    const std::string text = text_of(message);
    const std::string_view line = std::string_view(text).substr(0, std::min(text.find('\n'), text.find(". ")));
    summary += "\n- " + std::string(first_bytes(line, kSummedUp));
  }
  return summary;
}

// How many messages stand before each thing that the assistant said.
std::vector<std::size_t> ends_of(const Json& messages) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < messages.size(); ++i) {
    if (messages[i]["role"] == "assistant") ends.push_back(i);
  }
  return ends;
}

Json first(const Json& messages, std::size_t n) {
  return Json(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(n));
}

// The requests of one session, as they come.
class AgentScript {
 public:
  AgentScript(const RecordedSession& session, const RecordedSession& other) : session_(session), other_(other) {
    ends_ = ends_of(session.messages);
    other_ends_ = ends_of(other.messages);
  }

  // The request before which tool results are cleared, of n.
  static std::size_t clears_at(std::size_t n) { return n * 3 / 4; }

  std::vector<AgentRequest> write() {
    for (at_ = 0; at_ < ends_.size(); ++at_) {
      if (at_ == part(7, 8)) sum_up();
      ask();
    }
    return std::move(requests_);
  }

 private:
  [[nodiscard]] std::size_t part(std::size_t n, std::size_t of) const { return ends_.size() * n / of; }

  void add(AgentEvent event, Json messages) {
    requests_.push_back(
        {.event = event, .session = session_.id, .tools = session_.tools, .messages = std::move(messages)});
  }

  void ask() {
    AgentEvent event = AgentEvent::kPlain;
    Json messages = summed_up_ > 0 ? anew() : first(session_.messages, ends_[at_]);
    if (summed_up_ > 0) {
      if (at_ == part(7, 8)) event = AgentEvent::kAnew;
    } else if (at_ >= clears_at(ends_.size())) {
      clear_results(messages, ends_[clears_at(ends_.size())]);
      if (at_ == clears_at(ends_.size())) event = AgentEvent::kCleared;
    } else if (at_ >= part(5, 8)) {
      ask_other();
      event = AgentEvent::kBeside;
    } else if (at_ == part(1, 2)) {
      event = AgentEvent::kKilled;
    } else if (at_ >= part(1, 4) && at_ < part(1, 2)) {
      add_text(messages.back(), kMovingReminder);
      event = AgentEvent::kReminder;
    }
    add(event, std::move(messages));
  }

  void ask_other() {
    if (n_other_ >= other_ends_.size() || other_.id == session_.id) return;
    requests_.push_back({.event = AgentEvent::kOther,
                         .session = other_.id,
                         .tools = other_.tools,
                         .messages = first(other_.messages, other_ends_[n_other_++])});
  }

  void sum_up() {
    Json messages = first(session_.messages, ends_[at_]);
    clear_results(messages, ends_[clears_at(ends_.size())]);
    messages.push_back(make_message("user", "Sum up what was done so far, so that another can go on with it."));
    add(AgentEvent::kSummary, messages);
    summed_up_ = ends_[at_];
  }

  // What was asked for first, the summary, and what came since.
  [[nodiscard]] Json anew() const {
    const Json& all = session_.messages;
    Json messages = first(all, ends_.front());
    messages.push_back(make_message("assistant", summary_of(first(all, summed_up_))));
    messages.push_back(make_message("user", "Continue if there are next steps."));
    for (std::size_t i = summed_up_; i < ends_[at_]; ++i) messages.push_back(all[i]);
    return messages;
  }

  const RecordedSession& session_;
  const RecordedSession& other_;
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> other_ends_;
  std::size_t at_ = 0;
  std::size_t n_other_ = 0;
  std::size_t summed_up_ = 0;  // messages; 0: not yet
  std::vector<AgentRequest> requests_;
};

}  // namespace

std::string_view name_of(AgentEvent event) {
  constexpr std::array<std::string_view, kAgentEvents> kNames = {
      "goes on",   "a reminder moves", "killed and begun again", "another session", "beside another", "results cleared",
      "a summary", "begun anew"};
  return kNames[static_cast<std::size_t>(event)];
}

bool is_session_record(const std::filesystem::path& path) {
  return path.extension() == ".jsonl" || !records_in(path).empty();
}

Result<std::vector<RecordedSession>> read_recorded_sessions(const std::filesystem::path& path) {
  std::error_code failure;
  const std::vector<std::filesystem::path> paths =
      std::filesystem::is_directory(path, failure) ? records_in(path) : std::vector{path};
  std::vector<RecordedSession> sessions;
  for (const std::filesystem::path& one : paths) EBB_RETURN_IF_ERROR(add_record(one, sessions));
  if (!sessions.empty()) return sessions;
  return error(Code::kNotFound, "{}: no recorded sessions (*.jsonl)", path.string());
}

std::size_t n_requests(const RecordedSession& session) { return ends_of(session.messages).size(); }

Json messages_of_request(const RecordedSession& session, std::size_t n) {
  return first(session.messages, ends_of(session.messages).at(n));
}

RecordedSession first_requests(const RecordedSession& session, std::size_t n) {
  const std::vector<std::size_t> ends = ends_of(session.messages);
  if (n >= ends.size()) return session;
  return {.id = session.id, .tools = session.tools, .messages = first(session.messages, n == 0 ? 0 : ends[n - 1] + 1)};
}

bool is_cleared_on_the_way(const RecordedSession& session, std::size_t message) {
  const std::vector<std::size_t> ends = ends_of(session.messages);
  const std::size_t n = ends.empty() ? 0 : ends[AgentScript::clears_at(ends.size())];
  if (message >= n) return false;
  Json messages = first(session.messages, n);
  clear_results(messages, n);
  return messages[message] != session.messages[message];
}

std::vector<AgentRequest> make_agent_requests(const RecordedSession& session, const RecordedSession& other) {
  return AgentScript(session, other).write();
}

}  // namespace ebb
