#include "model/composed_attention.h"

#include <algorithm>
#include <memory>

#include <ggml-backend.h>
#include <ggml.h>

#include "base/check.h"
#include "cache/row_types.h"

namespace ebb {
namespace {

// The most tensors of one layer: those of write(), and of attend() per bundle. Too few: ggml stops while building.
constexpr std::int32_t kTensorsOfWrite = 8;
constexpr std::int32_t kTensorsOfBundle = 48;

// f16 patterns: what a mask adds to a score.
constexpr std::uint16_t kVisible = 0x0000;
constexpr std::uint16_t kHidden = 0xFC00;  // -inf

using Context = std::unique_ptr<ggml_context, decltype(&ggml_free)>;

bool supports_rows(const Backend& backend, ggml_context* context, ggml_type type, std::int64_t head_dim) {
  ggml_tensor* rows = ggml_new_tensor_2d(context, type, head_dim, kColumnGroup);
  ggml_tensor* values = ggml_new_tensor_2d(context, GGML_TYPE_F32, head_dim, 1);
  ggml_tensor* set = ggml_set_rows(context, rows, values, ggml_new_tensor_1d(context, GGML_TYPE_I64, 1));
  ggml_tensor* get = ggml_get_rows(context, rows, ggml_new_tensor_1d(context, GGML_TYPE_I32, 1));
  return ggml_backend_dev_supports_op(backend.device(), set) && ggml_backend_dev_supports_op(backend.device(), get);
}

bool supports_flash(const Backend& backend, ggml_context* context, const AttentionShape& shape, ggml_type type) {
  const FrameLayout& layout = shape.layout;
  ggml_tensor* q = ggml_new_tensor_4d(context, GGML_TYPE_F32, layout.head_dim_k, 1, shape.n_heads / shape.n_kv_heads,
                                      shape.n_kv_heads);
  ggml_tensor* k = ggml_new_tensor_4d(context, type, layout.head_dim_k, kColumnGroup, 1, shape.n_kv_heads);
  ggml_tensor* v = ggml_new_tensor_4d(context, type, layout.head_dim_v, kColumnGroup, 1, shape.n_kv_heads);
  ggml_tensor* mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, kColumnGroup, 1);
  ggml_tensor* flash = ggml_flash_attn_ext(context, q, k, v, mask, shape.scale, 0.0F, 0.0F);
  ggml_prec_set_acc(flash, GGML_PREC_F32);
  return ggml_backend_dev_supports_op(backend.device(), flash);
}

}  // namespace

Result<ComposedOps> choose_composed_ops(const Backend& backend, std::span<const AttentionShape> layers) {
  // ggml's CPU kernel sums f16 values in f16; elsewhere f16 is the fast path, and loses nothing of f16 rows.
  std::vector<RowType> kv_types = {RowType::kF16, RowType::kF32};
  if (backend.is_cpu() || layers.front().layout.row_type == RowType::kF32) std::swap(kv_types[0], kv_types[1]);
  for (const AttentionShape& shape : layers) {
    const FrameLayout& layout = shape.layout;
    Context context(ggml_init({.mem_size = 32 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}),
                    ggml_free);
    for (const std::int32_t head_dim : {layout.head_dim_k, layout.head_dim_v}) {
      if (!supports_rows(backend, context.get(), to_ggml_type(layout.row_type), head_dim)) {
        return error(Code::kUnsupported, "device '{}' cannot write and read {} rows of {}; use f16 rows",
                     ggml_backend_dev_name(backend.device()), row_type_name(layout.row_type), head_dim);
      }
    }
    std::erase_if(kv_types,
                  [&](RowType type) { return !supports_flash(backend, context.get(), shape, to_ggml_type(type)); });
  }
  if (kv_types.empty()) return ComposedOps{.flash = false, .kv_type = RowType::kF32};
  return ComposedOps{.flash = true, .kv_type = kv_types.front()};
}

ComposedAttention::ComposedAttention(ggml_context* context, FrameMemory& memory, Setup setup)
    : context_(context), memory_(memory), setup_(std::move(setup)), written_(setup_.layers.size()) {
  EBB_CHECK(memory.k_rows() != nullptr, "composed attention needs frames by row");
  for (const AttentionShape& shape : setup_.layers) {
    EBB_CHECK(shape.layout == memory.layout() && shape.n_kv_heads == setup_.layers.front().n_kv_heads,
              "layers of different frames");
  }
  const ComposedPlan::Bundle& last = setup_.plan.bundles.back();
  n_rows_ = last.first_row + last.n_sequences * last.n_rows;
  make_inputs();
}

std::int32_t ComposedAttention::max_tensors_per_layer() const {
  return kTensorsOfWrite + kTensorsOfBundle * static_cast<std::int32_t>(setup_.plan.bundles.size());
}

std::int64_t ComposedAttention::n_entries(LayerIndex layer, std::size_t bundle) const {
  return setup_.plan.mask(layer).n_entries[bundle];
}

std::int64_t ComposedAttention::n_streams(std::size_t bundle) const {
  return static_cast<std::int64_t>(setup_.plan.bundles[bundle].n_sequences) * setup_.layers.front().n_kv_heads;
}

// One tensor for the rows and one for the frames of all layers, because each transfer to a device has a price.
void ComposedAttention::make_inputs() {
  const std::size_t n_layers = setup_.layers.size();
  write_row_values_.resize(n_layers * static_cast<std::size_t>(n_rows_ * setup_.layers.front().n_kv_heads));
  write_rows_ = ggml_new_tensor_1d(context_, GGML_TYPE_I64, static_cast<std::int64_t>(write_row_values_.size()));
  ggml_set_input(write_rows_);

  std::size_t n_frames = 0;
  for (std::size_t l = 0; l < n_layers; ++l) {
    frames_at_.emplace_back();
    for (std::size_t bundle = 0; bundle < setup_.plan.bundles.size(); ++bundle) {
      frames_at_.back().push_back(n_frames);
      n_frames +=
          static_cast<std::size_t>(n_entries(LayerIndex(static_cast<std::int32_t>(l)), bundle) * n_streams(bundle));
    }
  }
  frame_values_.resize(n_frames);
  frames_ = ggml_new_tensor_1d(context_, GGML_TYPE_I32, static_cast<std::int64_t>(n_frames));
  ggml_set_input(frames_);
  masks_.resize(setup_.plan.masks.size());
  for (auto& bundles : masks_) bundles.resize(setup_.plan.bundles.size());
}

// --- building --------------------------------------------------------------------------------------------------------

ComposedAttention::Written ComposedAttention::write(LayerIndex layer, ggml_tensor* k, ggml_tensor* v) {
  const std::int64_t n_rows = static_cast<std::int64_t>(n_rows_) * shape(layer).n_kv_heads;
  ggml_tensor* rows = ggml_view_1d(context_, write_rows_, n_rows,
                                   layer.index() * static_cast<std::size_t>(n_rows) * sizeof(std::int64_t));
  const auto set = [&](ggml_tensor* frames, ggml_tensor* values) {
    if (!ggml_is_contiguous(values)) values = ggml_cont(context_, values);
    return ggml_set_rows(context_, frames, ggml_reshape_2d(context_, values, values->ne[0], n_rows), rows);
  };
  Written& written = written_[layer.index()];
  written = {.k = set(memory_.k_rows(), k), .v = set(memory_.v_rows(), v)};
  return written;
}

ComposedAttention::Attended ComposedAttention::attend(LayerIndex layer, ggml_tensor* q, bool with_mass) {
  EBB_CHECK(written_[layer.index()].k != nullptr, "layer {} attends before it writes", layer.value());
  EBB_CHECK(!with_mass || setup_.plan.with_mass, "mass asked of a plan without");
  Attended all;
  for (std::size_t bundle = 0; bundle < setup_.plan.bundles.size(); ++bundle) {
    const Attended part = attend_bundle(layer, bundle, q, with_mass);
    all.out = all.out == nullptr ? part.out : ggml_concat(context_, all.out, part.out, 1);
    if (with_mass) all.mass = all.mass == nullptr ? part.mass : ggml_concat(context_, all.mass, part.mass, 2);
  }
  return all;
}

ComposedAttention::Attended ComposedAttention::attend_bundle(LayerIndex layer, std::size_t bundle, ggml_tensor* q,
                                                             bool with_mass) {
  const Written& written = written_[layer.index()];
  const Written kv = {.k = gather(layer, bundle, written.k), .v = gather(layer, bundle, written.v)};
  ggml_tensor* queries = bundle_queries(bundle, q);
  ggml_tensor* mask = bundle_mask(layer, bundle);
  // Where both are wanted, flash attention still gives the result: asking for mass changes no bit of it.
  ggml_tensor* probabilities = nullptr;
  if (with_mass || !setup_.ops.flash) probabilities = bundle_probabilities(layer, queries, kv.k, mask);
  ggml_tensor* result = nullptr;
  if (setup_.ops.flash) {
    result = ggml_flash_attn_ext(context_, queries, kv.k, kv.v, mask, shape(layer).scale, 0.0F, 0.0F);
    ggml_prec_set_acc(result, GGML_PREC_F32);
  } else {
    result = weighted_values(probabilities, kv.v);
  }
  return {.out = bundle_rows(bundle, result), .mass = with_mass ? bundle_mass(layer, bundle, probabilities) : nullptr};
}

// f16 [n_columns, n_rows, 1, streams], one stream per sequence where the heads are alike: ggml repeats it over them.
ggml_tensor* ComposedAttention::bundle_mask(LayerIndex layer, std::size_t bundle) {
  const auto index = static_cast<std::size_t>(setup_.plan.mask_of_layer[layer.index()]);
  BundleMask& mask = masks_[index][bundle];
  if (mask.tensor == nullptr) {
    const ComposedPlan::Bundle& rows = setup_.plan.bundles[bundle];
    const std::int64_t n_columns = n_entries(layer, bundle) * memory_.layout().block_size;
    mask.tensor = ggml_new_tensor_4d(context_, GGML_TYPE_F16, n_columns, rows.n_rows, 1,
                                     setup_.plan.masks[index].heads_alike ? rows.n_sequences : n_streams(bundle));
    ggml_set_input(mask.tensor);
    mask.values.resize(static_cast<std::size_t>(ggml_nelements(mask.tensor)));
  }
  return mask.tensor;
}

// [head_dim, all rows] -> [head_dim, n_columns, 1, streams]. Whole frames are gathered: one index for each of them.
ggml_tensor* ComposedAttention::gather(LayerIndex layer, std::size_t bundle, ggml_tensor* rows) {
  const std::int64_t head_dim = rows->ne[0];
  const std::int64_t n_columns = n_entries(layer, bundle) * memory_.layout().block_size;
  ggml_tensor* frames = ggml_reshape_2d(context_, rows, head_dim * memory_.layout().block_size, memory_.n_frames());
  ggml_tensor* indices = ggml_view_1d(context_, frames_, n_entries(layer, bundle) * n_streams(bundle),
                                      frames_at_[layer.index()][bundle] * sizeof(std::int32_t));
  ggml_tensor* gathered = ggml_get_rows(context_, frames, indices);
  gathered = ggml_reshape_4d(context_, gathered, head_dim, n_columns, 1, n_streams(bundle));
  const ggml_type type = to_ggml_type(setup_.ops.kv_type);
  return gathered->type == type ? gathered : ggml_cast(context_, gathered, type);
}

// [head_dim, n_heads, all rows] -> [head_dim, n_rows, group, streams]
ggml_tensor* ComposedAttention::bundle_queries(std::size_t bundle, ggml_tensor* q) {
  const ComposedPlan::Bundle& rows = setup_.plan.bundles[bundle];
  const std::int64_t n_kv_heads = setup_.layers.front().n_kv_heads;
  const std::int64_t group = q->ne[1] / n_kv_heads;
  if (!ggml_is_contiguous(q)) q = ggml_cont(context_, q);
  const std::size_t offset = static_cast<std::size_t>(rows.first_row) * q->nb[2];
  const std::size_t group_bytes = static_cast<std::size_t>(group) * q->nb[1];
  if (rows.n_sequences == 1) {
    return ggml_view_4d(context_, q, q->ne[0], rows.n_rows, group, n_kv_heads, q->nb[2], q->nb[1], group_bytes, offset);
  }
  ggml_tensor* heads = ggml_view_4d(context_, q, q->ne[0] * group, n_kv_heads, rows.n_rows, rows.n_sequences,
                                    group_bytes, q->nb[2], q->nb[2] * static_cast<std::size_t>(rows.n_rows), offset);
  ggml_tensor* streams = ggml_cont(context_, ggml_permute(context_, heads, 0, 3, 1, 2));
  streams = ggml_reshape_4d(context_, streams, q->ne[0], group, rows.n_rows, n_streams(bundle));
  return ggml_permute(context_, streams, 0, 2, 1, 3);
}

// [n_columns, n_rows, group, streams]
ggml_tensor* ComposedAttention::bundle_probabilities(LayerIndex layer, ggml_tensor* queries, ggml_tensor* k,
                                                     ggml_tensor* mask) {
  ggml_tensor* scores = ggml_mul_mat(context_, k, queries);
  ggml_prec_set_acc(scores, GGML_PREC_F32);
  return ggml_soft_max_ext(context_, scores, mask, shape(layer).scale, 0.0F);
}

// -> [head_dim_v, group, n_rows, streams], as flash attention gives it
ggml_tensor* ComposedAttention::weighted_values(ggml_tensor* probabilities, ggml_tensor* v) {
  ggml_tensor* by_dim = ggml_cont(context_, ggml_transpose(context_, v));
  ggml_tensor* values = ggml_mul_mat(context_, by_dim, probabilities);
  ggml_prec_set_acc(values, GGML_PREC_F32);
  return ggml_cont(context_, ggml_permute(context_, values, 0, 2, 1, 3));
}

// [head_dim_v, group, n_rows, streams] -> [head_dim_v * n_heads, n_rows of the bundle]
ggml_tensor* ComposedAttention::bundle_rows(std::size_t bundle, ggml_tensor* streams) {
  const ComposedPlan::Bundle& rows = setup_.plan.bundles[bundle];
  const std::int64_t n_kv_heads = setup_.layers.front().n_kv_heads;
  const std::int64_t group_width = streams->ne[0] * streams->ne[1];
  if (n_kv_heads > 1 && rows.n_rows * rows.n_sequences > 1) {
    streams = ggml_reshape_4d(context_, streams, group_width, rows.n_rows, rows.n_sequences, n_kv_heads);
    streams = ggml_cont(context_, ggml_permute(context_, streams, 0, 2, 3, 1));
  }
  return ggml_reshape_2d(context_, streams, group_width * n_kv_heads, rows.n_rows * rows.n_sequences);
}

// [n_columns, n_rows, group, streams] -> [n_entries * n_parts, n_kv_heads, n_rows of the bundle]: sums over the slots of a
// part, then over groups
ggml_tensor* ComposedAttention::bundle_mass(LayerIndex layer, std::size_t bundle, ggml_tensor* probabilities) {
  const ComposedPlan::Bundle& rows = setup_.plan.bundles[bundle];
  const std::int64_t n = n_entries(layer, bundle) * setup_.plan.n_parts;
  const std::int64_t group = probabilities->ne[2];
  ggml_tensor* slots = ggml_reshape_4d(context_, probabilities, memory_.layout().block_size / setup_.plan.n_parts, n,
                                       rows.n_rows * group, n_streams(bundle));
  ggml_tensor* mass =
      ggml_reshape_4d(context_, ggml_sum_rows(context_, slots), n, rows.n_rows, group, n_streams(bundle));
  if (group > 1) mass = ggml_sum_rows(context_, ggml_cont(context_, ggml_permute(context_, mass, 1, 2, 0, 3)));
  mass = ggml_reshape_4d(context_, mass, n, rows.n_rows, rows.n_sequences, shape(layer).n_kv_heads);
  mass = ggml_cont(context_, ggml_permute(context_, mass, 0, 2, 3, 1));
  return ggml_reshape_3d(context_, mass, n, shape(layer).n_kv_heads, rows.n_rows * rows.n_sequences);
}

// --- filling ---------------------------------------------------------------------------------------------------------

void ComposedAttention::fill(const AttentionStep& step) {
  EBB_CHECK(setup_.plan.serves(step, setup_.layers), "a step that the graph was not planned for");
  for (std::size_t l = 0; l < setup_.layers.size(); ++l) {
    const LayerIndex layer(static_cast<std::int32_t>(l));
    for (std::size_t s = 0; s < step.sequences.size(); ++s) fill_write_rows(step, layer, s);
    for (std::size_t bundle = 0; bundle < setup_.plan.bundles.size(); ++bundle) fill_frames(step, layer, bundle);
  }
  const auto set = [](ggml_tensor* tensor, const auto& values) {
    // An input that no node reads was given no memory: K and V of a layer may be wanted without its attention.
    if (tensor != nullptr && tensor->buffer != nullptr) {
      ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
    }
  };
  set(write_rows_, write_row_values_);
  set(frames_, frame_values_);
  for (std::size_t m = 0; m < masks_.size(); ++m) {
    for (std::size_t bundle = 0; bundle < masks_[m].size(); ++bundle) {
      if (masks_[m][bundle].tensor == nullptr) continue;
      fill_mask(step, m, bundle);
      set(masks_[m][bundle].tensor, masks_[m][bundle].values);
    }
  }
}

void ComposedAttention::fill_write_rows(const AttentionStep& step, LayerIndex layer, std::size_t sequence) {
  const SequenceRows& rows = step.sequences[sequence];
  const auto n_kv_heads = static_cast<std::size_t>(step.n_kv_heads);
  const std::size_t first =
      layer.index() * static_cast<std::size_t>(n_rows_) + static_cast<std::size_t>(rows.row_begin);
  for (std::size_t head = 0; head < n_kv_heads; ++head) {
    const BlockTable table = step.table(sequence, layer, HeadIndex(static_cast<std::int32_t>(head)));
    auto entry = std::partition_point(table.begin(), table.end(),
                                      [&](const TableEntry& e) { return e.span().end <= rows.first; });
    for (std::int32_t row = 0; row < rows.n_rows; ++row) {
      const Position position = rows.first + row;
      while (entry != table.end() && entry->span().end <= position) ++entry;
      EBB_CHECK(entry != table.end() && entry->span().contains(position),
                "no frame for position {} in layer {} head {}", position.value(), layer.value(), head);
      write_row_values_[(first + static_cast<std::size_t>(row)) * n_kv_heads + head] =
          static_cast<std::int64_t>(entry->frame.value()) * memory_.layout().block_size + (position - entry->begin);
    }
  }
}

void ComposedAttention::fill_frames(const AttentionStep& step, LayerIndex layer, std::size_t bundle) {
  const ComposedPlan::Bundle& rows = setup_.plan.bundles[bundle];
  const std::int64_t n = n_entries(layer, bundle);
  auto out = frame_values_.begin() + static_cast<std::ptrdiff_t>(frames_at_[layer.index()][bundle]);
  for (std::int32_t head = 0; head < step.n_kv_heads; ++head) {
    for (std::int32_t s = rows.first_sequence; s < rows.first_sequence + rows.n_sequences; ++s) {
      const BlockTable entries = setup_.plan.gathered(step, static_cast<std::size_t>(s), layer, HeadIndex(head));
      const auto end = std::transform(entries.begin(), entries.end(), out,
                                      [](const TableEntry& entry) { return entry.frame.value(); });
      out += n;
      // Padding is masked, and reads a frame that is in use.
      std::fill(end, out, entries.front().frame.value());
    }
  }
}

void ComposedAttention::fill_mask(const AttentionStep& step, std::size_t mask, std::size_t bundle) {
  const ComposedPlan::Mask& plan = setup_.plan.masks[mask];
  const ComposedPlan::Bundle& rows = setup_.plan.bundles[bundle];
  const std::int32_t block_size = memory_.layout().block_size;
  std::vector<std::uint16_t>& values = masks_[mask][bundle].values;
  std::fill(values.begin(), values.end(), kHidden);
  auto row_begin = values.begin();
  for (std::int32_t head = 0; head < (plan.heads_alike ? 1 : step.n_kv_heads); ++head) {
    for (std::int32_t s = rows.first_sequence; s < rows.first_sequence + rows.n_sequences; ++s) {
      const auto sequence = static_cast<std::size_t>(s);
      const BlockTable entries = setup_.plan.gathered(step, sequence, plan.first_layer, HeadIndex(head));
      for (std::int32_t row = 0; row < rows.n_rows; ++row) {
        const Position query = step.sequences[sequence].first + row;
        const Position oldest(plan.window == 0 ? 0 : std::max(0, query.value() - plan.window + 1));
        auto columns = row_begin;
        for (const TableEntry& entry : entries) {
          const Span seen = intersect(entry.span(), {oldest, query + 1});
          if (!seen.empty()) std::fill_n(columns + (seen.begin - entry.begin), seen.n_tokens(), kVisible);
          columns += block_size;
        }
        row_begin += static_cast<std::ptrdiff_t>(plan.n_entries[bundle]) * block_size;
      }
    }
  }
}

}  // namespace ebb
