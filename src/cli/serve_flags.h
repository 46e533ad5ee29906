// The flags of `ebb serve`, of which some hold for the server and others where a request does not say.
//
// They know no engine. Thread rule: the main thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/engine_flags.h"
#include "cli/generation_flags.h"
#include "server/api.h"
#include "server/http.h"

namespace CLI {
class App;
}

namespace ebb {

struct ServeFlags {
  EngineFlags engine;
  HttpOptions http;
  std::string alias;
  std::string chat_template;
  std::string chat_template_file;
  std::int32_t window_tokens = 0;
  std::int32_t most_prompt_tokens = ApiOptions().most_prompt_tokens;
  std::vector<std::string> default_members;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::vector<std::string> cors_origins;
  std::vector<std::string> allowed_hosts;
  std::int32_t n_parallel = 4;
  std::size_t max_queued = 64;
  std::size_t max_sessions = 256;
  std::optional<std::int32_t> key_parallel;
  // Of one key, where not given as owner_limits() and key_bound() have it.
  std::optional<std::size_t> key_queued;
  std::optional<std::size_t> key_sessions;
  std::optional<std::size_t> key_bodies_mib;
  std::string prefix;
  int ping_s = 30;
  bool no_slots = false;
  bool logs_requests = false;
  ResumeOptions resuming;
  std::string reuse = "exact";
  std::string allowed_policies = "open";
  // What holds for requests that do not say.
  GenerationFlags generation;
  RequestDefaults defaults;
  int timeout_s = 60;
};

[[nodiscard]] Reuse reuse_of(const ServeFlags& flags);
// Where there are several keys, none holds all seats, nor more than half of the queue and of the sessions.
[[nodiscard]] OwnerLimits owner_limits(const ServeFlags& flags, const ApiKeys& keys);

// Each is a variable of the environment, too. `flags` must live as long as the command.
void add_serve_flags(CLI::App* command, ServeFlags* flags);

}  // namespace ebb
