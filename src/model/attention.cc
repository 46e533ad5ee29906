#include "model/attention.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "model/attention_forms.h"
#include "model/attention_kernel.h"
#include "model/attention_plan.h"
#include "model/attention_work.h"

namespace ebb {
namespace {

bool has_kernel_set(KernelSet set) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (set == KernelSet::kAvx512) return avx2 && avx512;
  if (set == KernelSet::kAvx2) return avx2;
#endif
  return set == KernelSet::kPortable;
}

std::atomic<KernelSet>& chosen_kernel_set() {
  static std::atomic<KernelSet> chosen = best_kernel_set();
  return chosen;
}

}  // namespace

const char* kernel_set_name(KernelSet set) {
  switch (set) {
    case KernelSet::kPortable: return "portable";
    case KernelSet::kAvx2: return "avx2";
    case KernelSet::kAvx512: return "avx512";
  }
  return "unknown";
}

KernelSet best_kernel_set() {
  for (const KernelSet set : {KernelSet::kAvx512, KernelSet::kAvx2}) {
    if (has_kernel_set(set)) return set;
  }
  return KernelSet::kPortable;
}

KernelSet current_kernel_set() { return chosen_kernel_set().load(std::memory_order_relaxed); }

bool try_set_kernel_set(KernelSet set) {
  if (!has_kernel_set(set)) return false;
  chosen_kernel_set().store(set, std::memory_order_relaxed);
  return true;
}

const AttentionKernels& current_kernels() {
#if defined(__x86_64__)
  switch (current_kernel_set()) {
    case KernelSet::kAvx512: return kAvx512Kernels;
    case KernelSet::kAvx2: return kAvx2Kernels;
    case KernelSet::kPortable: break;
  }
#endif
  return kPortableKernels;
}

void AttentionScratch::reserve(const AttentionShape& shape, const AttentionStep& step, std::int32_t n_threads) {
  cohorts_.find(step, bound_cohort(shape, step, n_threads));
  std::size_t n_bytes = 0;
  for (std::int32_t layer = 0; layer < step.n_layers; ++layer) {
    n_bytes = std::max(n_bytes, make_plan(shape, step, cohorts_, LayerIndex(layer), n_threads).bytes(n_threads));
  }
  AttentionWork::reserve(*this, n_bytes, n_threads);
  BlockForms::reserve(*this, shape, step);
}

std::size_t AttentionScratch::bytes() const {
  return bytes_.size() + step_rows_.size() + arrivals_.size() * sizeof(arrivals_[0]);
}

bool AttentionScratch::take_short() {
  if (!is_short_.exchange(false, std::memory_order_relaxed)) return false;
  // Threads that broke off have not counted what they took.
  next_item_.store(0, std::memory_order_relaxed);
  std::ranges::fill(arrivals_, 0);
  return true;
}

void attend(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer, const AttentionTensors& tensors,
            AttentionScratch& scratch, std::int32_t ith, std::int32_t n_threads) {
  EBB_CHECK(shape.layout.key_order == KeyOrder::kByDim, "these kernels read keys by dimension");
  EBB_CHECK(shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0, "{} query heads over {} KV heads",
            shape.n_heads, shape.n_kv_heads);
  EBB_CHECK(step.n_kv_heads == shape.n_kv_heads, "tables of {} KV heads for a layer of {}", step.n_kv_heads,
            shape.n_kv_heads);
  EBB_CHECK(tensors.mass == nullptr || step.mass_stride > 0, "mass is asked for without a stride");
  EBB_CHECK(tensors.slices == nullptr || tensors.mass != nullptr, "mass of slices is asked for without that of blocks");
  const AttentionCall call{.shape = shape,
                           .step = step,
                           .layer = layer,
                           .tensors = tensors,
                           .scratch = scratch,
                           .ith = ith,
                           .n_threads = n_threads};
  AttentionWork(call).run();
}

}  // namespace ebb
