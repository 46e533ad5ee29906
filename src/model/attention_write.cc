// write_kv: puts the K and V rows of a step into their frames, and seals the blocks that it fills.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/to_size.h"
#include "model/attention.h"
#include "model/attention_forms.h"
#include "model/attention_work.h"
#include "model/row_convert.h"
#include "model/sealed_frame.h"

namespace ebb {
namespace {

// Keys lie by dimension, so a token's key is scattered; this many tokens are turned at a time.
constexpr std::int32_t kTurnTokens = kVectorKeys;
constexpr std::int32_t kMaxHeadDim = 1024;

// Rows of one type, converted.
struct Row {
  alignas(64) std::array<std::byte, kMaxHeadDim * sizeof(float)> elements;
  std::array<std::uint16_t, kMaxHeadDim / kScaleGroup> scales;
};

void convert_row(const AttentionKernels& kernels, RowType type, const float* x, std::int32_t n, Row& row) {
  if (type != RowType::kQ8_0) return write_elements(kernels, type, x, n, row.elements.data());
  std::array<float, kMaxHeadDim / kScaleGroup> scales;
  for (std::int32_t i = 0; i < n; i += kScaleGroup) {
    scales[to_size(i / kScaleGroup)] = quantise_group(x + i, reinterpret_cast<std::int8_t*>(row.elements.data()) + i);
  }
  kernels.to_f16(scales.data(), row.scales.data(), n / kScaleGroup);
}

// out[d][token] = rows[token][d] for elements of E.
template <class E>
void turn(const Row* rows, std::int32_t n_rows, std::int32_t n_dims, std::int32_t stride, std::byte* out) {
  for (std::int32_t d = 0; d < n_dims; ++d) {
    for (std::int32_t i = 0; i < n_rows; ++i) {
      std::memcpy(out + (to_size(d) * to_size(stride) + to_size(i)) * sizeof(E),
                  rows[i].elements.data() + to_size(d) * sizeof(E), sizeof(E));
    }
  }
}

// Tokens of one block of one KV head that this step writes.
struct Rows {
  const float* k;  // first token's
  const float* v;
  std::int32_t n_tokens;
  std::int32_t slot;
  std::byte* frame;
};

class Writer {
 public:
  // Rows of a block that is open, where it has that form.
  Writer(const AttentionShape& shape, const AttentionTensors& tensors)
      : layout_(shape.layout.open_layout()), tensors_(tensors), kernels_(current_kernels()) {}

  void write(const Rows& rows) {
    for (std::int32_t i = 0; i < rows.n_tokens; ++i) write_value(rows, i);
    for (std::int32_t i = 0; i < rows.n_tokens; i += kTurnTokens) {
      write_keys(rows, i, std::min(kTurnTokens, rows.n_tokens - i));
    }
  }

 private:
  void write_value(const Rows& rows, std::int32_t token) {
    const std::int32_t n_dims = layout_.head_dim_v;
    const std::size_t slot = to_size(rows.slot + token);
    Row& row = rows_[0];
    convert_row(kernels_, layout_.row_type, rows.v + to_size(token) * tensors_.v_row_stride, n_dims, row);
    const std::size_t n_bytes = to_size(n_dims) * layout_.element_bytes();
    std::memcpy(rows.frame + layout_.v_offset() + slot * n_bytes, row.elements.data(), n_bytes);
    if (layout_.row_type != RowType::kQ8_0) return;
    const std::size_t n_scale_bytes = to_size(n_dims / kScaleGroup) * sizeof(std::uint16_t);
    std::memcpy(rows.frame + layout_.v_scales_offset() + slot * n_scale_bytes, row.scales.data(), n_scale_bytes);
  }

  void write_keys(const Rows& rows, std::int32_t token, std::int32_t n_tokens) {
    const std::int32_t n_dims = layout_.head_dim_k;
    const std::int32_t stride = layout_.key_stride();
    for (std::int32_t i = 0; i < n_tokens; ++i) {
      convert_row(kernels_, layout_.row_type, rows.k + to_size(token + i) * tensors_.k_row_stride, n_dims,
                  rows_[to_size(i)]);
    }
    const std::size_t slot = to_size(rows.slot + token);
    std::byte* const out = rows.frame + layout_.k_offset() + slot * layout_.element_bytes();
    switch (layout_.element_bytes()) {
      case 1: turn<std::uint8_t>(rows_.data(), n_tokens, n_dims, stride, out); break;
      case 2: turn<std::uint16_t>(rows_.data(), n_tokens, n_dims, stride, out); break;
      default: turn<std::uint32_t>(rows_.data(), n_tokens, n_dims, stride, out); break;
    }
    if (layout_.row_type == RowType::kQ8_0) write_key_scales(rows, slot, n_tokens);
  }

  void write_key_scales(const Rows& rows, std::size_t slot, std::int32_t n_tokens) {
    std::byte* const out = rows.frame + layout_.k_scales_offset() + slot * sizeof(std::uint16_t);
    const std::size_t stride_bytes = to_size(layout_.key_stride()) * sizeof(std::uint16_t);
    for (std::size_t group = 0; group < to_size(layout_.head_dim_k / kScaleGroup); ++group) {
      for (std::size_t i = 0; i < to_size(n_tokens); ++i) {
        std::memcpy(out + group * stride_bytes + i * sizeof(std::uint16_t), &rows_[i].scales[group],
                    sizeof(std::uint16_t));
      }
    }
  }

  const FrameLayout layout_;
  const AttentionTensors& tensors_;
  const AttentionKernels& kernels_;
  std::array<Row, kTurnTokens> rows_;
};

}  // namespace

void write_kv(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer, const AttentionTensors& tensors,
              AttentionScratch& scratch, std::int32_t ith, std::int32_t n_threads) {
  EBB_CHECK(shape.layout.key_order == KeyOrder::kByDim, "these kernels write keys by dimension");
  if (ith == 0) AttentionWork::reset(scratch);
  Writer writer(shape, tensors);
  const bool seals = shape.layout.seals();
  const BlockForms forms(shape, step, scratch);
  const std::size_t frame_bytes = shape.layout.frame_bytes();
  std::int32_t piece = 0;
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    const SequenceRows& rows = step.sequences[s];
    const Span written{rows.first, rows.first + rows.n_rows};
    for (std::int32_t h = 0; h < shape.n_kv_heads; ++h) {
      const BlockTable table = step.table(s, layer, HeadIndex(h));
      std::int32_t n_tokens = 0;
      const auto first = std::partition_point(table.begin(), table.end(),
                                              [&](const TableEntry& e) { return e.span().end <= written.begin; });
      for (auto entry = first; entry != table.end() && entry->begin < written.end; ++entry) {
        const Span span = intersect(entry->span(), written);
        n_tokens += span.n_tokens();
        if (piece++ % n_threads != ith) continue;
        const std::size_t row = to_size(rows.row_begin + (span.begin - rows.first));
        std::byte* const frame = step.frames + entry->frame.index() * frame_bytes;
        std::byte* const rows_frame = seals ? forms.open_rows(s, HeadIndex(h), *entry) : frame;
        EBB_CHECK(rows_frame != nullptr, "the block at {} is written to and not open", entry->begin.value());
        writer.write({.k = tensors.k + row * tensors.k_row_stride + to_size(h) * tensors.k_head_stride,
                      .v = tensors.v + row * tensors.v_row_stride + to_size(h) * tensors.v_head_stride,
                      .n_tokens = span.n_tokens(),
                      .slot = span.begin - entry->begin,
                      .frame = rows_frame});
        if (seals && forms.is_filled(s, *entry)) seal_frame(shape.layout, current_kernels(), rows_frame, frame);
      }
      EBB_CHECK(n_tokens == rows.n_rows, "layer {}, head {}: table holds {} of the {} tokens of the step",
                layer.value(), h, n_tokens, rows.n_rows);
    }
  }
}

}  // namespace ebb
