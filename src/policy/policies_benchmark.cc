// What it takes a policy to score one head of a layer (areas: a layer of one head), of 64 dimensions: blocks of 64 tokens, as many as the argument says. A
// choice scores every head once.
#include <random>

#include <benchmark/benchmark.h>

#include "policy/policy_test.h"

namespace ebb {
namespace {

constexpr std::size_t kDims = 64;

Evidence make_evidence(std::int32_t n) {
  std::mt19937 random(1);
  const auto unit = [&] { return static_cast<double>(random() % 1001) / 1000.0; };
  Evidence evidence = policy_test::blocks(n);
  ScopeEvidence& scope = evidence.scopes.front();
  scope.n_key_dims = scope.keys.n_dims = scope.values.n_dims = kDims;
  for (std::int32_t i = 0; i < n; ++i) {
    for (auto* column : {&scope.total, &scope.n_queries, &scope.window_mean, &scope.window_max, &scope.last,
                         &scope.key_norm, &scope.output_length}) {
      column->push_back(unit());
    }
    scope.is_read.push_back(true);
    for (std::size_t d = 0; d < kDims; ++d) {
      for (auto* column : {&scope.key_direction, &scope.keys.least, &scope.keys.greatest, &scope.keys.mean,
                           &scope.values.least, &scope.values.greatest, &scope.values.mean}) {
        column->push_back(static_cast<float>(unit()));
      }
    }
  }
  return evidence;
}

void score(benchmark::State& state, std::string_view spec) {
  const Evidence evidence = make_evidence(static_cast<std::int32_t>(state.range(0)));
  const auto policy = policy_test::policy(spec);
  for (auto _ : state) benchmark::DoNotOptimize(policy->score(evidence, evidence.scopes.front()));
}

BENCHMARK_CAPTURE(score, snapkv, "snapkv")->Arg(32)->Arg(128)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(score, keydiff, "keydiff")->Arg(32)->Arg(128)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(score, defensivekv, "defensivekv")->Arg(32)->Arg(128)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(score, dropkv, "dropkv")->Arg(32)->Arg(128)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(score, lagkv, "lagkv")->Arg(32)->Arg(128)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(score, areas, "areas:norm=2,mass=0,start=64,recent=64,slice=0")
    ->Arg(32)
    ->Arg(128)
    ->Arg(256)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(score, rkv, "rkv")->Arg(32)->Arg(128)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ebb
