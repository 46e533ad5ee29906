// Evidence made up for tests of policies.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "policy/policy.h"

namespace ebb::policy_test {

// One of those in the registry.
inline std::unique_ptr<Policy> policy(std::string_view spec) { return make_policy(spec).value(); }

// n blocks, all hot in n_scopes scopes.
inline Evidence blocks(std::int32_t n, std::int32_t n_scopes = 1, std::int32_t grain = 64) {
  Evidence evidence{.n_scopes = n_scopes, .grain = grain, .end = Position(n * grain)};
  for (std::int32_t i = 0; i < n; ++i) {
    evidence.blocks.push_back({.block = BlockIndex(i), .span = {Position(i * grain), Position(i * grain + grain)}});
  }
  for (std::int32_t s = 0; s < n_scopes; ++s) {
    evidence.scopes.push_back({.index = s});
    for (std::int32_t i = 0; i < n; ++i) evidence.scopes.back().rows.push_back({.block = i});
  }
  return evidence;
}

}  // namespace ebb::policy_test
