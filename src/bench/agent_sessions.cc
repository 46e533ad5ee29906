#include "bench/agent_sessions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "bench/agent_contenders.h"
#include "bench/api_client.h"
#include "bench/peer_server.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

// llama-server takes contexts of whole such steps.
constexpr std::int32_t kTokenStep = 256;
// Tokens of the prompt that another renderer may count more, and of the reply.
constexpr std::int32_t kTokenSlack = 128;
// Of an answer that tells a fact.
constexpr std::int32_t kFactTokens = 32;

// A folder of this run alone, removed with all that is in it.
class WorkFolder {
 public:
  static Result<std::unique_ptr<WorkFolder>> make(const std::filesystem::path& within) {
    std::string pattern = (within / "ebb-agent-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      return error(Code::kIo, "{}: no folder can be made in it; choose another with TMPDIR", within.string());
    }
    return std::unique_ptr<WorkFolder>(new WorkFolder(pattern));
  }
  ~WorkFolder() {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

Json body_of(const AgentRequest& request) {
  Json body = {{"messages", request.messages}, {"max_tokens", 1}, {"temperature", 0}, {"stream", false}};
  if (!request.tools.is_null()) body["tools"] = request.tools;
  return body;
}

// What an error says, or all of it.
std::string message_of(const Json& json) {
  if (!json.is_object() || !json.contains("error") || !json["error"].is_object()) return json.dump();
  return json["error"].value("message", json["error"].dump());
}

// 0 where it is not there.
std::int64_t count_in(const Json& json, const char* object, const char* name) {
  if (!json.is_object() || !json.contains(object) || !json[object].is_object()) return 0;
  return json[object].contains(name) && json[object][name].is_number() ? json[object][name].get<std::int64_t>() : 0;
}

// What a chat's first choice says; empty where it says nothing.
std::string text_in(const Json& json) {
  const Json::json_pointer content("/choices/0/message/content");
  return json.contains(content) && json[content].is_string() ? json[content].get<std::string>() : "";
}

struct CountedRequest {
  AgentRequest request;
  std::int32_t n_tokens = 0;
};

// What is asked of a session, and then what is asked of what it told.
struct CountedSession {
  std::vector<CountedRequest> requests;
  ToldSession told;
  std::vector<CountedRequest> questions;  // one of each fact
};

// Counts the tokens of prompts.
class PromptCounter {
 public:
  explicit PromptCounter(ApiClient& client) : client_(client) {}

  Result<std::int32_t> count(const Json& tools, const Json& messages) {
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> prompt,
                         client_.prompt_tokens(body_of({.tools = tools, .messages = messages})));
    return static_cast<std::int32_t>(prompt.size());
  }

  // The session up to its last request that has no more tokens.
  Result<RecordedSession> cut(const RecordedSession& session, std::int32_t most_tokens) {
    for (std::size_t n = 0; n < n_requests(session); ++n) {
      EBB_ASSIGN_OR_RETURN(const std::int32_t n_tokens, count(session.tools, messages_of_request(session, n)));
      if (n_tokens > most_tokens) return first_requests(session, n);
    }
    return session;
  }

 private:
  ApiClient& client_;
};

// Cut, and with facts: those that are replayed, and the one that comes between the last one's requests.
Result<std::vector<ToldSession>> read_told(const AgentSessionsOptions& options, PromptCounter& counter) {
  EBB_ASSIGN_OR_RETURN(const std::vector<RecordedSession> sessions, read_recorded_sessions(options.workload));
  const std::size_t n = options.n_sessions > 0 ? static_cast<std::size_t>(options.n_sessions) + 1 : sessions.size();
  std::vector<ToldSession> told;
  for (std::size_t i = 0; i < std::min(n, sessions.size()); ++i) {
    options.progress("reading " + sessions[i].id, 0.0);
    RecordedSession session = sessions[i];
    if (options.most_tokens > 0) {
      EBB_ASSIGN_OR_RETURN(session, counter.cut(session, options.most_tokens));
    }
    EBB_ASSIGN_OR_RETURN(told.emplace_back(), tell_facts(session, static_cast<std::int32_t>(i), options.facts));
  }
  return told;
}

Result<CountedRequest> count_request(AgentRequest request, PromptCounter& counter) {
  EBB_ASSIGN_OR_RETURN(const std::int32_t n_tokens, counter.count(request.tools, request.messages));
  return CountedRequest{.request = std::move(request), .n_tokens = n_tokens};
}

// One after another; facts and what happens on the way may make prompts a little longer than the most.
Result<std::vector<CountedSession>> sessions_of(const AgentSessionsOptions& options) {
  EBB_ASSIGN_OR_RETURN(const auto client, ApiClient::open({.model = options.model, .kv_budget_tokens = kTokenStep},
                                                          {.n_parallel = 1}, {.chat_template = options.chat_template}));
  PromptCounter counter(*client);
  EBB_ASSIGN_OR_RETURN(const std::vector<ToldSession> told, read_told(options, counter));
  const std::size_t n_sessions =
      options.n_sessions > 0 ? std::min(told.size(), static_cast<std::size_t>(options.n_sessions)) : told.size();
  std::vector<CountedSession> all;
  for (std::size_t i = 0; i < n_sessions; ++i) {
    const RecordedSession& session = told[i].session;
    CountedSession one{.told = told[i]};
    for (AgentRequest& request : make_agent_requests(session, told[(i + 1) % told.size()].session)) {
      EBB_ASSIGN_OR_RETURN(one.requests.emplace_back(), count_request(std::move(request), counter));
    }
    for (const AgentFact& fact : told[i].facts) {
      AgentRequest question{
          .session = session.id, .tools = session.tools, .messages = messages_of_question(told[i], fact)};
      EBB_ASSIGN_OR_RETURN(one.questions.emplace_back(), count_request(std::move(question), counter));
    }
    if (!one.requests.empty()) all.push_back(std::move(one));
  }
  if (!all.empty()) return all;
  return error(Code::kInvalidArgument, "{}: no request has {} tokens or fewer", options.workload.string(),
               options.most_tokens);
}

std::int32_t longest_of(std::span<const CountedSession> sessions) {
  std::int32_t longest = 0;
  for (const CountedSession& session : sessions) {
    for (const auto* const requests : {&session.requests, &session.questions}) {
      for (const CountedRequest& counted : *requests) longest = std::max(longest, counted.n_tokens);
    }
  }
  return longest;
}

// One contender's server, at one amount of memory.
class Arena {
 public:
  Arena(const Contender& contender, std::int32_t n_tokens, const WorkFolder& folder, std::size_t index)
      : contender_(contender),
        n_tokens_(n_tokens),
        saves_(folder / fmt::format("saves-{}", index)),
        log_(folder / fmt::format("log-{}", index)) {}

  Status begin() {
    std::error_code failure;
    std::filesystem::create_directories(saves_, failure);
    EBB_ASSIGN_OR_RETURN(
        server_,
        PeerServer::start({.path = contender_.program, .arguments = contender_.flags(n_tokens_, saves_), .log = log_}));
    return {};
  }

  Status begin_again() {
    end();
    return begin();
  }

  void end() {
    server_->kill();
    peak_ = std::max(peak_, server_->peak_resident_bytes());
  }

  // kIo where the server is gone; a refusal is an answer.
  Result<AgentAnswer> ask(const AgentRequest& request) {
    EBB_ASSIGN_OR_RETURN(const Got got, post(body_of(request), request.session));
    AgentAnswer answer{.refusal = got.refusal, .ms = got.ms};
    if (!answer.refusal.empty()) return answer;
    answer.n_prompt = count_in(got.json, "usage", "prompt_tokens");
    answer.n_computed = count_in(got.json, "timings", "prompt_n");
    return answer;
  }

  Result<FactReply> ask_for(const AgentFact& fact, const ToldSession& told, const AgentRequest& question) {
    Json body = body_of(question);
    body["max_tokens"] = kFactTokens;
    // Models that think would think for longer than that.
    body["chat_template_kwargs"] = {{"enable_thinking", false}};
    EBB_ASSIGN_OR_RETURN(const Got got, post(std::move(body), question.session));
    if (!got.refusal.empty()) return FactReply{.verdict = FactVerdict::kRefused, .text = got.refusal};
    FactReply reply{.text = text_in(got.json)};
    if (is_right(reply.text, told, fact)) reply.verdict = FactVerdict::kRight;
    return reply;
  }

  [[nodiscard]] std::size_t peak() const { return peak_; }

 private:
  struct Got {
    std::string refusal;  // empty: it was answered
    double ms = 0.0;
    Json json;
  };

  Result<Got> post(Json body, const std::string& session) {
    body.update(contender_.more);
    EBB_ASSIGN_OR_RETURN(const PeerAnswer answer, server_->post("/v1/chat/completions", body.dump(), session));
    Result<Json> json = parse_json(answer.body);
    if (!json.ok()) return error(Code::kIo, "{}: an answer that is no JSON: {}", contender_.name, answer.body);
    Got got{.ms = answer.ms, .json = *std::move(json)};
    if (answer.status != 200) got.refusal = fmt::format("HTTP {}: {}", answer.status, message_of(got.json));
    return got;
  }

  const Contender& contender_;
  std::int32_t n_tokens_;
  std::filesystem::path saves_;
  std::filesystem::path log_;
  std::unique_ptr<PeerServer> server_;
  std::size_t peak_ = 0;
};

class SessionsRun {
 public:
  SessionsRun(const AgentSessionsOptions& options, const std::vector<Contender>& contenders,
              std::span<const CountedSession> sessions)
      : options_(options), contenders_(contenders), sessions_(sessions) {
    for (const CountedSession& session : sessions) n_all_ += session.requests.size() + session.questions.size();
    n_all_ *= options.shares.size();
  }

  Result<AgentMemory> at(double share, std::int32_t n_tokens) {
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFolder> folder, WorkFolder::make(options_.work_folder));
    std::vector<Arena> arenas;
    for (std::size_t i = 0; i < contenders_.size(); ++i) arenas.emplace_back(contenders_[i], n_tokens, *folder, i);
    for (Arena& arena : arenas) EBB_RETURN_IF_ERROR(arena.begin());
    AgentMemory memory{.share = share, .n_tokens = n_tokens};
    for (const CountedSession& session : sessions_) EBB_RETURN_IF_ERROR(replay(session, arenas, memory));
    for (Arena& arena : arenas) {
      arena.end();
      memory.peak_resident_bytes.push_back(arena.peak());
    }
    return memory;
  }

 private:
  Status replay(const CountedSession& session, std::span<Arena> arenas, AgentMemory& memory) {
    for (const CountedRequest& counted : session.requests) {
      show(memory.n_tokens, counted.request.session);
      EBB_ASSIGN_OR_RETURN(memory.asked.emplace_back(), ask_all(counted, arenas));
    }
    for (std::size_t i = 0; i < session.questions.size(); ++i) {
      show(memory.n_tokens, "facts of " + session.told.session.id);
      EBB_ASSIGN_OR_RETURN(memory.facts.emplace_back(), ask_all_for(session, i, arenas));
    }
    return {};
  }

  // Who is first changes, so that no one always finds the caches warm or cold.
  Result<AskedRequest> ask_all(const CountedRequest& counted, std::span<Arena> arenas) {
    const AgentRequest& request = counted.request;
    AskedRequest asked{.event = request.event, .session = request.session, .n_tokens = counted.n_tokens};
    asked.answers.resize(arenas.size());
    for (std::size_t i = 0; i < arenas.size(); ++i) {
      const std::size_t at = (i + n_asked_) % arenas.size();
      if (request.event == AgentEvent::kKilled) EBB_RETURN_IF_ERROR(arenas[at].begin_again());
      EBB_ASSIGN_OR_RETURN(asked.answers[at], arenas[at].ask(request));
    }
    ++n_asked_;
    return asked;
  }

  Result<AskedFact> ask_all_for(const CountedSession& session, std::size_t index, std::span<Arena> arenas) {
    const CountedRequest& question = session.questions[index];
    AskedFact asked{
        .fact = session.told.facts[index], .session = question.request.session, .n_tokens = question.n_tokens};
    for (Arena& arena : arenas) {
      EBB_ASSIGN_OR_RETURN(asked.replies.emplace_back(), arena.ask_for(asked.fact, session.told, question.request));
    }
    ++n_asked_;
    return asked;
  }

  void show(std::int32_t n_tokens, const std::string& what) const {
    options_.progress(fmt::format("{} tokens of KV, {}", n_tokens, what),
                      static_cast<double>(n_asked_) / static_cast<double>(n_all_));
  }

  const AgentSessionsOptions& options_;
  const std::vector<Contender>& contenders_;
  std::span<const CountedSession> sessions_;
  std::size_t n_all_ = 0;
  std::size_t n_asked_ = 0;
};

}  // namespace

std::vector<double> times_of(const AgentMemory& memory, std::size_t contender, std::optional<AgentEvent> event) {
  std::vector<double> times;
  for (const AskedRequest& asked : memory.asked) {
    if (event && asked.event != *event) continue;
    if (asked.answers[contender].refusal.empty()) times.push_back(asked.answers[contender].ms);
  }
  return times;
}

std::optional<QuantileRatio> AgentSessionsReport::ratio(const AgentMemory& memory, std::size_t contender,
                                                        double share) const {
  if (!has_peer) return std::nullopt;
  std::vector<double> ours;
  std::vector<double> theirs;
  for (const AskedRequest& asked : memory.asked) {
    if (!asked.answers[contender].refusal.empty() || !asked.answers.back().refusal.empty()) continue;
    ours.push_back(asked.answers[contender].ms);
    theirs.push_back(asked.answers.back().ms);
  }
  if (ours.empty()) return std::nullopt;
  return paired_quantile_ratio(ours, theirs, share);
}

std::string_view name_of(FactVerdict verdict) {
  switch (verdict) {
    case FactVerdict::kRight: return "right";
    case FactVerdict::kWrong: return "wrong";
    case FactVerdict::kRefused: break;
  }
  return "refused";
}

FactCounts count_facts(const AgentMemory& memory, std::size_t contender, CountedFacts of) {
  FactCounts counts;
  for (const AskedFact& asked : memory.facts) {
    if (of == CountedFacts::kCleared && !asked.fact.is_cleared) continue;
    const FactVerdict verdict = asked.replies[contender].verdict;
    ++counts.n_asked;
    counts.n_right += verdict == FactVerdict::kRight ? 1 : 0;
    counts.n_refused += verdict == FactVerdict::kRefused ? 1 : 0;
  }
  return counts;
}

Result<AgentSessionsReport> run_agent_sessions(const AgentSessionsOptions& options) {
  EBB_ASSIGN_OR_RETURN(const std::vector<CountedSession> sessions, sessions_of(options));
  const std::vector<Contender> contenders = contenders_of(options);
  AgentSessionsReport report{.model = options.model.filename().string(),
                             .n_threads = options.n_threads,
                             .n_sessions = static_cast<std::int32_t>(sessions.size()),
                             .has_peer = !options.llama_server.empty()};
  for (const Contender& contender : contenders) report.contenders.push_back(contender.name);
  const std::int32_t longest = longest_of(sessions) + kTokenSlack;
  SessionsRun run(options, contenders, sessions);
  for (const double share : options.shares) {
    const auto n_steps = static_cast<std::int32_t>(std::ceil(share * longest / kTokenStep));
    EBB_ASSIGN_OR_RETURN(report.memories.emplace_back(), run.at(share, n_steps * kTokenStep));
  }
  return report;
}

}  // namespace ebb
