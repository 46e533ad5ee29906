// Forks: how benches on policies give every arm the same context without computing it again.
//
// A context is computed once with everything hot, and kept as an image: tokens, records in the store, and notes of what
// attention gave each block in each head. A fork's blocks come back from the store without a forward pass, and it shrinks by its
// policy; so all arms choose from the same evidence and have the same frames.
//
// Thread rule: the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "policy/policy.h"

namespace ebb {

struct NamedPolicy {
  // With its parameters, as flags have it.
  std::string name;
  std::shared_ptr<const Policy> policy;
  // As caches do that shift: when all is full, half behind the first block leaves at once, and what stays closes up.
  bool shifts = false;
};
// llama.cpp's context shift, as an arm beside the policies.
[[nodiscard]] NamedPolicy context_shift();
// None: every one that evicts. kInvalidArgument for `none`, and for windows that contexts are not noted with.
Result<std::vector<NamedPolicy>> policies_of_forks(std::vector<std::string> names);

// What a context is computed under: lets nothing leave, and notes what any policy may want.
[[nodiscard]] std::shared_ptr<const Policy> watching_policy();

// Computed behind an image, or from nothing, with everything hot and saved.
Result<SessionImage> compute_image(Engine& engine, const SessionImage* image, std::span<const Token> tokens);
// What leaves last in forks, whatever a policy says: first tokens where it wants them, and last ones, a quarter of the budget at
// most.
struct ForkFloors {
  std::int32_t sink_tokens = 4;
  std::int32_t recent_tokens = 64;
};
// A session that goes on from the image with so many tokens hot, those that the policy keeps; 0: everything is hot. kOutOfBudget
// where the store has lost some.
Result<std::unique_ptr<Session>> fork_session(Engine& engine, const SessionImage& image, const NamedPolicy& policy,
                                              std::int32_t budget_tokens, const ForkFloors& floors = {});

// What is likeliest behind the tokens.
struct GreedyReply {
  std::int32_t max_tokens = 0;
  std::vector<std::string> stop_strings;
};
Result<std::string> reply_greedily(Engine& engine, Session& session, std::vector<Token> tokens, GreedyReply reply);

}  // namespace ebb
