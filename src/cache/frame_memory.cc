#include "cache/frame_memory.h"

#include <cstring>

#include <ggml-backend.h>
#include <ggml.h>

#include "cache/row_types.h"

namespace ebb {

struct FrameMemory::DeviceRows {
  ggml_context* context = nullptr;
  ggml_backend_buffer_t buffer = nullptr;
  ggml_tensor* k = nullptr;
  ggml_tensor* v = nullptr;

  ~DeviceRows() {
    if (buffer != nullptr) ggml_backend_buffer_free(buffer);
    if (context != nullptr) ggml_free(context);
  }
};

namespace {

// Frames are scattered, of some KB each.
Result<PageMemory> reserve(std::size_t n_bytes, std::string_view what) {
  PageMemory memory(n_bytes);
  if (memory.is_there()) return memory;
  return error(Code::kOutOfBudget, "{} MB for {} could not be reserved; use a smaller budget", n_bytes >> 20, what);
}

}  // namespace

FrameMemory::FrameMemory(const FrameLayout& layout, std::int32_t n_frames, std::int32_t n_open_frames)
    : layout_(layout), n_frames_(n_frames), n_open_frames_(n_open_frames) {}

FrameMemory::~FrameMemory() = default;

Result<std::unique_ptr<FrameMemory>> FrameMemory::open(Backend& backend, const FrameLayout& layout,
                                                       std::int32_t n_frames, std::int32_t n_open_frames) {
  EBB_RETURN_IF_ERROR(layout.validate());
  EBB_CHECK(n_open_frames >= 0 && (n_open_frames == 0 || layout.seals()), "{} open frames of {} rows", n_open_frames,
            row_type_name(layout.row_type));
  if (n_frames < 1) return error(Code::kInvalidArgument, "a frame pool of {} frames; it needs at least 1", n_frames);
  if (layout.key_order == KeyOrder::kByDim && !backend.is_cpu()) {
    return error(Code::kInvalidArgument, "frames by dimension are read by CPU kernels only; use frames by row");
  }
  std::unique_ptr<FrameMemory> memory(new FrameMemory(layout, n_frames, n_open_frames));
  EBB_RETURN_IF_ERROR(layout.key_order == KeyOrder::kByDim ? memory->reserve_host() : memory->reserve_device(backend));
  return memory;
}

Status FrameMemory::reserve_host() {
  EBB_ASSIGN_OR_RETURN(host_, reserve(reserved_bytes(), "the KV budget"));
  if (n_open_frames_ == 0) return {};
  EBB_ASSIGN_OR_RETURN(open_host_, reserve(open_reserved_bytes(), "open blocks"));
  return {};
}

Status FrameMemory::reserve_device(Backend& backend) {
  auto rows = std::make_unique<DeviceRows>();
  rows->context = ggml_init({.mem_size = 2 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true});
  const std::int64_t n_rows = static_cast<std::int64_t>(n_frames_) * layout_.block_size;
  const ggml_type type = to_ggml_type(layout_.row_type);
  rows->k = ggml_new_tensor_2d(rows->context, type, layout_.head_dim_k, n_rows);
  rows->v = ggml_new_tensor_2d(rows->context, type, layout_.head_dim_v, n_rows);
  rows->buffer = ggml_backend_alloc_ctx_tensors(rows->context, backend.handle());
  if (rows->buffer == nullptr) {
    return error(Code::kOutOfBudget, "the device refused {} MB for the KV budget; use a smaller budget",
                 reserved_bytes() >> 20);
  }
  // Composed attention multiplies slots that hold no token by zero, which needs finite numbers. Host pages start as zeros.
  ggml_backend_buffer_clear(rows->buffer, 0);
  device_rows_ = std::move(rows);
  return {};
}

ggml_tensor* FrameMemory::k_rows() const { return device_rows_ ? device_rows_->k : nullptr; }
ggml_tensor* FrameMemory::v_rows() const { return device_rows_ ? device_rows_->v : nullptr; }

void FrameMemory::prepare(FrameIndex frame) {
  EBB_CHECK(frame.value() >= 0 && frame.value() < n_frames_, "frame {} of {}", frame.value(), n_frames_);
  if (host_bytes() != nullptr) return;
  for (ggml_tensor* rows : {device_rows_->k, device_rows_->v}) {
    const std::size_t bytes = rows->nb[1] * static_cast<std::size_t>(layout_.block_size);
    ggml_backend_tensor_memset(rows, 0, frame.index() * bytes, bytes);
  }
}

void FrameMemory::read(FrameIndex frame, std::span<std::byte> out) const {
  EBB_CHECK(frame.value() >= 0 && frame.value() < n_frames_, "frame {} of {}", frame.value(), n_frames_);
  EBB_CHECK(out.size() == frame_bytes(), "{} bytes for a frame of {}", out.size(), frame_bytes());
  if (host_bytes() != nullptr) {
    std::memcpy(out.data(), host_bytes() + frame.index() * frame_bytes(), frame_bytes());
    return;
  }
  const auto n_slots = static_cast<std::size_t>(layout_.block_size);
  const std::size_t k_bytes = device_rows_->k->nb[1] * n_slots;
  const std::size_t v_bytes = device_rows_->v->nb[1] * n_slots;
  ggml_backend_tensor_get(device_rows_->k, out.data(), frame.index() * k_bytes, k_bytes);
  ggml_backend_tensor_get(device_rows_->v, out.data() + layout_.v_offset(), frame.index() * v_bytes, v_bytes);
  // Alignment gaps are part of the frame: they read as zero, so that equal contents are equal bytes.
  std::memset(out.data() + k_bytes, 0, layout_.v_offset() - k_bytes);
  std::memset(out.data() + layout_.v_offset() + v_bytes, 0, frame_bytes() - layout_.v_offset() - v_bytes);
}

void FrameMemory::write(FrameIndex frame, std::span<const std::byte> bytes) {
  EBB_CHECK(frame.value() >= 0 && frame.value() < n_frames_, "frame {} of {}", frame.value(), n_frames_);
  EBB_CHECK(bytes.size() == frame_bytes(), "{} bytes for a frame of {}", bytes.size(), frame_bytes());
  if (host_bytes() != nullptr) {
    std::memcpy(host_bytes() + frame.index() * frame_bytes(), bytes.data(), frame_bytes());
    return;
  }
  const auto n_slots = static_cast<std::size_t>(layout_.block_size);
  const std::size_t k_bytes = device_rows_->k->nb[1] * n_slots;
  const std::size_t v_bytes = device_rows_->v->nb[1] * n_slots;
  ggml_backend_tensor_set(device_rows_->k, bytes.data(), frame.index() * k_bytes, k_bytes);
  ggml_backend_tensor_set(device_rows_->v, bytes.data() + layout_.v_offset(), frame.index() * v_bytes, v_bytes);
}

std::byte* FrameMemory::open_bytes(FrameIndex frame, std::size_t n_bytes) const {
  EBB_CHECK(frame.value() >= 0 && frame.value() < n_open_frames_, "open frame {} of {}", frame.value(), n_open_frames_);
  EBB_CHECK(n_bytes == open_frame_bytes(), "{} bytes for an open frame of {}", n_bytes, open_frame_bytes());
  return open_host_bytes() + frame.index() * n_bytes;
}

void FrameMemory::read_open(FrameIndex frame, std::span<std::byte> out) const {
  std::memcpy(out.data(), open_bytes(frame, out.size()), out.size());
}

void FrameMemory::write_open(FrameIndex frame, std::span<const std::byte> bytes) {
  std::memcpy(open_bytes(frame, bytes.size()), bytes.data(), bytes.size());
}

}  // namespace ebb
