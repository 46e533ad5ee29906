#include "cli/llama_flags.h"

#include <array>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace ebb {
namespace {

enum class Takes { kNothing, kMaybeAValue, kAValue };

struct LlamaFlag {
  const char* names;
  Takes takes;
  bool is_refused;
  // {} is its value.
  const char* says;
};

constexpr std::array kFlags = {
    LlamaFlag{"--jinja", Takes::kNothing, false, "chat templates are always rendered so"},
    LlamaFlag{"--metrics", Takes::kNothing, false, "GET /metrics always answers"},
    LlamaFlag{"--slots", Takes::kNothing, false, "GET /slots answers unless --no-slots is given"},
    LlamaFlag{"--props", Takes::kNothing, false, "GET /props always answers; POST /props is not there"},
    LlamaFlag{"--flash-attn", Takes::kMaybeAValue, false, "there is one attention, and nothing to switch"},
    LlamaFlag{"--gpu-layers,--n-gpu-layers", Takes::kAValue, false, "all layers are computed where --device says"},
    LlamaFlag{"-c,--ctx-size", Takes::kAValue, true,
              "a session may be longer than what is in memory; use --kv-budget {} for the tokens that are"},
    LlamaFlag{"--cache-type-k", Takes::kAValue, true, "use --kv-type {}, which is of K and V both"},
    LlamaFlag{"--cache-type-v", Takes::kAValue, true, "use --kv-type {}, which is of K and V both"},
};

constexpr std::array<std::pair<std::string_view, const char*>, 5> kLongNames = {{{"-np", "--parallel"},
                                                                                 {"-fa", "--flash-attn"},
                                                                                 {"-ngl", "--gpu-layers"},
                                                                                 {"-ctk", "--cache-type-k"},
                                                                                 {"-ctv", "--cache-type-v"}}};

}  // namespace

void add_llama_flags(CLI::App& app, std::vector<std::string>& notes) {
  for (const LlamaFlag& flag : kFlags) {
    const std::string name = std::string(flag.names).substr(std::string_view(flag.names).rfind("--"));
    const auto take = [&flag, &notes, name](const std::string& value) {
      const std::string says = fmt::format(fmt::runtime(flag.says), value);
      // A context of 0 is the model's own.
      if (flag.is_refused && value != "0") throw CLI::ValidationError(name + " " + value, says);
      notes.push_back(name + (flag.is_refused ? " 0 has no effect" : " has no effect: " + says));
    };
    CLI::Option* const option = flag.takes == Takes::kNothing ? app.add_flag_callback(flag.names, [take] { take(""); })
                                                              : app.add_option_function<std::string>(flag.names, take);
    if (flag.takes == Takes::kMaybeAValue) option->expected(0, 1);
    option->group("");
  }
}

const char* long_name(const char* argument) {
  for (const auto& [name, long_name] : kLongNames) {
    if (name == argument) return long_name;
  }
  return argument;
}

}  // namespace ebb
