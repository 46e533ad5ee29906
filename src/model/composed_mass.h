// Attention mass of composed attention, summed over the rows that ask for it, on the device.
//
// ComposedAttention gives mass per row, which would be a lot to keep and to read back; this adds the few operations that
// leave one sum per table entry, or per part of one, as StepMass has them. It knows plans and tensors, no policy.
//
//   mass [n_entries * n_parts, n_kv_heads, rows] x weight of the row (1 or 0: does it ask) -> rows first -> sum_rows, per bundle
//
// Bits are the backend's own, and do not depend on threads on the CPU. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "model/composed_plan.h"
#include "model/step_mass.h"

struct ggml_context;
struct ggml_tensor;

namespace ebb {

class ComposedMass {
 public:
  // `context` must outlive it; the plan is one with mass, and is copied.
  ComposedMass(ggml_context* context, const ComposedPlan& plan);

  // `mass`: ComposedAttention::Attended::mass of the layer. The results are outputs, to be expanded into the graph.
  [[nodiscard]] std::vector<ggml_tensor*> sum_rows(LayerIndex layer, ggml_tensor* mass);

  // Writes the inputs of this step; before each computation, once the graph is allocated.
  void fill(const AttentionStep& step);
  // After the computation.
  void read(const AttentionStep& step, StepMass& mass) const;

 private:
  ggml_tensor* sum_bundle(const ComposedPlan::Bundle& bundle, ggml_tensor* mass);

  ggml_context* context_;
  ComposedPlan plan_;
  ggml_tensor* weights_ = nullptr;  // f32 [1, 1, all rows]
  std::vector<float> weight_values_;
  std::vector<std::vector<ggml_tensor*>> sums_;  // [layer][bundle]: f32 [n_entries * n_parts, n_kv_heads, n_sequences]
};

}  // namespace ebb
