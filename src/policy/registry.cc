#include <array>
#include <string>

#include "policy/policy.h"

namespace ebb {
namespace {

constexpr std::array<PolicyEntry, 5> kPolicies = {{
    {"streaming", "oldest first after the first tokens", make_streaming_policy},
    {"scored", "least recently looked at by attention first", make_scored_policy},
    {"evoke", "least recent, least related to what is talked about; users' words weigh more",
     [] { return make_evoke_policy(); }},
    {"recency", "oldest first, the first tokens too: a sliding window, as a control", make_recency_policy},
    {"none", "nothing leaves; a full budget ends the generation", make_none_policy},
}};

}  // namespace

std::span<const PolicyEntry> policies() { return kPolicies; }

Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
  std::string names;
  for (const PolicyEntry& entry : kPolicies) {
    if (entry.name == name) return entry.make();
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return error(Code::kNotFound, "no eviction policy is called '{}'; there are {}", name, names);
}

}  // namespace ebb
