// Our attention beside ggml's flash attention: the same shapes, the same threads, turn by turn in one process.
//
// Each iteration runs one of ours and then one of ggml's; medians of both are reported, because the machine may be busy
// with other work. Times exclude writing K and V. Counters:
//   ebb_us, ggml_us       median time of one layer           ratio        ggml_us / ebb_us
//   ebb_best, ggml_best   shortest time of one layer, us     best_ratio   theirs / ours
//   GFLOPs                of our best: 4 * head_dim per query head and key it sees
//   GBs                   of our best: bytes of K and V that the layer's tables hold, read once
//
// "noting" is ours alone, turn by turn: nothing asked, then the mass of blocks for the last rows, then that of slices too, each
// with its sums over rows. nothing_us, blocks_us, slices_us: median times of one layer.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ggml-cpu.h"
#include "ggml.h"
#include <benchmark/benchmark.h>

#include "base/clock.h"
#include "model/attention.h"
#include "model/step_mass.h"

namespace ebb {
namespace {

// Threads that wait in a loop, as ggml's do, so that waking up is not what we measure.
class Crew {
 public:
  explicit Crew(std::int32_t n_threads) : n_threads_(n_threads) {
    for (std::int32_t i = 1; i < n_threads; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~Crew() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void run(const std::function<void(std::int32_t)>& work) {
    work_ = work;
    n_done_ = 0;
    turn_.fetch_add(1);
    work(0);
    while (n_done_.load() != n_threads_ - 1) {}
  }

 private:
  void serve(std::int32_t ith) {
    for (std::int64_t seen = 0; !stop_;) {
      if (turn_.load() == seen) continue;
      ++seen;
      work_(ith);
      n_done_.fetch_add(1);
    }
  }
  std::int32_t n_threads_;
  std::function<void(std::int32_t)> work_;
  std::atomic<std::int64_t> turn_{0};
  std::atomic<std::int32_t> n_done_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

struct Sizes {
  std::int32_t n_heads, n_kv_heads, head_dim, n_queries, n_keys;
  RowType row_type;
  std::int32_t n_threads;
};

std::vector<float> random_floats(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> out(n);
  for (float& x : out) x = uniform(random);
  return out;
}

// One layer of one sequence, all of its K and V in scattered frames.
class Ours {
 public:
  explicit Ours(const Sizes& sizes) : sizes_(sizes) {
    shape_.layout = {.row_type = sizes.row_type, .head_dim_k = sizes.head_dim, .head_dim_v = sizes.head_dim};
    shape_.n_heads = sizes.n_heads;
    shape_.n_kv_heads = sizes.n_kv_heads;
    shape_.scale = 0.125F;
    const std::int32_t block_size = shape_.layout.block_size;
    const std::int32_t n_blocks = (sizes.n_keys + block_size - 1) / block_size;
    std::vector<std::int32_t> frames(static_cast<std::size_t>(n_blocks * sizes.n_kv_heads));
    std::iota(frames.begin(), frames.end(), 0);
    std::shuffle(frames.begin(), frames.end(), std::mt19937(7));
    for (std::int32_t frame : frames) {
      const std::int32_t begin = static_cast<std::int32_t>(entries_.size()) % n_blocks * block_size;
      entries_.push_back({FrameIndex(frame), Position(begin), std::min(block_size, sizes.n_keys - begin)});
    }
    memory_.resize(frames.size() * shape_.layout.frame_bytes() + 64);
    step_.frames = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64);
    step_.n_layers = 1;
    step_.n_kv_heads = sizes.n_kv_heads;
    for (std::int32_t h = 0; h < sizes.n_kv_heads; ++h) {
      step_.tables.push_back(
          BlockTable(entries_).subspan(static_cast<std::size_t>(h * n_blocks), static_cast<std::size_t>(n_blocks)));
    }
    write();
    const std::int32_t first = sizes.n_keys - sizes.n_queries;
    step_.sequences = {{0, sizes.n_queries, Position(first)}};
    scratch_.reserve(shape_, step_, sizes.n_threads);
    q_ = random_floats(static_cast<std::size_t>(sizes.n_queries * sizes.n_heads * sizes.head_dim), 1);
    out_.resize(q_.size());
    tensors_.q = q_.data();
    tensors_.out = out_.data();
    tensors_.q_head_stride = tensors_.out_head_stride = static_cast<std::size_t>(sizes.head_dim);
    tensors_.q_row_stride = tensors_.out_row_stride = static_cast<std::size_t>(sizes.head_dim * sizes.n_heads);
  }

  // From now on the mass of blocks is asked for by the last rows, all in the window, and of slices where there are any.
  void note(std::int32_t n_rows, std::int32_t n_slices) {
    step_.mass_stride = static_cast<std::int32_t>(step_.tables.front().size());
    step_.sequences.front().n_mass_rows = step_.sequences.front().n_window_rows = n_rows;
    step_.sequences.front().n_slices = n_slices;
    mass_.begin(step_);
    mass_.reserve_rows(step_);
    tensors_.mass = mass_.rows();
    tensors_.slices = mass_.slices(step_);
    scratch_.reserve(shape_, step_, sizes_.n_threads);
  }

  double run(Crew& crew) {
    // One row's write resets the counter; writing the same value again changes nothing.
    AttentionStep last = step_;
    last.sequences = {{0, 1, Position(sizes_.n_keys - 1)}};
    last.mass_stride = 0;
    AttentionTensors kv = kv_tensors();
    const auto row = static_cast<std::size_t>(sizes_.n_keys - 1);
    kv.k += row * kv.k_row_stride;
    kv.v += row * kv.v_row_stride;
    write_kv(shape_, last, LayerIndex(0), kv, scratch_, 0, 1);
    const Stopwatch watch;
    crew.run(
        [this](std::int32_t ith) { attend(shape_, step_, LayerIndex(0), tensors_, scratch_, ith, sizes_.n_threads); });
    if (tensors_.mass != nullptr) {
      crew.run([this](std::int32_t ith) { mass_.add_rows(step_, LayerIndex(0), ith, sizes_.n_threads); });
    }
    return watch.elapsed_ms() * 1000.0;
  }

  [[nodiscard]] double kv_bytes() const {
    return static_cast<double>(sizes_.n_keys) * sizes_.n_kv_heads * shape_.layout.token_bytes();
  }
  [[nodiscard]] const std::vector<float>& k() const { return k_; }
  [[nodiscard]] const std::vector<float>& v() const { return v_; }
  [[nodiscard]] const std::vector<float>& q() const { return q_; }
  [[nodiscard]] const std::vector<float>& out() const { return out_; }

 private:
  [[nodiscard]] AttentionTensors kv_tensors() const {
    AttentionTensors tensors;
    tensors.k = k_.data();
    tensors.v = v_.data();
    tensors.k_head_stride = tensors.v_head_stride = static_cast<std::size_t>(sizes_.head_dim);
    tensors.k_row_stride = tensors.v_row_stride = static_cast<std::size_t>(sizes_.head_dim * sizes_.n_kv_heads);
    return tensors;
  }
  void write() {
    const auto n = static_cast<std::size_t>(sizes_.n_keys * sizes_.n_kv_heads * sizes_.head_dim);
    k_ = random_floats(n, 2);
    v_ = random_floats(n, 3);
    step_.sequences = {{0, sizes_.n_keys, Position(0)}};
    write_kv(shape_, step_, LayerIndex(0), kv_tensors(), scratch_, 0, 1);
  }

  Sizes sizes_;
  AttentionShape shape_;
  AttentionStep step_;
  AttentionTensors tensors_;
  AttentionScratch scratch_;
  StepMass mass_;
  std::vector<TableEntry> entries_;
  std::vector<std::byte> memory_;
  std::vector<float> q_, k_, v_, out_;
};

// Attention as above with ggml_flash_attn_ext over contiguous f16 K and V.
class Theirs {
 public:
  Theirs(const Sizes& sizes, const Ours& ours) : sizes_(sizes) {
    const ggml_init_params params = {.mem_size = std::size_t{512} << 20, .mem_buffer = nullptr, .no_alloc = false};
    context_.reset(ggml_init(params));
    ggml_context* const context = context_.get();
    ggml_tensor* q = ggml_new_tensor_3d(context, GGML_TYPE_F32, sizes.head_dim, sizes.n_heads, sizes.n_queries);
    std::memcpy(q->data, ours.q().data(), ggml_nbytes(q));
    ggml_tensor* mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, sizes.n_keys, sizes.n_queries);
    const auto hidden = ggml_fp32_to_fp16(-INFINITY);
    for (std::int32_t i = 0; i < sizes.n_queries; ++i) {
      auto* const row = static_cast<ggml_fp16_t*>(mask->data) + static_cast<std::ptrdiff_t>(i) * sizes.n_keys;
      const std::int32_t n_seen = sizes.n_keys - sizes.n_queries + i + 1;
      std::fill_n(row, n_seen, ggml_fp16_t{0});
      std::fill_n(row + n_seen, sizes.n_keys - n_seen, hidden);
    }
    ggml_tensor* attention = ggml_flash_attn_ext(context, ggml_permute(context, q, 0, 2, 1, 3), keep(ours.k()),
                                                 keep(ours.v()), mask, 0.125F, 0, 0);
    graph_ = ggml_new_graph(context);
    ggml_build_forward_expand(graph_, attention);
    out_ = attention;
    ggml_threadpool_params pool = ggml_threadpool_params_default(sizes.n_threads);
    pool.poll = 100;
    pool_.reset(ggml_threadpool_new(&pool));
    plan_ = ggml_graph_plan(graph_, sizes.n_threads, pool_.get());
    work_.resize(plan_.work_size);
    plan_.work_data = work_.data();
  }

  double run() {
    const Stopwatch watch;
    ggml_graph_compute(graph_, &plan_);
    return watch.elapsed_ms() * 1000.0;
  }

  // Both must have computed the same thing.
  [[nodiscard]] double difference(const std::vector<float>& out) const {
    double most = 0.0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(out[i]) - static_cast<const float*>(out_->data)[i]));
    }
    return most;
  }

 private:
  struct Free {
    void operator()(ggml_context* context) const { ggml_free(context); }
    void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
  };

  // As a cache that llama.cpp keeps: [token][kv head][dim], seen as [kv head][token][dim].
  ggml_tensor* keep(const std::vector<float>& rows) {
    ggml_tensor* kept =
        ggml_new_tensor_3d(context_.get(), GGML_TYPE_F16, sizes_.head_dim, sizes_.n_kv_heads, sizes_.n_keys);
    ggml_fp32_to_fp16_row(rows.data(), static_cast<ggml_fp16_t*>(kept->data), ggml_nelements(kept));
    return ggml_permute(context_.get(), kept, 0, 2, 1, 3);
  }

  Sizes sizes_;
  std::unique_ptr<ggml_context, Free> context_;
  std::unique_ptr<ggml_threadpool, Free> pool_;
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* out_ = nullptr;
  ggml_cplan plan_{};
  std::vector<std::uint8_t> work_;
};

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

double best(const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); }

// Arguments: query heads, KV heads, head_dim, queries, keys, row type of ours (ggml keeps f16), threads.
void attention(benchmark::State& state) {
  const auto arg = [&state](std::size_t i) { return static_cast<std::int32_t>(state.range(i)); };
  const Sizes sizes{arg(0), arg(1), arg(2), arg(3), arg(4), static_cast<RowType>(arg(5)), arg(6)};
  Ours ours(sizes);
  Theirs theirs(sizes, ours);
  Crew crew(sizes.n_threads);
  std::vector<double> ours_us, theirs_us;
  for (auto _ : state) {
    ours_us.push_back(ours.run(crew));
    theirs_us.push_back(theirs.run());
    state.SetIterationTime(ours_us.back() * 1e-6);
  }
  if (theirs.difference(ours.out()) > 0.02) state.SkipWithError("ebb and ggml disagree");
  const double n_seen = sizes.n_keys - (sizes.n_queries - 1) / 2.0;
  const double flops = 4.0 * sizes.head_dim * sizes.n_heads * sizes.n_queries * n_seen;
  state.counters["ebb_us"] = median(ours_us);
  state.counters["ggml_us"] = median(theirs_us);
  state.counters["ratio"] = median(theirs_us) / median(ours_us);
  state.counters["ebb_best"] = best(ours_us);
  state.counters["ggml_best"] = best(theirs_us);
  state.counters["best_ratio"] = best(theirs_us) / best(ours_us);
  state.counters["GFLOPs"] = flops / best(ours_us) * 1e-3;
  state.counters["GBs"] = ours.kv_bytes() / best(ours_us) * 1e-3;
  state.SetLabel(std::string(kernel_set_name(current_kernel_set())) + " " + std::string(row_type_name(sizes.row_type)));
}

// Arguments: query heads, KV heads, head_dim, queries, keys, rows that ask, tokens of a slice, threads.
void noting(benchmark::State& state) {
  const auto arg = [&state](std::size_t i) { return static_cast<std::int32_t>(state.range(i)); };
  const Sizes sizes{arg(0), arg(1), arg(2), arg(3), arg(4), RowType::kF16, arg(7)};
  Ours nothing(sizes);
  Ours blocks(sizes);
  blocks.note(arg(5), 0);
  Ours slices(sizes);
  slices.note(arg(5), FrameLayout().block_size / arg(6));
  Crew crew(sizes.n_threads);
  std::vector<double> nothing_us, blocks_us, slices_us;
  for (auto _ : state) {
    nothing_us.push_back(nothing.run(crew));
    blocks_us.push_back(blocks.run(crew));
    slices_us.push_back(slices.run(crew));
    state.SetIterationTime(slices_us.back() * 1e-6);
  }
  if (nothing.out() != slices.out()) state.SkipWithError("asking for slices changed what attention gives");
  state.counters["nothing_us"] = median(nothing_us);
  state.counters["blocks_us"] = median(blocks_us);
  state.counters["slices_us"] = median(slices_us);
  state.SetLabel(kernel_set_name(current_kernel_set()));
}

BENCHMARK(noting)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(21)
    ->ArgNames({"heads", "kv", "dim", "queries", "keys", "asking", "slice", "threads"})
    ->Args({14, 2, 64, 1, 8192, 1, 1, 1})
    ->Args({14, 2, 64, 1, 8192, 1, 8, 1})
    ->Args({32, 8, 64, 1, 8192, 1, 1, 1})
    ->Args({14, 2, 64, 512, 8192, 32, 1, 1})
    ->Args({14, 2, 64, 512, 8192, 512, 1, 1})
    ->Args({14, 2, 64, 512, 8192, 512, 8, 1})
    ->Args({32, 8, 64, 512, 2048, 512, 1, 1});

constexpr auto kF32 = static_cast<std::int64_t>(RowType::kF32);
constexpr auto kF16 = static_cast<std::int64_t>(RowType::kF16);
constexpr auto kBF16 = static_cast<std::int64_t>(RowType::kBF16);
constexpr auto kQ8 = static_cast<std::int64_t>(RowType::kQ8_0);

BENCHMARK(attention)
    ->Name("decode")
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(51)
    ->ArgNames({"heads", "kv", "dim", "queries", "keys", "type", "threads"})
    ->Args({64, 8, 64, 1, 7680, kF16, 2})
    ->Args({64, 8, 64, 1, 7680, kF16, 1})
    ->Args({32, 8, 64, 1, 7680, kF16, 2})
    ->Args({32, 8, 128, 1, 7680, kF16, 2})
    ->Args({16, 16, 64, 1, 7680, kF16, 2})
    ->Args({14, 2, 64, 1, 7680, kF16, 2})
    ->Args({64, 8, 64, 1, 512, kF16, 2})
    ->Args({64, 8, 64, 1, 7680, kF32, 2})
    ->Args({64, 8, 64, 1, 7680, kBF16, 2})
    ->Args({64, 8, 64, 1, 7680, kQ8, 2});

BENCHMARK(attention)
    ->Name("prefill")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5)
    ->ArgNames({"heads", "kv", "dim", "queries", "keys", "type", "threads"})
    ->Args({32, 8, 64, 512, 8192, kF16, 2})
    ->Args({32, 8, 64, 512, 8192, kF16, 1})
    ->Args({64, 8, 64, 512, 8192, kF16, 2})
    ->Args({32, 8, 128, 512, 8192, kF16, 2})
    ->Args({32, 8, 64, 512, 512, kF16, 2})
    ->Args({16, 16, 64, 512, 2048, kF16, 2})
    ->Args({32, 8, 64, 512, 8192, kQ8, 2});

}  // namespace
}  // namespace ebb
