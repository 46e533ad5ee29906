#include "model/wide_copies.h"

#include <vector>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml.h"

namespace ebb {

struct WideCopies::Memory {
  ggml_context_ptr context;
  ggml_backend_buffer_ptr buffer;
};

namespace {

constexpr std::int64_t kManyRows = 8;
constexpr std::size_t kMostBytes = 32U << 20U;

// Others have instructions that multiply f16.
#if defined(__x86_64__)
constexpr bool kWidensAsItLoads = true;
#else
constexpr bool kWidensAsItLoads = false;
#endif

bool is_worth_it(const ggml_tensor* matrix) {
  return kWidensAsItLoads && (matrix->type == GGML_TYPE_F16 || matrix->type == GGML_TYPE_BF16) &&
         ggml_backend_buffer_is_host(matrix->buffer);
}

void widen(const ggml_tensor* from, ggml_tensor* to) {
  ggml_get_type_traits(from->type)->to_float(from->data, static_cast<float*>(to->data), ggml_nelements(from));
}

}  // namespace

WideCopies::WideCopies() = default;
WideCopies::~WideCopies() = default;
WideCopies::WideCopies(WideCopies&&) noexcept = default;
WideCopies& WideCopies::operator=(WideCopies&&) noexcept = default;

WideCopies::WideCopies(std::span<ggml_tensor* const> matrices) {
  std::size_t n_bytes = 0;
  for (const ggml_tensor* matrix : matrices) {
    if (is_worth_it(matrix)) n_bytes += static_cast<std::size_t>(ggml_nelements(matrix)) * sizeof(float);
  }
  if (n_bytes == 0 || n_bytes > kMostBytes) return;

  ggml_context_ptr context(ggml_init({matrices.size() * ggml_tensor_overhead(), nullptr, true}));
  for (ggml_tensor* matrix : matrices) {
    if (is_worth_it(matrix)) {
      copies_[matrix] = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, matrix->ne[0], matrix->ne[1]);
    }
  }
  ggml_backend_buffer_ptr buffer(
      ggml_backend_alloc_ctx_tensors_from_buft(context.get(), ggml_backend_cpu_buffer_type()));
  if (buffer == nullptr) {
    copies_.clear();
    return;
  }
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  for (const auto& [matrix, copy] : copies_) widen(matrix, copy);
  memory_.reset(new Memory{.context = std::move(context), .buffer = std::move(buffer)});
}

ggml_tensor* WideCopies::choose(ggml_tensor* matrix, std::int64_t n_rows) const {
  if (n_rows < kManyRows) return matrix;
  const auto copy = copies_.find(matrix);
  return copy == copies_.end() ? matrix : copy->second;
}

std::size_t WideCopies::bytes() const {
  return memory_ == nullptr ? 0 : ggml_backend_buffer_get_size(memory_->buffer.get());
}

}  // namespace ebb
