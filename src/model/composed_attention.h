// Attention over block tables made of ggml operations, for backends that cannot run our kernels (CUDA, Metal, Vulkan).
//
// The meaning is that of model/attention.h; the bits are the backend's own. Frames lie KeyOrder::kByRow. It sees tensors
// and block tables and knows no policy, session or residency. What changes from step to step (frames, positions, holes)
// is in input tensors that fill() writes; what a graph is built for is a ComposedPlan (model/composed_plan.h).
//
//   write    K, V of the step -> rows `frame * block_size + slot`                                    ggml_set_rows
//   gather   the blocks of each table in position order, whole frames   [head_dim, n_columns, 1, head x seq]  get_rows
//   attend   one call per bundle; columns that a query may not see are masked with -inf       flash_attn_ext, or spelled
//            out as mul_mat, soft_max_ext, mul_mat where the backend has no such kernel
//
//   column   slot `c % block_size` of the table's entry `c / block_size`. Masked: slots without a token, positions
//            after the query or out of its window, entries that only pad the table to the plan's length
//   bundle     neighbouring sequences with equally many rows; they and the KV heads share ggml's fourth dimension, at
//            [sequence + n_sequences * kv head], because flash attention takes one mask per index of that dimension
//
// A masked column still enters sums with weight 0, so whatever lies in frames must be finite: FrameMemory starts as zeros.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "cache/frame_memory.h"
#include "device/backend.h"
#include "model/attention.h"
#include "model/composed_plan.h"

struct ggml_context;
struct ggml_tensor;

namespace ebb {

// What the backend can do; the same for the life of a model.
struct ComposedOps {
  // False: the backend has no flash attention for these head sizes.
  bool flash = true;
  // Type of gathered K and V: kF32 or kF16.
  RowType kv_type = RowType::kF16;
};

// `layers` as everywhere below: one shape per layer, all of one kByRow layout. kUnsupported names what the device lacks.
[[nodiscard]] Result<ComposedOps> choose_composed_ops(const Backend& backend, std::span<const AttentionShape> layers);

// The attention of all layers in one graph. `context` and `memory` must outlive it.
class ComposedAttention {
 public:
  struct Setup {
    ComposedPlan plan;
    std::vector<AttentionShape> layers;
    ComposedOps ops;
  };

  ComposedAttention(ggml_context* context, FrameMemory& memory, Setup setup);

  // The most tensors that one layer adds to the context and, as nodes, to the graph. The constructor adds 2 more.
  [[nodiscard]] std::int32_t max_tensors_per_layer() const;

  struct Written {
    ggml_tensor* k = nullptr;
    ggml_tensor* v = nullptr;
  };
  struct Attended {
    ggml_tensor* out = nullptr;  // f32 [head_dim_v * n_heads, n_rows]
    // f32 [n_entries * n_parts, n_kv_heads, n_rows], part j of entry e of the row's table at [e * n_parts + j], each as
    // AttentionTensors::mass; n_parts is the plan's. Null unless
    // asked for. It costs n_columns * n_rows * n_heads floats of activations: ask for few rows at a time.
    ggml_tensor* mass = nullptr;
  };

  // k: f32 [head_dim_k, n_kv_heads, n_rows], rotated; v: f32 [head_dim_v, n_kv_heads, n_rows]. Expand both results into
  // the graph where no attend() of the layer follows.
  Written write(LayerIndex layer, ggml_tensor* k, ggml_tensor* v);
  // q: f32 [head_dim_k, n_heads, n_rows]. Once per layer, after its write().
  Attended attend(LayerIndex layer, ggml_tensor* q, bool with_mass);

  // Writes all inputs for this step; before each computation, once the graph is allocated.
  void fill(const AttentionStep& step);

  [[nodiscard]] const ComposedPlan& plan() const { return setup_.plan; }

 private:
  struct BundleMask {
    ggml_tensor* tensor = nullptr;
    std::vector<std::uint16_t> values;
  };

  [[nodiscard]] const AttentionShape& shape(LayerIndex layer) const { return setup_.layers[layer.index()]; }
  [[nodiscard]] std::int64_t n_entries(LayerIndex layer, std::size_t bundle) const;
  // KV heads times sequences: the fourth dimension.
  [[nodiscard]] std::int64_t n_streams(std::size_t bundle) const;
  void make_inputs();

  Attended attend_bundle(LayerIndex layer, std::size_t bundle, ggml_tensor* q, bool with_mass);
  ggml_tensor* bundle_mask(LayerIndex layer, std::size_t bundle);
  ggml_tensor* gather(LayerIndex layer, std::size_t bundle, ggml_tensor* rows);
  ggml_tensor* bundle_queries(std::size_t bundle, ggml_tensor* q);
  ggml_tensor* bundle_probabilities(LayerIndex layer, ggml_tensor* queries, ggml_tensor* k, ggml_tensor* mask);
  ggml_tensor* weighted_values(ggml_tensor* probabilities, ggml_tensor* v);
  ggml_tensor* bundle_rows(std::size_t bundle, ggml_tensor* streams);
  ggml_tensor* bundle_mass(LayerIndex layer, std::size_t bundle, ggml_tensor* probabilities);

  void fill_write_rows(const AttentionStep& step, LayerIndex layer, std::size_t sequence);
  void fill_frames(const AttentionStep& step, LayerIndex layer, std::size_t bundle);
  void fill_mask(const AttentionStep& step, std::size_t mask, std::size_t bundle);

  ggml_context* context_;
  FrameMemory& memory_;
  Setup setup_;
  std::int32_t n_rows_ = 0;
  std::vector<Written> written_;                     // [layer]
  std::vector<std::vector<BundleMask>> masks_;       // [mask][bundle]
  ggml_tensor* write_rows_ = nullptr;                // i64 [layer][row][kv head]
  ggml_tensor* frames_ = nullptr;                    // i32 [layer][bundle][kv head][sequence][entry]
  std::vector<std::vector<std::size_t>> frames_at_;  // [layer][bundle]: first element in frames_
  std::vector<std::int64_t> write_row_values_;
  std::vector<std::int32_t> frame_values_;
};

}  // namespace ebb
