// What policies that look at what frames hold cost: the digests of one block of 64 tokens, in f16, of 4 layers of 8 KV heads of 64
// dimensions with 4 query heads each, as a quarter of a model of 1B parameters has them; and, once for a model, the Gram
// matrices behind |v W_O| of the same layers. One thread.
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "device/backend.h"
#include "gguf/toy_header.h"
#include "model/frame_digest.h"
#include "model/model.h"
#include "model/output_lengths.h"
#include "model/random_model.h"

namespace ebb {
namespace {

constexpr FrameLayout kLayout = {.head_dim_k = 64, .head_dim_v = 64};
constexpr std::size_t kFrames = 4 * 8;

struct Toy {
  Toy() {
    const Status written = write_random_model({.n_layers = 4,
                                               .n_embd = 2048,
                                               .n_heads = 32,
                                               .n_kv_heads = 8,
                                               .head_dim = 64,
                                               .n_ff = 256,
                                               .weight_type = GGML_TYPE_Q8_0},
                                              file.path());
    if (written.ok()) model = Model::load(file.path(), *backend, {}).value();
  }

  ToyFile file{""};
  std::unique_ptr<Backend> backend = Backend::open("cpu", 1).value();
  std::unique_ptr<Model> model;
};

void digest_block(benchmark::State& state, const DigestAsk& ask) {
  std::mt19937 random(1);
  std::vector<std::byte> frame(kLayout.frame_bytes());
  for (std::byte& b : frame) b = static_cast<std::byte>(random() % 64);
  for (auto _ : state) {
    for (std::size_t head = 0; head < kFrames; ++head) {
      DigestAsk of_head = ask;
      of_head.head = head;
      benchmark::DoNotOptimize(digest_frame(kLayout, frame, kLayout.block_size, of_head));
    }
  }
}

void lengths_of_block(benchmark::State& state) {
  const Toy toy;
  const auto lengths = OutputLengths::make(*toy.model, 1).value();
  digest_block(state, {.lengths = lengths.get()});
}

void make_lengths(benchmark::State& state) {
  const Toy toy;
  for (auto _ : state) benchmark::DoNotOptimize(OutputLengths::make(*toy.model, 1).value()->bytes());
}

BENCHMARK_CAPTURE(digest_block, directions, DigestAsk{.directions = true})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(digest_block, value_means, DigestAsk{.value_means = true})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(digest_block, ranges, DigestAsk{.ranges = true})->Unit(benchmark::kMicrosecond);
BENCHMARK(lengths_of_block)->Unit(benchmark::kMicrosecond);
BENCHMARK(make_lengths)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ebb
