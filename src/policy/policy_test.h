// Evidence made up for tests of policies.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "policy/choose.h"

namespace ebb::policy_test {

// One of those in the registry.
inline std::unique_ptr<Policy> policy(std::string_view spec) { return make_policy(spec).value(); }

// What each scope may have of n_frames.
inline std::vector<std::int32_t> share(const Policy& policy, const Evidence& evidence, std::int32_t n_frames) {
  return share_frames(policy, evidence, score_scopes(policy, evidence), n_frames);
}

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

// Every column that any policy may ask for, of vectors of 3, by what `next` gives.
template <class Next>
void fill_columns(ScopeEvidence& scope, const Next& next) {
  const std::size_t n = scope.rows.size();
  const auto fill = [&](auto& column, std::size_t n_values) {
    column.clear();
    for (std::size_t i = 0; i < n_values; ++i) {
      column.push_back(static_cast<typename std::remove_cvref_t<decltype(column)>::value_type>(next()));
    }
  };
  for (auto* column :
       {&scope.total, &scope.n_queries, &scope.window_mean, &scope.window_max, &scope.last, &scope.reread,
        &scope.key_norm, &scope.output_length, &scope.expected, &scope.expected_value, &scope.value_length}) {
    fill(*column, n);
  }
  scope.is_read.assign(n, true);
  scope.n_key_dims = scope.keys.n_dims = scope.values.n_dims = 3;
  fill(scope.key_direction, 3 * n);
  for (ChannelColumns* columns : {&scope.keys, &scope.values}) {
    for (auto* column : {&columns->least, &columns->greatest, &columns->mean}) fill(*column, 3 * n);
  }
}

}  // namespace ebb::policy_test
