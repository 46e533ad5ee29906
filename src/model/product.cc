#include "model/product.h"

#include <algorithm>

#include <ggml.h>

#include "base/check.h"
#include "device/backend.h"
#include "model/attention.h"

namespace ebb {
namespace {

// Of the current set, or null where plain C++ would be slower than ggml.
const ProductKernels* find_product_kernels() {
#if defined(__x86_64__)
  static const bool kHasVnni = __builtin_cpu_supports("avx512vnni") != 0;
  switch (current_kernel_set()) {
    case KernelSet::kAvx512: return kHasVnni ? &kAvx512VnniProductKernels : &kAvx2ProductKernels;
    case KernelSet::kAvx2: return &kAvx2ProductKernels;
    case KernelSet::kPortable: break;
  }
#endif
  return nullptr;
}

const ProductKernels& product_kernels() {
  const ProductKernels* const found = find_product_kernels();
  return found != nullptr ? *found : kPortableProductKernels;
}

RoundedRows rounded_rows(const ggml_tensor* tensor) {
  return {.data = static_cast<RoundedBlock*>(tensor->data),
          .n_rows = static_cast<std::size_t>(tensor->ne[1]),
          .n_blocks = static_cast<std::size_t>(tensor->ne[0]) / sizeof(RoundedBlock)};
}

// Blocks of all rows in equal parts: a single row has work for all threads, too.
void round_part(const ggml_tensor* from, const RoundedRows& to, std::int32_t part, std::int32_t n_parts) {
  const std::size_t n_blocks = to.n_rows * to.n_blocks;
  const auto first_of = [&](std::int32_t p) {
    return n_blocks * static_cast<std::size_t>(p) / static_cast<std::size_t>(n_parts);
  };
  const ProductKernels& kernels = product_kernels();
  for (std::size_t at = first_of(part); at < first_of(part + 1);) {
    const std::size_t row = at / to.n_blocks;
    const std::size_t block = at % to.n_blocks;
    const std::size_t n = std::min(to.n_blocks - block, first_of(part + 1) - at);
    const auto* const values =
        reinterpret_cast<const float*>(static_cast<const std::byte*>(from->data) + row * from->nb[1]);
    kernels.round_row(values + block * kBlockValues, n, to.data + at);
    at += n;
  }
}

void run_round(ggml_tensor* dst, int ith, int nth, void* team) {
  share_operation(*static_cast<Team*>(team), ith, nth, [dst](std::int32_t part, std::int32_t n_parts) {
    round_part(dst->src[0], rounded_rows(dst), part, n_parts);
  });
}

}  // namespace

std::optional<WeightKind> packed_kind(int ggml_type, std::int64_t n_in) {
  if (find_product_kernels() == nullptr || n_in % static_cast<std::int64_t>(kBlockValues) != 0) return std::nullopt;
  switch (ggml_type) {
    case GGML_TYPE_Q8_0: return WeightKind::kQ8_0;
    case GGML_TYPE_Q4_0: return WeightKind::kQ4_0;
    case GGML_TYPE_IQ4_NL: return WeightKind::kIq4Nl;
    case GGML_TYPE_Q4_K: return WeightKind::kQ4K;
    case GGML_TYPE_Q5_K: return WeightKind::kQ5K;
    case GGML_TYPE_Q6_K: return WeightKind::kQ6K;
    case GGML_TYPE_IQ4_XS: return WeightKind::kIq4Xs;
    case GGML_TYPE_F32: return WeightKind::kF32;
    case GGML_TYPE_F16: return WeightKind::kF16;
    case GGML_TYPE_BF16: return WeightKind::kBf16;
    default: return std::nullopt;
  }
}

ggml_tensor* ProductNodes::round(ggml_tensor* rows) {
  ggml_tensor*& rounded = rounded_[rows];
  if (rounded != nullptr) return rounded;
  const auto n_bytes =
      rows->ne[0] / static_cast<std::int64_t>(kBlockValues) * static_cast<std::int64_t>(sizeof(RoundedBlock));
  rounded =
      ggml_custom_4d(context_, GGML_TYPE_I8, n_bytes, rows->ne[1], 1, 1, &rows, 1, run_round, GGML_N_TASKS_MAX, &team_);
  return rounded;
}

void ProductNodes::run(ggml_tensor* dst, int ith, int nth, void* given) {
  Task& task = *static_cast<Task*>(given);
  const ggml_tensor* const rows = dst->src[0];
  auto* const out = static_cast<float*>(dst->data);
  share_operation(*task.team, ith, nth, [&](std::int32_t /*part*/, std::int32_t n_parts) {
    const auto n_threads = static_cast<std::size_t>(n_parts);
    if (!task.matrix->takes_floats()) {
      return task.matrix->multiply(product_kernels(), rounded_rows(rows), out, task.queue, n_threads);
    }
    const FloatRows floats = {.data = static_cast<const float*>(rows->data),
                              .n_rows = static_cast<std::size_t>(rows->ne[1]),
                              .n_blocks = static_cast<std::size_t>(rows->ne[0]) / kBlockValues};
    task.matrix->multiply(product_kernels(), floats, out, task.queue, n_threads);
  });
}

ggml_tensor* ProductNodes::multiply(ggml_tensor* matrix, ggml_tensor* rows) {
  const auto found = packed_.find(matrix);
  if (found == packed_.end()) return ggml_mul_mat(context_, matrix, rows);
  EBB_CHECK(rows->type == GGML_TYPE_F32 && ggml_is_contiguous(rows) && rows->ne[2] == 1, "rows of another form");
  ggml_tensor* given = found->second.takes_floats() ? rows : round(rows);
  Task& task = tasks_.emplace_back();
  task.matrix = &found->second;
  task.team = &team_;
  return ggml_custom_4d(context_, GGML_TYPE_F32, matrix->ne[1], rows->ne[1], 1, 1, &given, 1, run, GGML_N_TASKS_MAX,
                        &task);
}

}  // namespace ebb
