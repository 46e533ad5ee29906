#include "model/attention_forms.h"

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

constexpr std::size_t kLineBytes = 64;

// The most blocks that can begin and end within the rows of the sequences before `sequence`.
std::int32_t count_blocks(const AttentionStep& step, std::size_t sequence, std::int32_t block_size) {
  std::int32_t n_blocks = 0;
  for (std::size_t s = 0; s < sequence; ++s) n_blocks += step.sequences[s].n_rows / block_size;
  return n_blocks;
}

}  // namespace

BlockForms::BlockForms(const AttentionShape& shape, const AttentionStep& step, AttentionScratch& scratch)
    : step_(step),
      block_size_(shape.layout.block_size),
      n_kv_heads_(shape.n_kv_heads),
      open_frame_bytes_(shape.layout.open_layout().frame_bytes()),
      step_rows_(scratch.step_rows_.data()),
      n_step_bytes_(scratch.step_rows_.size()) {
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(step_rows_) % kLineBytes;
  if (step_rows_ != nullptr && past_line != 0) step_rows_ += kLineBytes - past_line;
}

void BlockForms::reserve(AttentionScratch& scratch, const AttentionShape& shape, const AttentionStep& step) {
  if (!shape.layout.seals()) return;
  const std::int32_t n_blocks = count_blocks(step, step.sequences.size(), shape.layout.block_size);
  const std::size_t n_frames = to_size(n_blocks) * to_size(shape.n_kv_heads);
  const std::size_t n_bytes = n_frames * shape.layout.open_layout().frame_bytes() + kLineBytes;
  if (scratch.step_rows_.size() >= n_bytes) return;
  scratch.step_rows_ = {};  // nothing in it outlives a layer: do not copy
  scratch.step_rows_.resize(n_bytes);
}

std::byte* BlockForms::open_rows(std::size_t sequence, HeadIndex head, const TableEntry& entry) const {
  if (entry.open != kNoFrame) return step_.open_frames + entry.open.index() * open_frame_bytes_;
  const SequenceRows& rows = step_.sequences[sequence];
  if (entry.begin < rows.first || !is_filled(sequence, entry)) return nullptr;
  // Blocks begin at least a block apart, so that each has a number of its own.
  const std::int32_t block = count_blocks(step_, sequence, block_size_) + (entry.begin - rows.first) / block_size_;
  const std::size_t frame = to_size(block) * to_size(n_kv_heads_) + head.index();
  EBB_CHECK((frame + 1) * open_frame_bytes_ + kLineBytes <= n_step_bytes_,
            "{} bytes for the rows of the step: reserve() each step first", n_step_bytes_);
  return step_rows_ + frame * open_frame_bytes_;
}

bool BlockForms::is_filled(std::size_t sequence, const TableEntry& entry) const {
  const SequenceRows& rows = step_.sequences[sequence];
  const Span span = entry.span();
  return entry.n_tokens == block_size_ && span.end > rows.first && span.end <= rows.first + rows.n_rows;
}

}  // namespace ebb
