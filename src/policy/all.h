// What makes each policy, from the values of its parameters (policy/registry.cc has both). Only policies include it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "policy/policy.h"

namespace ebb {

[[nodiscard]] std::unique_ptr<Policy> make_none_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_recency_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_streaming_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_random_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_scored_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_evoke_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_tova_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_h2o_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_snapkv_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_pyramidkv_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_adakv_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_kvzip_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_areas_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_knorm_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_keydiff_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_defensivekv_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_layer_defensivekv_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_dropkv_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_expected_attention_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_lagkv_policy(const ParameterValues& values);
[[nodiscard]] std::unique_ptr<Policy> make_rkv_policy(const ParameterValues& values);

}  // namespace ebb
