#include "bench/agent.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "bench/api_client.h"
#include "bench/sections.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

constexpr std::uint64_t kSeed = 5;
// The length of each file that the agent reads in the course of the session.
constexpr std::int32_t kFileTokens = 600;
constexpr std::string_view kSession = "ses_bench";
constexpr std::string_view kCleared = "[Old tool result content cleared]";
constexpr std::string_view kReminder = "\n<system-reminder>Keep to the plan: read before you write.</system-reminder>";

Result<std::vector<Json>> read_bodies(const std::filesystem::path& folder) {
  std::error_code failure;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Json> bodies;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EBB_ASSIGN_OR_RETURN(Json body, parse_json(text));
    if (!body.is_object() || !body.contains("messages") || !body["messages"].is_array()) {
      return error(Code::kInvalidArgument, "{}: no body of a chat request: it has no messages", path.string());
    }
    bodies.push_back(std::move(body));
  }
  if (!bodies.empty()) return bodies;
  return error(Code::kNotFound, "{}: no request bodies (*.json); give a folder of recorded ones", folder.string());
}

// A model's reply as agents say it again: the arguments of calls parsed and written anew, empty content as "".
Json said_again(Json reply) {
  if (reply["content"].is_null()) reply["content"] = "";
  if (!reply.contains("tool_calls")) return reply;
  for (Json& call : reply["tool_calls"]) {
    std::string& arguments = call["function"]["arguments"].get_ref<std::string&>();
    const Result<Json> parsed = parse_json(arguments);
    if (parsed.ok()) arguments = parsed->dump();
  }
  return reply;
}

std::int32_t n_common(std::span<const Token> a, std::span<const Token> b) {
  return static_cast<std::int32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

class AgentReplay {
 public:
  AgentReplay(ApiClient& client, std::int32_t n_reply, AgentRun& run)
      : client_(client), n_reply_(n_reply), run_(run), files_(client.vocabulary(), kSeed) {}

  Status play(const std::vector<Json>& recorded) {
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      body_ = recorded[i];
      EBB_RETURN_IF_ERROR(ask(fmt::format("recorded {}", i + 1)));
      if (i == 0) EBB_RETURN_IF_ERROR(ask_title());
    }
    EBB_RETURN_IF_ERROR(call_a_tool());
    EBB_RETURN_IF_ERROR(move_a_reminder());
    EBB_RETURN_IF_ERROR(clear_old_results());
    EBB_RETURN_IF_ERROR(ask("the same request again"));
    return compact();
  }

 private:
  [[nodiscard]] Json& messages() { return body_["messages"]; }
  // The reply to the last request, and what the user says next.
  void go_on(std::string text) {
    messages().push_back(said_again(reply_));
    messages().push_back(make_message("user", std::move(text)));
  }

  Status ask(std::string name) {
    EBB_ASSIGN_OR_RETURN(reply_, ask(std::move(name), body_));
    return {};
  }

  // The reply's message.
  Result<Json> ask(std::string name, Json body) {
    body.erase("stream_options");
    body["stream"] = false;
    body["max_tokens"] = n_reply_;
    body["temperature"] = 0;
    body["kv_reuse"] = name_of(run_.reuse);
    EBB_ASSIGN_OR_RETURN(std::vector<Token> prompt, client_.prompt_tokens(body));
    const Stopwatch watch;
    EBB_ASSIGN_OR_RETURN(const Json answer, client_.post("/v1/chat/completions", body, kSession));
    const Json& counts = answer["ebb"]["prompt"];
    const auto count = [&](const char* of) { return counts[of].get<std::int32_t>(); };
    AgentStep step = {.name = std::move(name),
                      .n_prompt = static_cast<std::int32_t>(prompt.size()),
                      // Not what is new: of a prompt longer than the budget much was computed and has left again since.
                      .n_computed = answer["timings"]["prompt_n"].get<std::int32_t>(),
                      .n_new = count("new") + count("recomputed"),
                      .n_exact = count("hot") + count("shared") + count("recalled_exact"),
                      .n_partly = count("partly_hot"),
                      .n_approximate = count("recalled_approximate"),
                      .n_holes = count("holes"),
                      .n_prefix_cache = remember(prompt),
                      .peak_hot_tokens = client_.peak_hot_tokens(),
                      .ms = watch.elapsed_ms()};
    // The prompt may be held in other tokens than it was said in; the reply is what is behind it.
    const std::vector<Token> held = client_.held_tokens();
    const std::int32_t n_held = step.n_new + step.n_exact + step.n_partly + step.n_approximate + step.n_holes;
    if (answer["usage"]["prompt_tokens"] != n_held) {
      return error(Code::kInvalidArgument, "{}: the prompt has {} tokens by their places and {} by its usage",
                   step.name, n_held, answer["usage"]["prompt_tokens"].get<std::int32_t>());
    }
    prompt.insert(prompt.end(), held.begin() + std::min(n_held, static_cast<std::int32_t>(held.size())), held.end());
    remembered_.push_back(std::move(prompt));
    run_.steps.push_back(std::move(step));
    return answer["choices"][0]["message"];
  }

  // What the prefix cache computes of a prompt.
  [[nodiscard]] std::int32_t remember(std::span<const Token> prompt) const {
    std::int32_t n_most = 0;
    for (const std::vector<Token>& before : remembered_) n_most = std::max(n_most, n_common(before, prompt));
    const auto n_prompt = static_cast<std::int32_t>(prompt.size());
    return n_prompt - std::min(n_most, n_prompt - 1);
  }

  Status ask_title() {
    const Json title = {
        {"messages",
         {make_message("system", "You write titles. Answer with a title of at most five words, no quotes."),
          make_message("user", "Write a title for this conversation:"), messages().back()}}};
    return ask("title request", title).status();
  }

  // The model is made to call, so that what it wrote itself comes back as a client writes it.
  Status call_a_tool() {
    go_on("Look at the notes.");
    const Json tool_choice = body_.value("tool_choice", Json("auto"));
    if (body_.contains("tools")) body_["tool_choice"] = "required";
    EBB_RETURN_IF_ERROR(ask("the model calls a tool"));
    body_["tool_choice"] = tool_choice;
    EBB_RETURN_IF_ERROR(add_result());
    return ask("its call comes back");
  }

  // Adds results of the calls that were just made; where the model made none, of one that it is said to have made.
  Status add_result() {
    Json call = said_again(reply_);
    if (!call.contains("tool_calls") || call["tool_calls"].empty()) {
      call["tool_calls"] = Json::array(
          {{{"id", "call_notes"}, {"type", "function"}, {"function", {{"name", "read"}, {"arguments", "{}"}}}}});
    }
    messages().push_back(call);
    for (const Json& made : call["tool_calls"]) {
      EBB_ASSIGN_OR_RETURN(const Section file, files_.write(kFileTokens));
      messages().push_back({{"role", "tool"}, {"tool_call_id", made["id"]}, {"content", file.text}});
    }
    return {};
  }

  Status move_a_reminder() {
    go_on("What do they say?" + std::string(kReminder));
    EBB_RETURN_IF_ERROR(ask("a reminder"));
    messages().back()["content"] = "What do they say?";
    go_on("And what else?" + std::string(kReminder));
    return ask("the reminder moves");
  }

  // All but the last one.
  Status clear_old_results() {
    std::optional<std::size_t> last;
    for (std::size_t i = messages().size(); i-- > 0;) {
      if (messages()[i]["role"] != "tool") continue;
      if (last) messages()[i]["content"] = kCleared;
      last = i;
    }
    go_on("Go on.");
    return ask("old tool results are cleared");
  }

  Status compact() {
    std::string text;
    for (const Json& said : messages()) {
      if (said["role"] == "system" || said["role"] == "tool" || !said["content"].is_string()) continue;
      text += said["role"].get<std::string>() + ": " + said["content"].get<std::string>() + "\n";
    }
    const Json summing = {{"messages",
                           {make_message("system", "You sum up conversations so that another can go on with the work."),
                            make_message("user", "Sum up this conversation.\n" + text)}}};
    EBB_ASSIGN_OR_RETURN(const Json summary, ask("summary request", summing));
    Json begun = Json::array();
    if (messages()[0]["role"] == "system") begun.push_back(messages()[0]);
    begun.push_back(make_message("user", "What did we do so far?"));
    begun.push_back(said_again(summary));
    begun.push_back(make_message("user", "Continue if there are next steps."));
    messages() = std::move(begun);
    EBB_RETURN_IF_ERROR(ask("begun anew with the summary"));
    go_on("Go on.");
    return ask("and going on");
  }

  ApiClient& client_;
  std::int32_t n_reply_;
  AgentRun& run_;
  SectionWriter files_;
  Json body_;
  Json reply_;
  // Prompts with their replies.
  std::vector<std::vector<Token>> remembered_;
};

std::int64_t sum(const std::vector<AgentStep>& steps, std::int32_t AgentStep::*of) {
  std::int64_t total = 0;
  for (const AgentStep& step : steps) total += step.*of;
  return total;
}

double ratio_of(std::int64_t n_computed, std::int64_t n_prefix_cache) {
  return static_cast<double>(n_computed) / static_cast<double>(n_prefix_cache);
}

}  // namespace

std::int64_t AgentRun::n_computed() const { return sum(steps, &AgentStep::n_computed); }
std::int64_t AgentRun::n_prefix_cache() const { return sum(steps, &AgentStep::n_prefix_cache); }
double AgentRun::ratio() const { return ratio_of(n_computed(), n_prefix_cache()); }
double AgentRun::later_ratio() const {
  return ratio_of(n_computed() - steps.front().n_computed, n_prefix_cache() - steps.front().n_prefix_cache);
}

Result<AgentRun> replay_agent(const AgentOptions& options, std::int32_t budget_tokens, Reuse reuse) {
  EBB_ASSIGN_OR_RETURN(const std::vector<Json> bodies, read_bodies(options.workload));
  EBB_ASSIGN_OR_RETURN(const auto client, ApiClient::open({.model = options.model,
                                                           .n_threads = options.n_threads,
                                                           .block_size = options.block_size,
                                                           .kv_budget_tokens = budget_tokens,
                                                           .policy = options.policy},
                                                          {.n_parallel = 2}, {.chat_template = options.chat_template}));
  AgentRun run = {.budget_tokens = budget_tokens, .reuse = reuse};
  EBB_RETURN_IF_ERROR(AgentReplay(*client, options.n_reply, run).play(bodies));
  return run;
}

Result<AgentReport> run_agent(const AgentOptions& options) {
  AgentReport report = {
      .model = options.model.stem().string(), .block_size = options.block_size, .policy = options.policy};
  const double n_runs = 2.0 * static_cast<double>(options.budgets.size());
  for (const std::int32_t budget : options.budgets) {
    for (const Reuse reuse : {Reuse::kExact, Reuse::kApproximate}) {
      options.progress(fmt::format("replaying within {} tokens", budget),
                       static_cast<double>(report.runs.size()) / n_runs);
      EBB_ASSIGN_OR_RETURN(report.runs.emplace_back(), replay_agent(options, budget, reuse));
    }
  }
  return report;
}

}  // namespace ebb
