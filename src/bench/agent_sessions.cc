#include "bench/agent_sessions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "bench/api_client.h"
#include "bench/peer_server.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

// llama-server takes contexts of whole such steps.
constexpr std::int32_t kTokenStep = 256;
// Tokens of the prompt that another renderer may count more, and of the reply.
constexpr std::int32_t kTokenSlack = 128;

// Who is asked: a program, what it is started with, and what its requests say more.
struct Contender {
  std::string name;
  std::filesystem::path program;
  std::function<std::vector<std::string>(std::int32_t n_tokens, const std::filesystem::path& saves)> flags;
  Json more = Json::object();
};

std::vector<std::string> model_flags(const AgentSessionsOptions& options) {
  std::vector<std::string> flags = {"-m", options.model.string()};
  if (options.n_threads > 0) flags.insert(flags.end(), {"-t", std::to_string(options.n_threads)});
  if (!options.chat_template_file.empty()) {
    flags.insert(flags.end(), {"--chat-template-file", options.chat_template_file.string()});
  }
  return flags;
}

std::vector<Contender> contenders_of(const AgentSessionsOptions& options) {
  const auto ours = [options](std::vector<std::string> more) {
    return [options, more](std::int32_t n_tokens, const std::filesystem::path& saves) {
      std::vector<std::string> flags = {"serve"};
      const std::vector<std::string> model = model_flags(options);
      flags.insert(flags.end(), model.begin(), model.end());
      flags.insert(flags.end(), {"--kv-budget", std::to_string(n_tokens)});
      flags.insert(flags.end(), more.begin(), more.end());
      if (more.empty()) flags.insert(flags.end(), {"--kv-store", "ram=1G,disk=" + saves.string()});
      return flags;
    };
  };
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  std::vector<Contender> all = {
      {.name = "ebb", .program = self, .flags = ours({})},
      {.name = "ebb, fresh edits", .program = self, .flags = ours({}), .more = {{"kv_reuse", "fresh"}}},
      {.name = "ebb, nothing recovered",
       .program = self,
       .flags = ours({"--kv-store", "ram=0", "--selectors", "none"})},
  };
  if (options.llama_server.empty()) return all;
  all.push_back({.name = "llama-server",
                 .program = options.llama_server,
                 .flags = [options](std::int32_t n_tokens, const std::filesystem::path&) {
                   std::vector<std::string> flags = model_flags(options);
                   flags.insert(flags.end(), {"-c", std::to_string(n_tokens), "-np", "1", "--jinja"});
                   return flags;
                 }});
  return all;
}

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

struct CountedRequest {
  AgentRequest request;
  std::int32_t n_tokens = 0;
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

// The requests of the sessions one after another; what happens on the way may make some a little longer than the most.
Result<std::vector<CountedRequest>> requests_of(const AgentSessionsOptions& options) {
  EBB_ASSIGN_OR_RETURN(std::vector<RecordedSession> sessions, read_recorded_sessions(options.workload));
  const std::size_t n_sessions = options.n_sessions > 0
                                     ? std::min(sessions.size(), static_cast<std::size_t>(options.n_sessions))
                                     : sessions.size();
  EBB_ASSIGN_OR_RETURN(const auto client, ApiClient::open({.model = options.model, .kv_budget_tokens = kTokenStep},
                                                          {.n_parallel = 1}, {.chat_template = options.chat_template}));
  PromptCounter counter(*client);
  std::vector<CountedRequest> all;
  for (std::size_t i = 0; i < n_sessions; ++i) {
    options.progress("reading " + sessions[i].id, 0.0);
    RecordedSession session = sessions[i];
    RecordedSession other = sessions[(i + 1) % sessions.size()];
    if (options.most_tokens > 0) {
      EBB_ASSIGN_OR_RETURN(session, counter.cut(session, options.most_tokens));
      EBB_ASSIGN_OR_RETURN(other, counter.cut(other, options.most_tokens));
    }
    for (AgentRequest& request : make_agent_requests(session, other)) {
      EBB_ASSIGN_OR_RETURN(const std::int32_t n_tokens, counter.count(request.tools, request.messages));
      all.push_back({.request = std::move(request), .n_tokens = n_tokens});
    }
  }
  if (!all.empty()) return all;
  return error(Code::kInvalidArgument, "{}: no request has {} tokens or fewer", options.workload.string(),
               options.most_tokens);
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
    Json body = body_of(request);
    body.update(contender_.more);
    EBB_ASSIGN_OR_RETURN(const PeerAnswer got, server_->post("/v1/chat/completions", body.dump(), request.session));
    AgentAnswer answer{.ms = got.ms};
    const Result<Json> json = parse_json(got.body);
    if (!json.ok()) return error(Code::kIo, "{}: an answer that is no JSON: {}", contender_.name, got.body);
    if (got.status != 200) {
      answer.refusal = fmt::format("HTTP {}: {}", got.status, message_of(*json));
      return answer;
    }
    answer.n_prompt = count_in(*json, "usage", "prompt_tokens");
    answer.n_computed = count_in(*json, "timings", "prompt_n");
    return answer;
  }

  [[nodiscard]] std::size_t peak() const { return peak_; }

 private:
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
              std::span<const CountedRequest> requests)
      : options_(options), contenders_(contenders), requests_(requests) {}

  Result<AgentMemory> at(double share, std::int32_t n_tokens) {
    EBB_ASSIGN_OR_RETURN(const std::unique_ptr<WorkFolder> folder, WorkFolder::make(options_.work_folder));
    std::vector<Arena> arenas;
    for (std::size_t i = 0; i < contenders_.size(); ++i) arenas.emplace_back(contenders_[i], n_tokens, *folder, i);
    for (Arena& arena : arenas) EBB_RETURN_IF_ERROR(arena.begin());
    AgentMemory memory{.share = share, .n_tokens = n_tokens};
    for (const CountedRequest& counted : requests_) {
      options_.progress(fmt::format("{} tokens of KV, {}", n_tokens, counted.request.session), share_done());
      EBB_ASSIGN_OR_RETURN(memory.asked.emplace_back(), ask_all(counted, arenas));
    }
    for (Arena& arena : arenas) {
      arena.end();
      memory.peak_resident_bytes.push_back(arena.peak());
    }
    return memory;
  }

 private:
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

  [[nodiscard]] double share_done() const {
    return static_cast<double>(n_asked_) / static_cast<double>(requests_.size() * options_.shares.size());
  }

  const AgentSessionsOptions& options_;
  const std::vector<Contender>& contenders_;
  std::span<const CountedRequest> requests_;
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

Result<AgentSessionsReport> run_agent_sessions(const AgentSessionsOptions& options) {
  EBB_ASSIGN_OR_RETURN(const std::vector<CountedRequest> requests, requests_of(options));
  const std::vector<Contender> contenders = contenders_of(options);
  AgentSessionsReport report{.model = options.model.filename().string(),
                             .n_threads = options.n_threads,
                             .has_peer = !options.llama_server.empty()};
  for (const Contender& contender : contenders) report.contenders.push_back(contender.name);
  std::vector<std::string> sessions;
  for (const CountedRequest& counted : requests) {
    if (counted.request.event != AgentEvent::kOther) sessions.push_back(counted.request.session);
  }
  std::ranges::sort(sessions);
  report.n_sessions =
      static_cast<std::int32_t>(std::ranges::distance(sessions.begin(), std::ranges::unique(sessions).begin()));
  const std::int32_t longest = std::ranges::max(requests, {}, &CountedRequest::n_tokens).n_tokens + kTokenSlack;
  SessionsRun run(options, contenders, requests);
  for (const double share : options.shares) {
    const auto n_steps = static_cast<std::int32_t>(std::ceil(share * longest / kTokenStep));
    EBB_ASSIGN_OR_RETURN(report.memories.emplace_back(), run.at(share, n_steps * kTokenStep));
  }
  return report;
}

}  // namespace ebb
