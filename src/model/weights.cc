#include "model/weights.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml.h"

#include "device/backend.h"
#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/hparams.h"
#include "model/tensor_plan.h"

namespace ebb {

// Buffers go before the contexts that describe their tensors.
struct Weights::Memory {
  std::vector<ggml_context_ptr> contexts;
  std::vector<ggml_backend_buffer_ptr> buffers;
};

namespace {

// Bytes between two looks at progress and cancellation.
constexpr std::size_t kChunkBytes = 4U << 20U;

// What becomes of one tensor of the file.
struct Placement {
  const TensorInfo* info = nullptr;
  ggml_backend_buffer_type_t memory = nullptr;  // null: it stays where it is mapped
  std::optional<WeightKind> packed = {};        // copied to panels of that kind; `memory` says nothing
  bool rows_to_f16 = false;                     // copied, but in a type whose rows the device can look up
  bool read_ahead = true;                       // false: few of its rows will ever be read
  std::vector<ggml_tensor**> places;
  ggml_tensor* tensor = nullptr;

  [[nodiscard]] ggml_type type() const { return rows_to_f16 ? GGML_TYPE_F16 : info->type; }
};

// The op in which a weight is used, to ask a device whether it can do that with memory of some kind.
ggml_tensor* sample_op(ggml_context* context, ggml_tensor* weight, TensorUse use) {
  constexpr std::int64_t kRows = 512;
  if (use == TensorUse::kLookup) {
    return ggml_get_rows(context, weight, ggml_new_tensor_1d(context, GGML_TYPE_I32, kRows));
  }
  ggml_tensor* rows = ggml_new_tensor_2d(context, GGML_TYPE_F32, weight->ne[0], kRows);
  return use == TensorUse::kMatrix ? ggml_mul_mat(context, weight, rows) : ggml_mul(context, rows, weight);
}

bool can_compute(ggml_backend_dev_t device, ggml_backend_buffer_type_t memory, const TensorInfo& info, TensorUse use) {
  const ggml_context_ptr context(ggml_init({8 * ggml_tensor_overhead(), nullptr, true}));
  ggml_tensor* weight = ggml_new_tensor_2d(context.get(), info.type, info.shape[0], info.shape[1]);
  const ggml_backend_buffer_ptr empty(ggml_backend_buft_alloc_buffer(memory, 0));
  weight->buffer = empty.get();
  return ggml_backend_dev_supports_op(device, sample_op(context.get(), weight, use));
}

// ggml 0.25.3 multiplies many rows in tiles straight from the file's layout on x86. Repacked over plain time, 2048 x 8192
// matrices, Zen 4 (one thread) and Sapphire Rapids (two): Q2_K 1.0 for one row, 2.7 for 512; it stays as it lies. MXFP4 has no tiles: 0.33
// repacked. (libllama repacks them all.)
bool is_slower_repacked(ggml_backend_buffer_type_t memory, ggml_type type) {
#if defined(__x86_64__)
  return std::string_view(ggml_backend_buft_name(memory)) == "CPU_REPACK" && type == GGML_TYPE_Q2_K;
#else
  (void)memory, (void)type;
  return false;
#endif
}

// Memory whose layouts make matrix products faster on this processor, best first; may be empty.
std::vector<ggml_backend_buffer_type_t> repacked_memory(ggml_backend_dev_t device) {
  std::vector<ggml_backend_buffer_type_t> result;
  void* found =
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts");
  if (found == nullptr) return result;
  const auto get_extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(found);
  for (ggml_backend_buffer_type_t* type = get_extra(device); type != nullptr && *type != nullptr; ++type) {
    result.push_back(*type);
  }
  return result;
}

// Steps in order: place, allocate, fill.
class Loader {
 public:
  Loader(const GgufFile& file, Backend& backend, const LoadOptions& options)
      : file_(file), backend_(backend), options_(options) {
    if (backend.is_cpu() && options.use_repacked) repacked_ = repacked_memory(backend.device());
  }

  // Decides where each tensor of the plan lies.
  Status place(const std::vector<PlannedTensor>& plan, Weights& weights);
  // Makes the tensors and their memory.
  Status allocate(std::vector<ggml_context_ptr>& contexts, std::vector<ggml_backend_buffer_ptr>& buffers,
                  PackedMatrices& packed);
  // Reads the file into memory and copies what is to be copied.
  Status fill();

  [[nodiscard]] WeightBytes bytes() const { return bytes_; }

 private:
  Result<Placement> choose(const TensorInfo& info, TensorUse use) const;
  void make_tensors(std::vector<ggml_context_ptr>& contexts);
  ggml_context* context_for(const Placement& placement, std::vector<ggml_context_ptr>& contexts);
  Status make_packed(PackedMatrices& packed);
  Result<ggml_backend_buffer_ptr> map_tensors();
  Result<ggml_backend_buffer_ptr> copy_memory(ggml_backend_buffer_type_t memory, ggml_context* context);
  static std::size_t work_bytes(const Placement& placement);
  // The rest of the tensors, shared with other threads; only the loading thread reports progress.
  Status fill_some(bool reports);
  Status read_ahead(const TensorInfo& info, bool reports);
  [[nodiscard]] static bool is_mapped(const Placement& placement) {
    return placement.memory == nullptr && !placement.packed;
  }
  Status copy_whole(const Placement& placement, bool reports);
  Status copy_pieces(const Placement& placement, bool reports);
  Status advance(std::size_t n_bytes, bool reports);

  const GgufFile& file_;
  Backend& backend_;
  const LoadOptions& options_;
  std::vector<ggml_backend_buffer_type_t> repacked_;
  std::vector<Placement> placements_;
  std::map<ggml_backend_buffer_type_t, ggml_context*> context_of_;  // one per kind of memory; null: mapped
  ggml_context* packed_context_ = nullptr;                          // of tensors that only stand for packed matrices
  std::map<const ggml_tensor*, PackedMatrix*> packed_;
  WeightBytes bytes_;

  std::size_t n_work_bytes_ = 0;
  std::atomic<std::size_t> n_done_bytes_{0};
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
};

Result<Placement> Loader::choose(const TensorInfo& info, TensorUse use) const {
  ggml_backend_dev_t device = backend_.device();
  ggml_backend_buffer_type_t plain = ggml_backend_dev_buffer_type(device);
  Placement placement{.info = &info, .memory = backend_.is_cpu() ? nullptr : plain};
  if (backend_.is_cpu() && options_.use_repacked && use == TensorUse::kMatrix) {
    placement.packed = packed_kind(info.type, info.shape[0]);
    if (placement.packed) return placement;
  }
  for (ggml_backend_buffer_type_t memory : repacked_) {
    if (use != TensorUse::kMatrix || is_slower_repacked(memory, info.type)) continue;
    if (can_compute(device, memory, info, use)) {
      placement.memory = memory;
      return placement;
    }
  }
  placement.read_ahead = use != TensorUse::kLookup || !backend_.is_cpu();
  if (can_compute(device, plain, info, use)) return placement;
  if (use == TensorUse::kLookup && !backend_.is_cpu()) {
    placement.rows_to_f16 = true;
    return placement;
  }
  return error(Code::kUnsupported, "{}: {} cannot compute with tensor '{}' of type {}; quantise the model again",
               file_.name(), ggml_backend_dev_name(device), info.name, ggml_type_name(info.type));
}

Status Loader::place(const std::vector<PlannedTensor>& plan, Weights& weights) {
  for (const PlannedTensor& planned : plan) {
    const TensorInfo* info = file_.find_tensor(planned.name);
    if (info == nullptr) continue;
    EBB_ASSIGN_OR_RETURN(Placement placement, choose(*info, planned.use));
    placement.places = planned.places;
    placements_.push_back(std::move(placement));
  }
  if (file_.find_tensor("output.weight") != nullptr) return {};

  // Tied: the embeddings are the output matrix too, as the same tensor where one layout serves both.
  Placement& embedding = placements_.front();
  EBB_ASSIGN_OR_RETURN(Placement output, choose(*embedding.info, TensorUse::kMatrix));
  if (output.memory == embedding.memory && !output.packed && !embedding.rows_to_f16) {
    embedding.places.push_back(&weights.output);
    embedding.read_ahead = true;
  } else {
    output.places = {&weights.output};
    placements_.push_back(std::move(output));
  }
  return {};
}

ggml_context* Loader::context_for(const Placement& placement, std::vector<ggml_context_ptr>& contexts) {
  ggml_context*& context = placement.packed ? packed_context_ : context_of_[placement.memory];
  if (context == nullptr) {
    contexts.emplace_back(ggml_init({placements_.size() * ggml_tensor_overhead(), nullptr, true}));
    context = contexts.back().get();
  }
  return context;
}

void Loader::make_tensors(std::vector<ggml_context_ptr>& contexts) {
  for (Placement& placement : placements_) {
    const TensorInfo& info = *placement.info;
    placement.tensor =
        ggml_new_tensor_2d(context_for(placement, contexts), placement.type(), info.shape[0], info.shape[1]);
    ggml_set_name(placement.tensor, info.name.c_str());
    for (ggml_tensor** place : placement.places) *place = placement.tensor;
  }
}

Result<ggml_backend_buffer_ptr> Loader::map_tensors() {
  const std::span<const std::byte> bytes = file_.mapping().bytes();
  std::size_t n_largest = 0;
  for (const TensorInfo& info : file_.tensors()) n_largest = std::max(n_largest, info.n_bytes);
  // ggml takes no const; nothing writes to weights.
  ggml_backend_buffer_ptr buffer(ggml_backend_dev_buffer_from_host_ptr(
      backend_.device(), const_cast<std::byte*>(bytes.data()), bytes.size(), n_largest));
  bool ok = buffer != nullptr;
  for (const Placement& placement : placements_) {
    if (!ok || !is_mapped(placement)) continue;
    auto* address = const_cast<std::byte*>(file_.bytes_of(*placement.info).data());
    ok = ggml_backend_tensor_alloc(buffer.get(), placement.tensor, address) == GGML_STATUS_SUCCESS;
    bytes_.mapped += placement.info->n_bytes;
  }
  if (!ok) {
    return error(Code::kUnsupported, "{}: {} cannot use mapped files; choose another backend", file_.name(),
                 ggml_backend_dev_name(backend_.device()));
  }
  return buffer;
}

Result<ggml_backend_buffer_ptr> Loader::copy_memory(ggml_backend_buffer_type_t memory, ggml_context* context) {
  ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(context, memory));
  if (buffer == nullptr) {
    return error(Code::kOutOfBudget, "{}: {} has no room for its weights ({} MB); use a smaller quantisation",
                 file_.name(), ggml_backend_buft_name(memory), file_.n_tensor_bytes() >> 20U);
  }
  bytes_.copied += ggml_backend_buffer_get_size(buffer.get());
  return buffer;
}

Status Loader::make_packed(PackedMatrices& packed) {
  for (const Placement& placement : placements_) {
    if (!placement.packed) continue;
    const std::span<const std::int64_t> shape = placement.info->shape;
    Result<PackedMatrix> matrix =
        PackedMatrix::create(*placement.packed, static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1]));
    if (!matrix.ok()) return error(matrix.status().code(), "{}: {}", file_.name(), matrix.status().message());
    bytes_.copied += matrix->bytes();
    packed_[placement.tensor] = &packed.emplace(placement.tensor, *std::move(matrix)).first->second;
  }
  return {};
}

Status Loader::allocate(std::vector<ggml_context_ptr>& contexts, std::vector<ggml_backend_buffer_ptr>& buffers,
                        PackedMatrices& packed) {
  make_tensors(contexts);
  EBB_RETURN_IF_ERROR(make_packed(packed));
  for (const auto& [memory, context] : context_of_) {
    EBB_ASSIGN_OR_RETURN(ggml_backend_buffer_ptr buffer,
                         memory == nullptr ? map_tensors() : copy_memory(memory, context));
    ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    buffers.push_back(std::move(buffer));
  }
  return {};
}

Status Loader::fill() {
  // A tensor is in memory twice while it is repacked: the largest first, when the rest is not there yet.
  std::stable_sort(placements_.begin(), placements_.end(),
                   [](const Placement& a, const Placement& b) { return a.info->n_bytes > b.info->n_bytes; });
  for (const Placement& placement : placements_) n_work_bytes_ += work_bytes(placement);
  // Repacking is bound by the processor. Elsewhere one thread keeps the bus busy.
  const std::int32_t n_helpers = backend_.is_cpu() && bytes_.copied > kChunkBytes ? backend_.n_threads() - 1 : 0;
  std::mutex mutex;
  Status first_error;
  const auto work = [&](bool reports) {
    const Status status = fill_some(reports);
    if (status.ok()) return;
    stop_ = true;
    const std::lock_guard lock(mutex);
    if (first_error.ok()) first_error = status;
  };
  {
    std::vector<std::jthread> helpers;
    for (std::int32_t i = 0; i < n_helpers; ++i) helpers.emplace_back(work, false);
    work(true);
  }
  return first_error;
}

Status Loader::fill_some(bool reports) {
  for (std::size_t i = next_++; i < placements_.size() && !stop_; i = next_++) {
    const Placement& placement = placements_[i];
    if (is_mapped(placement)) {
      if (placement.read_ahead) EBB_RETURN_IF_ERROR(read_ahead(*placement.info, reports));
    } else if (backend_.is_cpu()) {
      EBB_RETURN_IF_ERROR(copy_whole(placement, reports));
    } else {
      EBB_RETURN_IF_ERROR(copy_pieces(placement, reports));
    }
  }
  return reports ? advance(0, true) : Status();
}

std::size_t Loader::work_bytes(const Placement& placement) {
  if (is_mapped(placement) && !placement.read_ahead) return 0;
  return placement.info->n_bytes * (is_mapped(placement) ? 1 : 2);
}

Status Loader::read_ahead(const TensorInfo& info, bool reports) {
  for (std::size_t at = 0; at < info.n_bytes && !stop_; at += kChunkBytes) {
    const std::size_t n_bytes = std::min(kChunkBytes, info.n_bytes - at);
    EBB_RETURN_IF_ERROR(file_.mapping().populate(info.file_offset + at, n_bytes));
    EBB_RETURN_IF_ERROR(advance(n_bytes, reports));
  }
  return {};
}

// Other layouts mix rows, so a tensor goes there only in one piece.
Status Loader::copy_whole(const Placement& placement, bool reports) {
  const TensorInfo& info = *placement.info;
  EBB_RETURN_IF_ERROR(read_ahead(info, reports));
  if (stop_) return {};
  if (placement.packed) {
    packed_.at(placement.tensor)->pack(file_.bytes_of(info));
  } else {
    ggml_backend_tensor_set(placement.tensor, file_.bytes_of(info).data(), 0, info.n_bytes);
  }
  file_.mapping().drop(info.file_offset, info.n_bytes);
  return advance(info.n_bytes, reports);
}

Status Loader::copy_pieces(const Placement& placement, bool reports) {
  const TensorInfo& info = *placement.info;
  const std::size_t n_row_bytes = ggml_row_size(info.type, info.shape[0]);
  const std::size_t n_step = std::max<std::size_t>(1, kChunkBytes / n_row_bytes) * n_row_bytes;
  std::size_t to = 0;
  for (std::size_t at = 0; at < info.n_bytes && !stop_; at += n_step) {
    const std::size_t n_bytes = std::min(n_step, info.n_bytes - at);
    EBB_RETURN_IF_ERROR(file_.mapping().populate(info.file_offset + at, n_bytes));
    std::span<const std::byte> piece = file_.bytes_of(info).subspan(at, n_bytes);
    std::vector<std::byte> expanded;
    if (placement.rows_to_f16) {
      expanded = expand_to_f16(info.type, piece);
      piece = expanded;
    }
    ggml_backend_tensor_set(placement.tensor, piece.data(), to, piece.size());
    to += piece.size();
    file_.mapping().drop(info.file_offset + at, n_bytes);
    EBB_RETURN_IF_ERROR(advance(2 * n_bytes, reports));
  }
  return {};
}

Status Loader::advance(std::size_t n_bytes, bool reports) {
  const std::size_t n_done = n_done_bytes_ += n_bytes;
  if (!reports || options_.progress == nullptr) return {};
  const float share = n_work_bytes_ == 0 ? 1.0F : static_cast<float>(n_done) / static_cast<float>(n_work_bytes_);
  if (options_.progress(std::min(share, 1.0F))) return {};
  return error(Code::kCancelled, "{}: loading was cancelled", file_.name());
}

}  // namespace

std::vector<std::byte> expand_to_f16(ggml_type type, std::span<const std::byte> rows) {
  const auto n_values = static_cast<std::int64_t>(rows.size() / ggml_type_size(type)) * ggml_blck_size(type);
  std::vector<float> values(static_cast<std::size_t>(n_values));
  ggml_get_type_traits(type)->to_float(rows.data(), values.data(), n_values);
  std::vector<std::byte> result(values.size() * sizeof(ggml_fp16_t));
  ggml_fp32_to_fp16_row(values.data(), reinterpret_cast<ggml_fp16_t*>(result.data()), n_values);
  return result;
}

Weights::Weights() : memory_(std::make_unique<Memory>()) {}
Weights::~Weights() = default;

Result<std::unique_ptr<Weights>> Weights::load(const GgufFile& file, const Hparams& hparams,
                                               const Architecture& architecture, Backend& backend,
                                               const LoadOptions& options) {
  std::unique_ptr<Weights> weights(new Weights());
  const std::vector<PlannedTensor> plan = plan_tensors(hparams, architecture, *weights);
  EBB_RETURN_IF_ERROR(check_tensors(file, plan, architecture));
  Loader loader(file, backend, options);
  EBB_RETURN_IF_ERROR(loader.place(plan, *weights));
  EBB_RETURN_IF_ERROR(loader.allocate(weights->memory_->contexts, weights->memory_->buffers, weights->packed_));
  EBB_RETURN_IF_ERROR(loader.fill());
  weights->bytes_ = loader.bytes();
  return weights;
}

}  // namespace ebb
