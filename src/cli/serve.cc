// `ebb serve`: an OpenAI-compatible server whose sessions outgrow the cache.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <sys/resource.h>

#include "base/split_text.h"
#include "cli/bundled_model.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/serve_flags.h"
#include "cli/stop_signals.h"
#include "cli/store_flag.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "gguf/gguf_file.h"
#include "json/parse_json.h"
#include "model/architecture.h"
#include "model/hparams.h"
#include "server/api.h"
#include "server/api_error.h"
#include "server/http.h"
#include "store/cold_store.h"

namespace ebb {
namespace {

// Not fmt::print, which throws where stderr is gone: what is told then is told to nobody, and the server goes on.
void tell(const std::string& line) { (void)std::fputs(("ebb: " + line + "\n").c_str(), stderr); }

constexpr const char* kServeFooter = R"(Examples:
  ebb serve                                              the bundled model on http://127.0.0.1:8080
  ebb serve -m model.gguf --kv-budget 8192 --kv-store ram=4G,disk=$HOME/.cache/ebb/cold
  ebb serve --host /run/ebb.sock --api-key-file keys.txt  `ebb key` makes keys and what to write for them there;
                                                         SIGHUP has them read again

  EBB_KV_BUDGET=8192 EBB_API_KEY=secret ebb serve        every flag is a variable too; the command line wins
  ebb serve -m model.gguf -c 32768 -np 2 -ctk q8_0 -ctv q8_0 --jinja
                                                         llama-server's flags and LLAMA_ARG_* start it, too: docs/llama_server.md

  curl http://127.0.0.1:8080/v1/chat/completions -d '{"messages":[{"role":"user","content":"Hello"}]}'

Clients of OpenAI's API work unchanged: give them http://127.0.0.1:8080/v1 as the base URL; and those of Anthropic's:
http://127.0.0.1:8080. They may send their whole history with each request; a session is found again by the client's
session id or by what it says, and only what is new is computed. Set a client's context limit to the window that you want it to have, not to the KV budget. SIGTERM or
Ctrl-C lets answers under way end for a while, then stops; a second one ends the program at once.)";

constexpr std::chrono::milliseconds kGrace{10'000};
// Longer: trouble of the disk is told later. Shorter: a disk that says something else each time says it more often.
constexpr std::chrono::milliseconds kLook{5'000};

Result<ApiKeys> all_keys(const ServeFlags& flags) {
  if (std::ranges::find(flags.api_keys, "") != flags.api_keys.end()) {
    return error(Code::kInvalidArgument, "--api-key is empty; give a key, or leave the flag out to serve everybody");
  }
  ApiKeys keys(flags.api_keys);
  if (!flags.api_key_file.empty()) {
    EBB_ASSIGN_OR_RETURN(const std::string text, read_text(flags.api_key_file));
    if (const Status added = keys.add_lines(text); !added.ok()) {
      return error(added.code(), "{}: {}", flags.api_key_file, added.message());
    }
    if (keys.size() == flags.api_keys.size()) {
      return error(Code::kInvalidArgument, "{} holds no key; write one to a line, or leave the flag out",
                   flags.api_key_file);
    }
  }
  return keys;
}

// Sessions are kept beside the blocks that they need, in room of their own.
Result<SchedulerOptions> scheduler_options(const ServeFlags& flags, const Engine& engine, const ApiKeys& keys) {
  constexpr std::uint64_t kShareOfDisk = 16;
  const OwnerLimits of_key = owner_limits(flags, keys);
  SchedulerOptions options{
      .n_parallel = flags.n_parallel,
      .n_parallel_of_owner = of_key.n_parallel,
      .max_queued = flags.max_queued,
      .max_queued_of_owner = of_key.max_queued,
      .lanes = {.most = flags.max_sessions, .most_of_owner = of_key.most_lanes, .is_known_owner = of_key.is_known},
      .session = engine.session_options()};
  EBB_ASSIGN_OR_RETURN(options.lanes.policies, OfferedPolicies::parse(flags.allowed_policies));
  EBB_ASSIGN_OR_RETURN(const ColdStoreOptions store, parse_store_flag(flags.engine.store));
  if (store.disk) {
    options.folder = {.folder = store.disk->folder / "sessions", .max_bytes = store.disk->max_bytes / kShareOfDisk};
  }
  return options;
}

// A file that is missing or sick changes nothing: those who could ask still can.
void read_keys_again(const ServeFlags& flags, Scheduler& scheduler, Api& api) {
  Result<ApiKeys> keys = all_keys(flags);
  if (!keys.ok()) {
    tell(fmt::format("the keys stay as they were: {}", keys.status().message()));
    return;
  }
  const std::size_t n_keys = keys->size();
  scheduler.set_owner_limits(owner_limits(flags, *keys));
  api.set_keys(*std::move(keys));
  tell(fmt::format("{} was read again; keys that may ask from now on: {}", flags.api_key_file, n_keys));
}

// Descriptors beside connections: the model, the store's files, logs, listening sockets.
constexpr std::size_t kOtherFiles = 64;

// Lets the process have a descriptor for each connection; where the system does not, fewer connections are taken.
void fit_file_limit(std::size_t& max_connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = max_connections + kOtherFiles;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= wanted) return;
  const std::size_t n_fit = std::max<std::size_t>(limit.rlim_cur, kOtherFiles + 1) - kOtherFiles;
  tell(fmt::format("{} connections at most instead of {}: the system allows {} open files (ulimit -n)", n_fit,
                   max_connections, limit.rlim_cur));
  max_connections = n_fit;
}

Status check_prefix(const std::string& prefix) {
  if (prefix.empty() || (prefix.size() > 1 && prefix.front() == '/' && prefix.back() != '/')) return {};
  return error(Code::kInvalidArgument, "--api-prefix '{}'; give one that begins with '/' and does not end with it",
               prefix);
}

// Tells whoever runs the server, and nobody else, what went wrong with the disk: it names paths, and holds no prompt.
class TroubleReport {
 public:
  TroubleReport(const Engine& engine, const Scheduler& scheduler) : engine_(engine), scheduler_(scheduler) {}

  void print_news() {
    if (const ColdStore* store = engine_.store(); store != nullptr) {
      for (const TierStats& tier : store->stats().tiers) {
        print(fmt::format("cold store, {}", tier.name), tier.last_error);
        print(fmt::format("cold store, {}, note", tier.name), tier.notice);
      }
    }
    const SchedulerStats stats = scheduler_.stats();
    print("sessions on disk", stats.kept.last_error);
    if (stats.n_instruction_holes > 0) {
      print("KV budget",
            fmt::format("{} tokens do not hold a client's own system text and tools; raise --kv-budget (answers tell "
                        "how much is not in sight)",
                        engine_.budget_tokens()));
    }
  }

 private:
  void print(const std::string& place, const std::string& trouble) {
    std::string& told = told_[place];
    if (trouble.empty() || trouble == told) return;
    tell(fmt::format("{}: {}", place, trouble));
    told = trouble;
  }

  const Engine& engine_;
  const Scheduler& scheduler_;
  std::map<std::string, std::string> told_;  // by place, the last that was said of it
};

// A window without a budget is the memory for it, as in llama.cpp's server.
Status fit_budget(ServeFlags& flags) {
  if (flags.window_tokens == 0 || flags.engine.kv_budget > 0) return {};
  EBB_ASSIGN_OR_RETURN(const std::filesystem::path path, given_or_bundled_model(flags.engine.model));
  EBB_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path));
  EBB_ASSIGN_OR_RETURN(const Architecture* architecture, get_architecture(file));
  EBB_ASSIGN_OR_RETURN(const Hparams hparams, read_hparams(file, *architecture));
  if (flags.window_tokens >= hparams.n_ctx_train) return {};
  // Of whole blocks, as many as hold it.
  const std::int32_t given = flags.engine.block_size;
  const std::int32_t size = given > 0 ? given : block_size_for(flags.window_tokens);
  flags.engine.kv_budget = (flags.window_tokens + size - 1) / size * size;
  return {};
}

Result<Json> read_default_members(const std::vector<std::string>& given) {
  Json members = Json::object();
  for (const std::string& text : given) {
    Result<Json> some = parse_json(text);
    if (!some.ok() || !some->is_object()) {
      return error(Code::kInvalidArgument, "--request-defaults must be a JSON object, such as {}", R"({"min_p":0.1})");
    }
    members.update(*some);
  }
  return members;
}

std::optional<std::size_t> key_body_bytes(const ServeFlags& flags) {
  if (!flags.key_bodies_mib) return std::nullopt;
  return *flags.key_bodies_mib << 20;
}

std::function<void(std::string_view)> request_log(const ServeFlags& flags) {
  if (!flags.logs_requests) return {};
  return [](std::string_view line) { tell(std::string(line)); };
}

Status serve(ServeFlags flags) {
  // A reader of our lines that has gone is no reason to end.
  std::signal(SIGPIPE, SIG_IGN);
  flags.allowed_hosts.push_back(flags.http.host);
  flags.http.write_timeout = std::chrono::seconds(flags.timeout_s);
  flags.resuming.reuse = reuse_of(flags);
  EBB_ASSIGN_OR_RETURN(const GenerationOptions generation, generation_options(flags.generation));
  flags.defaults.sampling = generation.sampling;
  flags.defaults.max_tokens = generation.max_tokens;
  EBB_ASSIGN_OR_RETURN(flags.defaults.members, read_default_members(flags.default_members));
  EBB_RETURN_IF_ERROR(default_members(flags.defaults).status());
  EBB_RETURN_IF_ERROR(check_prefix(flags.prefix));
  fit_file_limit(flags.http.max_connections);
  EBB_ASSIGN_OR_RETURN(const ApiKeys keys, all_keys(flags));
  std::string chat_template = flags.chat_template;
  if (!flags.chat_template_file.empty()) {
    EBB_ASSIGN_OR_RETURN(chat_template, read_text(flags.chat_template_file));
  }
  EBB_RETURN_IF_ERROR(fit_budget(flags));
  std::unique_ptr<Engine> engine;
  {
    InterruptListener interrupt;
    EBB_ASSIGN_OR_RETURN(engine, open_engine(flags.engine, interrupt));
  }
  EBB_RETURN_IF_ERROR(engine->check_selectors(generation.recall.selectors));
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Embedder> embedder, engine->open_embedder());
  const std::filesystem::path embedding_model = flags.engine.embedding_model;
  StopSignals stop;
  if (!flags.api_key_file.empty()) stop.hear_hangup();
  EBB_ASSIGN_OR_RETURN(const SchedulerOptions options, scheduler_options(flags, *engine, keys));
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Scheduler> scheduler, Scheduler::start(*engine, options));
  EBB_ASSIGN_OR_RETURN(const std::filesystem::path model, given_or_bundled_model(flags.engine.model));
  const std::vector<std::string_view> given = split_text(flags.alias, ',');
  std::vector<std::string> names(given.begin(), given.end());
  if (names.empty()) names = {model.stem().string()};
  // Outlives the API, which asks for its counters, and may be asked itself before it is all there.
  std::unique_ptr<HttpServer> http;
  std::atomic<const HttpServer*> started = nullptr;
  EBB_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api,
                       Api::create(*engine, *scheduler,
                                   {.model_name = names.front(),
                                    .model_path = model.string(),
                                    .chat_template = chat_template,
                                    .window_tokens = flags.window_tokens,
                                    .most_prompt_tokens = flags.most_prompt_tokens,
                                    .aliases = {names.begin() + 1, names.end()},
                                    .embedder = embedder.get(),
                                    .embedding_model_name = embedding_model.stem().string(),
                                    .keys = keys,
                                    .max_bodies_bytes = flags.http.max_bodies_bytes,
                                    .key_body_bytes = key_body_bytes(flags),
                                    .prefix = flags.prefix,
                                    .cors_origins = flags.cors_origins,
                                    .allowed_hosts = flags.allowed_hosts,
                                    .ping_after = std::chrono::seconds(flags.ping_s),
                                    .log_request = request_log(flags),
                                    .tell_loss = [](std::string_view line) { tell(std::string(line)); },
                                    .slots = !flags.no_slots,
                                    .http_counters =
                                        [&started] {
                                          const HttpServer* server = started.load();
                                          return server != nullptr ? server->counters() : HttpCounters();
                                        },
                                    .resuming = flags.resuming,
                                    .defaults = flags.defaults,
                                    .n_recalled_blocks = flags.generation.recall_blocks,
                                    .most_recall_ms = flags.generation.recall_ms,
                                    .selectors = generation.recall.selectors}));
  if (!api->template_doubt().empty()) tell(api->template_doubt());
  flags.http.error_answer = http_error_answer;
  flags.http.check_body = [&](const HttpRequest& head) { return api->check_body(head); };
  flags.http.share_body = [&](const HttpRequest& head) { return api->share_body(head); };
  EBB_ASSIGN_OR_RETURN(http,
                       HttpServer::start(flags.http, [&](HttpRequest request, std::shared_ptr<Responder> responder) {
                         api->handle(std::move(request), std::move(responder));
                       }));
  tell(fmt::format("{} serves {} within a KV budget of {} tokens, {} requests at once{}", http->address(),
                   model.filename().string(), engine->budget_tokens(), flags.n_parallel,
                   keys.empty() ? "" : ", for those who have a key"));
  started = http.get();
  TroubleReport trouble(*engine, *scheduler);
  do {
    trouble.print_news();
    if (stop.take_hangup()) read_keys_again(flags, *scheduler, *api);
  } while (!stop.wait_for(kLook));
  tell(fmt::format("going down; answers under way have {} seconds", kGrace.count() / 1000));
  http->stop(kGrace);
  return {};
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Answer clients of OpenAI's and Anthropic's APIs");
  command->footer(kServeFooter);
  add_serve_flags(command, flags.get());
  command->callback([flags, &action] {
    action = [flags] {
      const Status status = serve(*flags);
      return status.ok() ? ExitCode::kOk : fail(status);
    };
  });
}

}  // namespace ebb
