// Moving a block to another anchor, beside copying its bytes: what a moved recall costs on top of an unmoved one.
//
// One block of 16 layers of 8 KV heads of 128 dimensions, 64 tokens, one thread; bytes are those of K and V as saved.
#include <cstring>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "model/key_rotation.h"

namespace ebb {
namespace {

constexpr std::size_t kFrames = 16 * 8;

FrameLayout layout_of(const benchmark::State& state) {
  return {.row_type = static_cast<RowType>(state.range(0)),
          .key_order = static_cast<KeyOrder>(state.range(1)),
          .head_dim_k = 128,
          .head_dim_v = 128};
}

// Small numbers in every row type, scales included.
std::vector<std::byte> make_block(const FrameLayout& layout) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(kFrames * layout.frame_bytes());
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() % 64);
  return bytes;
}

void finish(benchmark::State& state, std::size_t n_bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(n_bytes));
  state.SetLabel(std::string(row_type_name(static_cast<RowType>(state.range(0)))) +
                 (state.range(1) == 0 ? " by dim" : " by row"));
}

void move_block(benchmark::State& state) {
  const FrameLayout layout = layout_of(state);
  Hparams hparams;
  hparams.n_rot = layout.head_dim_k;
  hparams.layer_is_sliding = {false};
  const RopeFrequencies frequencies = rope_frequencies(hparams, RopeKind::kNeoX, LayerIndex(0), {});
  std::vector<std::byte> block = make_block(layout);
  std::int32_t n_anchors = 1000;
  for (auto _ : state) {
    n_anchors = -n_anchors;  // there and back, so that values stay small
    const KeyRotation rotation = make_key_rotation(frequencies, n_anchors);
    for (std::size_t f = 0; f < kFrames; ++f) {
      rotate_keys(layout, rotation, layout.block_size,
                  std::span(block).subspan(f * layout.frame_bytes(), layout.frame_bytes()));
    }
    benchmark::ClobberMemory();
  }
  finish(state, block.size());
}

void copy_block(benchmark::State& state) {
  const std::vector<std::byte> from = make_block(layout_of(state));
  std::vector<std::byte> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  finish(state, from.size());
}

BENCHMARK(move_block)->ArgsProduct({{0, 1, 2, 3}, {0, 1}})->Unit(benchmark::kMicrosecond);
BENCHMARK(copy_block)->ArgsProduct({{1}, {0}})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ebb
