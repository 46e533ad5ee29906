#include "model/composed_mass.h"

#include <algorithm>

#include <ggml-backend.h>
#include <ggml.h>

#include "base/check.h"

namespace ebb {

ComposedMass::ComposedMass(ggml_context* context, const ComposedPlan& plan)
    : context_(context), plan_(plan), sums_(plan.mask_of_layer.size()) {
  EBB_CHECK(plan.with_mass, "mass of a plan without");
  const ComposedPlan::Bundle& last = plan.bundles.back();
  weight_values_.resize(static_cast<std::size_t>(last.first_row + last.n_sequences * last.n_rows));
  weights_ = ggml_new_tensor_3d(context, GGML_TYPE_F32, 1, 1, static_cast<std::int64_t>(weight_values_.size()));
  ggml_set_input(weights_);
}

std::vector<ggml_tensor*> ComposedMass::sum_rows(LayerIndex layer, ggml_tensor* mass) {
  std::vector<ggml_tensor*>& sums = sums_[layer.index()];
  for (const ComposedPlan::Bundle& bundle : plan_.bundles) {
    sums.push_back(sum_bundle(bundle, mass));
    ggml_set_output(sums.back());
  }
  return sums;
}

// [n_parts of all entries, n_kv_heads, all rows] -> [n_parts of all entries, n_kv_heads, n_sequences]
ggml_tensor* ComposedMass::sum_bundle(const ComposedPlan::Bundle& bundle, ggml_tensor* mass) {
  const auto rows_of = [&](ggml_tensor* t) {
    return ggml_view_4d(context_, t, t->ne[0], t->ne[1], bundle.n_rows, bundle.n_sequences, t->nb[1], t->nb[2],
                        t->nb[2] * static_cast<std::size_t>(bundle.n_rows),
                        t->nb[2] * static_cast<std::size_t>(bundle.first_row));
  };
  ggml_tensor* asked = ggml_mul(context_, rows_of(mass), rows_of(weights_));
  ggml_tensor* rows_first = ggml_cont(context_, ggml_permute(context_, asked, 1, 2, 0, 3));
  return ggml_reshape_3d(context_, ggml_sum_rows(context_, rows_first), mass->ne[0], mass->ne[1], bundle.n_sequences);
}

void ComposedMass::fill(const AttentionStep& step) {
  std::ranges::fill(weight_values_, 0.0F);
  for (const SequenceRows& rows : step.sequences) {
    std::fill_n(weight_values_.begin() + rows.row_begin + rows.n_rows - rows.n_mass_rows, rows.n_mass_rows, 1.0F);
  }
  ggml_backend_tensor_set(weights_, weight_values_.data(), 0, ggml_nbytes(weights_));
}

void ComposedMass::read(const AttentionStep& step, StepMass& mass) const {
  std::vector<float> values;
  for (std::size_t l = 0; l < sums_.size(); ++l) {
    const LayerIndex layer(static_cast<std::int32_t>(l));
    for (std::size_t bundle = 0; bundle < plan_.bundles.size(); ++bundle) {
      const ggml_tensor* sums = sums_[l][bundle];
      values.resize(static_cast<std::size_t>(ggml_nelements(sums)));
      ggml_backend_tensor_get(sums, values.data(), 0, ggml_nbytes(sums));
      std::span<const float> rest = values;
      for (std::int32_t i = 0; i < plan_.bundles[bundle].n_sequences; ++i) {
        const auto sequence = static_cast<std::size_t>(plan_.bundles[bundle].first_sequence + i);
        for (std::int32_t h = 0; h < step.n_kv_heads; ++h) {
          mass.set(step, {.sequence = sequence, .layer = layer, .head = HeadIndex(h)},
                   rest.first(static_cast<std::size_t>(sums->ne[0])), plan_.n_parts);
          rest = rest.subspan(static_cast<std::size_t>(sums->ne[0]));
        }
      }
    }
  }
}

}  // namespace ebb
