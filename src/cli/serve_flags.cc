#include "cli/serve_flags.h"

#include <algorithm>
#include <limits>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/llama_flags.h"
#include "cli/own_variable.h"
#include "server/key_bound.h"

namespace ebb {
namespace {

// With what is done between steps, less than the 50 ms that readers see as no pause.
constexpr int kMaxPauseMs = 30;

const std::map<std::string, Reuse> kReuses(kReuseNames.begin(), kReuseNames.end());

// --kv-budget is EBB_KV_BUDGET where the command line does not have it.
void add_environment(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_lnames().empty() ? "" : option->get_lnames().front();
    if (name.empty() || name == "help" || name == "llama-flags") continue;
    option->envname(own_variable(name));
  }
}

// The last one counts, as in llama.cpp's server, of flags that have one value: scripts add theirs behind what a line has already.
void take_last(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 1) option->take_last();
  }
}

void add_key_flags(CLI::App& command, ServeFlags& flags, const char* group) {
  const auto add_bound = [&](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::Range(1, 1'000'000))->type_name("N")->group(group);
  };
  add_bound("--key-parallel", flags.key_parallel,
            "Requests of one key computed at once; its others wait. Default: one fewer than --parallel where there "
            "are several keys, else as many");
  add_bound("--key-queued", flags.key_queued,
            "Requests of one key that may wait; more are told to try again (429). Default: half of --max-queued where "
            "there are several keys, else as many");
  add_bound(
      "--key-sessions", flags.key_sessions,
      "Sessions of one key; then its longest unused is forgotten. Default: half of --max-sessions where there are "
      "several keys, else as many");
  add_bound(
      "--key-bodies", flags.key_bodies_mib,
      "MiB that the bodies of one key's requests may have on their way; more are told to try again (429). Default: "
      "half of the 1024 of all where there are several keys, else as many");
}

void add_default_flags(CLI::App& command, ServeFlags& flags) {
  const char* group = "Where requests do not say";
  command
      .add_option("-n,--predict,--n-predict", flags.generation.max_tokens,
                  "Tokens to generate at most; -1: as the model was trained for")
      ->check(CLI::Range(-1, std::numeric_limits<std::int32_t>::max()))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--reasoning-format", flags.defaults.reasoning_format,
                  "Where thinking goes: auto and deepseek give it as reasoning_content, none leaves it in the content")
      ->check(CLI::IsMember(std::vector<std::string>{"auto", "deepseek", "deepseek-legacy", "none"}))
      ->type_name("FORMAT")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--reasoning-budget", flags.defaults.max_thinking_tokens,
                  "Tokens of thinking at most; 0: none, -1: no bound")
      ->check(CLI::Range(-1, 1 << 30))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--chat-template-kwargs", flags.defaults.chat_template_kwargs,
                  R"(What the chat template gets, such as {"enable_thinking":false}; a request's own come first)")
      ->type_name("JSON")
      ->group(group);
  command
      .add_option("--request-defaults", flags.default_members,
                  R"(Any other members of requests, such as {"dry_multiplier":0.8}; may be given several times)")
      ->type_name("JSON")
      ->allow_extra_args(false)
      ->group(group);
  add_recall_flags(command, flags.generation);
  add_sampling_flags(command, flags.generation);
}

}  // namespace

Reuse reuse_of(const ServeFlags& flags) { return kReuses.at(flags.reuse); }

OwnerLimits owner_limits(const ServeFlags& flags, const ApiKeys& keys) {
  const std::size_t n_keys = keys.size();
  const std::int32_t most_seats = n_keys > 1 ? std::max(1, flags.n_parallel - 1) : flags.n_parallel;
  return {.n_parallel = flags.key_parallel.value_or(most_seats),
          .max_queued = key_bound(flags.key_queued, flags.max_queued, n_keys),
          .most_lanes = key_bound(flags.key_sessions, flags.max_sessions, n_keys),
          .is_known = [keys](std::string_view owner) { return keys.is_owner(owner); }};
}

void add_serve_flags(CLI::App* command, ServeFlags* flags) {
  const char* group = "Server";
  command
      ->add_option("--host", flags->http.host, "Name or address to listen at, or a Unix socket's path ending in .sock")
      ->type_name("HOST")
      ->capture_default_str()
      ->group(group);
  command->add_option("--port", flags->http.port, "0: any free one")
      ->type_name("PORT")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("-a,--alias", flags->alias,
                   "What clients call the model, further names behind commas; default: the file's name")
      ->type_name("NAME")
      ->group(group);
  command->add_option("--chat-template-file", flags->chat_template_file, "Jinja, instead of the model's own templates")
      ->type_name("FILE")
      ->group(group);
  command->add_option("--chat-template", flags->chat_template, "The same as text, and not from a file")
      ->type_name("JINJA")
      ->excludes("--chat-template-file")
      ->group(group);
  command
      ->add_option("-c,--ctx-size", flags->window_tokens,
                   "Tokens of a prompt and its reply together: the window that clients see, at which replies end, and "
                   "above which requests are "
                   "refused. Without --kv-budget it is the budget, too. 0: the trained context is told, and sessions "
                   "go on past it")
      ->check(CLI::Range(0, 1 << 30))
      ->type_name("TOKENS")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--max-prompt", flags->most_prompt_tokens,
                   "Tokens of a prompt at most, window or none; a longer one is refused before anything is computed")
      ->check(CLI::Range(1, 1 << 30))
      ->type_name("TOKENS")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--parallel", flags->n_parallel,
                   "Requests computed together, which share the budget; each needs at least 4 blocks of it")
      ->check(CLI::Range(1, 256))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  flags->engine.max_pause_ms = kMaxPauseMs;
  command
      ->add_option(
          "--max-pause", flags->engine.max_pause_ms,
          "Milliseconds that a reply stands still, about, while others' prompts are read: then these have fewer "
          "tokens in a step than --chunk. Where a step that reads none takes long by itself, four times that. 0: no "
          "bound")
      ->check(CLI::Range(0, 60'000))
      ->type_name("MS")
      ->capture_default_str()
      ->group(group);
  const auto add_count = [&](const char* name, auto& value, const char* help) {
    command->add_option(name, value, help)
        ->check(CLI::Range(1, 1'000'000))
        ->type_name("N")
        ->capture_default_str()
        ->group(group);
  };
  add_count("--max-queued", flags->max_queued, "Requests that may wait; more are told to try again (429)");
  add_count("--max-sessions", flags->max_sessions,
            "Sessions there may be; then the longest unused of the key that has most is forgotten");
  add_count("--max-connections", flags->http.max_connections, "Connections there may be; more are turned away (503)");
  add_key_flags(*command, *flags, group);
  command->add_option("--api-key", flags->api_keys, "A key that clients must send; may be given several times")
      ->type_name("KEY")
      ->group(group);
  command
      ->add_option(
          "--api-key-file", flags->api_key_file,
          "Keys, or the lines that `ebb key` prints for them, one to a line; lines with # are comments. SIGHUP "
          "has it read again")
      ->type_name("FILE")
      ->group(group);
  command
      ->add_option("--cors-origins", flags->cors_origins,
                   "Web pages of other machines that may ask, such as https://chat.example; pages of this machine may")
      ->type_name("ORIGIN")
      ->group(group);
  command
      ->add_option("--allowed-hosts", flags->allowed_hosts,
                   "Names by which clients without keys may ask, such as box.lan (*: all); addresses, --host and names "
                   "that public DNS does not serve (box, box.local, box.internal) always may")
      ->type_name("NAME")
      ->group(group);
  command->add_option("--sse-ping-interval", flags->ping_s, "Seconds of silence after which a stream gets a comment")
      ->check(CLI::Range(1, 3600))
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(group);
  command->add_option("--timeout", flags->timeout_s, "Seconds after which a client that takes nothing is dropped")
      ->check(CLI::Range(1, 86'400))
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option(
          "--kv-reuse", flags->reuse,
          "What follows an edit of the history (a cleared tool result, dropped thinking): exact computes it "
          "again; fresh computes what relied on what changed and takes the rest as it was computed behind the "
          "old text, counted apart; approximate takes all of it; both for requests that name their session alone")
      ->check(CLI::IsMember(kReuses))
      ->type_name("exact|fresh|approximate")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--kv-reuse-recompute", flags->resuming.n_recomputed,
                   "Of each block that is reused so, the first tokens that are computed all the same")
      ->check(CLI::Range(0, 128))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--allowed-policies", flags->allowed_policies,
                   "What a request or a session's owner may choose with kv_eviction: names with commas; open: all that "
                   "give way to others at little cost; all; own: none but --kv-eviction")
      ->check([](const std::string& list) {
        const auto offered = OfferedPolicies::parse(list);
        return offered.ok() ? std::string() : offered.status().message();
      })
      ->type_name("NAMES")
      ->capture_default_str()
      ->group(group);
  command->add_option("--api-prefix", flags->prefix, "What stands in front of every route, such as /llm")
      ->type_name("PATH")
      ->group(group);
  command
      ->add_flag("--log-requests", flags->logs_requests,
                 "Tell on stderr each request that ended: its x-request-id, method, path, status and time")
      ->group(group);
  command->add_flag("--no-slots", flags->no_slots, "Do not tell at /slots what is computed")->group(group);
  command
      ->add_flag_callback(
          "--llama-flags",
          [] {
            fmt::print("{}", llama_flags_table());
            throw CLI::Success();
          },
          "Print what becomes of each flag of llama.cpp's server, as a table in Markdown, and leave")
      ->group(group);
  add_default_flags(*command, *flags);
  add_engine_flags(*command, flags->engine);
  add_environment(*command);
  take_last(*command);
}

}  // namespace ebb
