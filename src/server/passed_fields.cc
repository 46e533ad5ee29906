#include "server/passed_fields.h"

#include <array>

#include "server/sampling_fields.h"

namespace ebb {
namespace {

constexpr std::array kPassed = {"model",
                                "stream",
                                "metadata",
                                "chat_template_kwargs",
                                "reasoning_format",
                                "prompt_cache_key",
                                "cache_prompt",
                                "sse_ping_interval",
                                "return_progress",
                                "timings_per_token",
                                "grammar",
                                "kv_reuse",
                                "kv_reuse_recompute",
                                "kv_eviction",
                                "kv_prompt_budget",
                                "kv_sparse_prompt",
                                "ebb"};

}  // namespace

void copy_fields(const Json& from, std::span<const char* const> names, Json& to) {
  for (const char* name : names) {
    if (from.contains(name)) to[name] = from[name];
  }
}

void pass_fields(const Json& from, Json& to) {
  copy_fields(from, kPassed, to);
  copy_fields(from, kSamplingFields, to);
}

}  // namespace ebb
