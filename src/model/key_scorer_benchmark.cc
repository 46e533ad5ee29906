// What a look by digests costs: blocks scored for the last queries of a prompt.
#include <random>

#include <benchmark/benchmark.h>

#include "base/to_size.h"
#include "model/key_bounds.h"
#include "model/key_scorer.h"

namespace ebb {
namespace {

constexpr std::int32_t kDims = 64;

QuerySetup setup_of(std::int32_t n_layers, std::int32_t n_heads, std::int32_t n_kv_heads, std::int32_t n_threads) {
  RopeFrequencies frequencies{.kind = RopeKind::kNeoX, .per_anchor = std::vector<double>(kDims / 2, 0.01)};
  QuerySetup setup{.shape = {.n_layers = n_layers, .n_heads = n_heads, .n_dims = kDims},
                   .n_kv_heads = n_kv_heads,
                   .scale = 0.125,
                   .n_threads = n_threads,
                   .layers = {}};
  for (std::int32_t l = 0; l < n_layers; ++l) setup.layers.push_back({.frequencies = frequencies});
  return setup;
}

TailQueries random_queries(const KeyScorer& scorer, const QuerySetup& setup, std::int32_t n_rows) {
  TailQueries queries = scorer.make_queries(n_rows);
  std::mt19937 random(1);
  std::normal_distribution<float> draw;
  std::vector<float> q(to_size(n_rows * setup.shape.n_heads * kDims));
  for (std::int32_t layer = 0; layer < setup.shape.n_layers; ++layer) {
    for (float& x : q) x = draw(random);
    queries.add(LayerIndex(layer),
                {.q = q.data(),
                 .row_stride = to_size(setup.shape.n_heads * kDims),
                 .head_stride = to_size(kDims),
                 .first = Position(0),
                 .n_rows = n_rows},
                0, 1);
  }
  queries.end_step(Position(0), Position(0), n_rows);
  return queries;
}

// Arguments: layers, query heads, KV heads, blocks, queries, threads, keys of a block. Digests of many blocks are the same bytes at other places.
void score(benchmark::State& state) {
  const auto arg = [&](std::size_t i) { return static_cast<std::int32_t>(state.range(i)); };
  const QuerySetup setup = setup_of(arg(0), arg(1), arg(2), arg(5));
  const KeyScorer scorer(setup);
  const KeyDigestLayout layout =
      KeyDigestLayout::of({.row_type = RowType::kF16, .block_size = arg(6), .head_dim_k = kDims, .head_dim_v = kDims});
  const std::size_t n_bytes = to_size(arg(0) * arg(2)) * layout.bytes();
  std::vector<std::byte> digests(n_bytes * to_size(arg(3)), std::byte{0x35});
  std::vector<KeyScorer::Block> blocks;
  for (std::int32_t b = 0; b < arg(3); ++b) {
    blocks.push_back({.digests = std::span(digests).subspan(to_size(b) * n_bytes, n_bytes),
                      .digest_id = to_size(b) + 1,
                      .is_cold = b % 16 != 0});
  }
  const TailQueries queries = random_queries(scorer, setup, arg(4));
  // The first look makes what later ones find.
  KeyBounds kept;
  benchmark::DoNotOptimize(scorer.score(queries, queries.rows(), blocks, layout, KeyEstimate::kSketch, &kept));
  for (auto _ : state) {
    benchmark::DoNotOptimize(scorer.score(queries, queries.rows(), blocks, layout, KeyEstimate::kSketch, &kept));
  }
  state.counters["digest_bytes"] = static_cast<double>(digests.size());
}
BENCHMARK(score)
    ->ArgNames({"layers", "heads", "kv", "blocks", "queries", "threads", "keys"})
    ->Args({4, 4, 2, 64, 64, 1, 64})
    ->Args({4, 4, 2, 64, 8, 1, 64})
    ->Args({4, 4, 2, 512, 8, 1, 64})
    ->Args({4, 4, 2, 512, 8, 1, 16})
    ->Args({4, 4, 2, 512, 64, 1, 16})
    ->Args({4, 4, 2, 512, 64, 1, 64})
    ->Args({4, 4, 2, 10000, 64, 1, 64})
    ->Args({4, 4, 2, 10000, 64, 2, 64})
    ->Args({4, 4, 2, 10000, 16, 2, 64})
    ->Args({8, 4, 2, 64, 4, 1, 64})
    ->Args({8, 4, 2, 512, 64, 2, 64})
    ->Args({8, 4, 2, 10000, 64, 1, 64})
    ->Args({8, 4, 2, 10000, 64, 2, 64})
    ->Args({8, 4, 2, 10000, 16, 2, 64})
    ->Args({16, 32, 8, 64, 64, 2, 64})
    ->Args({16, 32, 8, 1000, 64, 2, 64})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace
}  // namespace ebb
