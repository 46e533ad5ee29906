#include "bench/agent_contenders.h"

#include <system_error>

namespace ebb {
namespace {

std::vector<std::string> model_flags(const AgentSessionsOptions& options) {
  std::vector<std::string> flags = {"-m", options.model.string()};
  if (options.n_threads > 0) flags.insert(flags.end(), {"-t", std::to_string(options.n_threads)});
  if (!options.chat_template_file.empty()) {
    flags.insert(flags.end(), {"--chat-template-file", options.chat_template_file.string()});
  }
  return flags;
}

}  // namespace

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

}  // namespace ebb
