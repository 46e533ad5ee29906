// FrameMemory: the bytes of all frames of one layout, on the host or on a device.
//
// It does not know which frames are in use (cache/frame_pool.h) nor what they hold. Memory is reserved at once and, on
// the host, touched only when a frame is first written, so that a large budget costs what is used of it.
//
//   KeyOrder::kByDim   one host range; frame f at host_bytes() + f * layout.frame_bytes()
//   KeyOrder::kByRow   two tensors [head_dim][n_frames * block_size]; frame f is rows f*block_size .. of both
//
// A layout that seals its blocks has *open frames* beside them, numbered by themselves: f16 rows of blocks that are
// written to. Few are needed: those of one block for each session that lives.
//
// Thread rule: different frames may be read and written at once; one frame by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "base/page_memory.h"
#include "base/status.h"
#include "cache/frame_layout.h"
#include "device/backend.h"

struct ggml_tensor;

namespace ebb {

class FrameMemory {
 public:
  // kByDim needs the CPU backend. kOutOfBudget says how many bytes were refused. Open frames are only for a layout that
  // seals.
  static Result<std::unique_ptr<FrameMemory>> open(Backend& backend, const FrameLayout& layout, std::int32_t n_frames,
                                                   std::int32_t n_open_frames = 0);

  ~FrameMemory();
  FrameMemory(const FrameMemory&) = delete;
  FrameMemory& operator=(const FrameMemory&) = delete;

  [[nodiscard]] const FrameLayout& layout() const { return layout_; }
  [[nodiscard]] std::int32_t n_frames() const { return n_frames_; }
  // Size of one frame as read() and write() move it.
  [[nodiscard]] std::size_t frame_bytes() const { return layout_.frame_bytes(); }
  [[nodiscard]] std::size_t open_frame_bytes() const { return layout_.open_layout().frame_bytes(); }
  // The bytes reserved for the frames, and for the open frames beside them.
  [[nodiscard]] std::size_t reserved_bytes() const { return frame_bytes() * static_cast<std::size_t>(n_frames_); }
  [[nodiscard]] std::size_t open_reserved_bytes() const {
    return open_frame_bytes() * static_cast<std::size_t>(n_open_frames_);
  }

  // Null unless kByDim.
  [[nodiscard]] std::byte* host_bytes() const { return host_.data(); }
  // Null where there are no open frames.
  [[nodiscard]] std::byte* open_host_bytes() const { return open_host_.data(); }
  // Null unless kByRow.
  [[nodiscard]] ggml_tensor* k_rows() const;
  [[nodiscard]] ggml_tensor* v_rows() const;

  // Before a frame serves a new block: where attention multiplies slots without a token by zero instead of passing over
  // them (kByRow), what an earlier block left there must not be able to reach a result.
  void prepare(FrameIndex frame);
  // Copies a whole frame out or in; the spans hold frame_bytes() bytes.
  void read(FrameIndex frame, std::span<std::byte> out) const;
  void write(FrameIndex frame, std::span<const std::byte> bytes);
  // Copies a whole open frame out or in; the spans hold open_frame_bytes() bytes.
  void read_open(FrameIndex frame, std::span<std::byte> out) const;
  void write_open(FrameIndex frame, std::span<const std::byte> bytes);

 private:
  struct DeviceRows;

  FrameMemory(const FrameLayout& layout, std::int32_t n_frames, std::int32_t n_open_frames);
  Status reserve_host();
  Status reserve_device(Backend& backend);
  [[nodiscard]] std::byte* open_bytes(FrameIndex frame, std::size_t n_bytes) const;

  FrameLayout layout_;
  std::int32_t n_frames_;
  std::int32_t n_open_frames_;
  PageMemory host_;
  PageMemory open_host_;
  std::unique_ptr<DeviceRows> device_rows_;
};

}  // namespace ebb
