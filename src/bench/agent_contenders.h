// Whom the agent bench asks on recorded sessions: programs, what they are started with, and what is said in each request to them.
//
// They get the same model, template, threads and KV memory; what else a server keeps is as it has it by default.
// Thread rule: pure functions, but for where this program lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/agent_sessions.h"
#include "json/json_fields.h"

namespace ebb {

struct Contender {
  std::string name;
  std::filesystem::path program;
  std::function<std::vector<std::string>(std::int32_t n_tokens, const std::filesystem::path& saves)> flags;
  // Members of each request's body.
  Json more = Json::object();
};

// "ebb" first; the peer, where one is named, last.
[[nodiscard]] std::vector<Contender> contenders_of(const AgentSessionsOptions& options);

}  // namespace ebb
