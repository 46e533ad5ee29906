// The bytes of a turn's moves: frames filled from records, and turned to other anchors on the way.
//
// A block is read and written in the form that it has (cache/frame_layout.h): open, as f16, or sealed.
#include <algorithm>

#include "session/turn.h"

namespace ebb {

// Frames of one block lie one after the other, [layer][KV head].
std::vector<FrameIndex> Turn::frames_of(BlockIndex block) const {
  const Residency& residency = session_.residency_;
  const bool open = session_.is_open(block);
  std::vector<FrameIndex> frames;
  for (std::int32_t layer = 0; layer < residency.shape().n_layers; ++layer) {
    for (std::int32_t head = 0; head < residency.shape().n_kv_heads; ++head) {
      frames.push_back(open ? residency.open_frame(block, LayerIndex(layer), HeadIndex(head))
                            : residency.frame(block, LayerIndex(layer), HeadIndex(head)));
    }
  }
  return frames;
}

Status Turn::copy_in(const EncodedRecord& record, BlockIndex block) {
  FrameMemory& memory = session_.parts_.memory;
  const bool open = session_.is_open(block);
  const std::vector<FrameIndex> frames = frames_of(block);
  if (std::byte* const bytes = open ? memory.open_host_bytes() : memory.host_bytes(); bytes != nullptr) {
    // Past the processor's cache: a turn recalls more than fits there.
    const std::size_t frame_bytes = open ? memory.open_frame_bytes() : memory.frame_bytes();
    std::vector<std::byte*> into;
    for (const FrameIndex frame : frames) into.push_back(bytes + frame.index() * frame_bytes);
    return record.copy_frames(into);
  }
  return record.copy_frames([&](std::int32_t i, std::span<const std::byte> bytes) {
    memory.write(frames[static_cast<std::size_t>(i)], bytes);
  });
}

Status Turn::copy_moved(const EncodedRecord& record, BlockIndex block, std::int32_t n_anchors) {
  std::vector<std::byte> bytes(session_.block_bytes(block));
  auto into = bytes.begin();
  EBB_RETURN_IF_ERROR(record.copy_frames(
      [&](std::int32_t, std::span<const std::byte> frame) { into = std::ranges::copy(frame, into).out; }));
  move_bytes(block, bytes, n_anchors);
  write_frames(block, bytes);
  return {};
}

void Turn::move_bytes(BlockIndex block, std::span<std::byte> bytes, std::int32_t n_anchors) const {
  const BlockMover& mover = *session_.parts_.mover;
  const std::int32_t n_tokens = session_.residency_.span(block).n_tokens();
  if (session_.is_open(block)) {
    mover.move_open(bytes, n_tokens, n_anchors);
  } else {
    mover.move(bytes, n_tokens, n_anchors);
  }
}

void Turn::prepare_frames(BlockIndex block) {
  const Residency::Shape& shape = session_.residency_.shape();
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      session_.parts_.memory.prepare(session_.residency_.frame(block, LayerIndex(layer), HeadIndex(head)));
    }
  }
}

void Turn::write_frames(BlockIndex block, std::span<const std::byte> bytes) {
  FrameMemory& memory = session_.parts_.memory;
  const bool open = session_.is_open(block);
  const std::vector<FrameIndex> frames = frames_of(block);
  const std::size_t n = bytes.size() / frames.size();
  for (const FrameIndex frame : frames) {
    if (open) {
      memory.write_open(frame, bytes.first(n));
    } else {
      memory.write(frame, bytes.first(n));
    }
    bytes = bytes.subspan(n);
  }
}

}  // namespace ebb
