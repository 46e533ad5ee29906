// QuerySetup: what of a model turns a query, as it was before it was rotated, into what attention multiplies keys by.
//
// Thread rule: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/to_size.h"
#include "model/key_rotation.h"
#include "model/query_moments.h"

namespace ebb {

struct QuerySetup {
  struct Layer {
    RopeFrequencies frequencies;
    double magnitude = 1.0;  // by which what is rotated is multiplied
    bool slides = false;     // it looks at a window only
  };

  QueryMoments::Shape shape;
  std::int32_t n_kv_heads = 1;
  double scale = 1.0;
  // How many whoever scores many heads by it should take.
  std::int32_t n_threads = 1;
  std::vector<Layer> layers;

  // Keeps nothing of the model.
  static QuerySetup of(const Model& model, std::int32_t n_threads);

  // Heads are layer * n_kv_heads + KV head, query heads layer * shape.n_heads + query head.
  [[nodiscard]] std::size_t n_kv_heads_in_all() const { return to_size(shape.n_layers) * to_size(n_kv_heads); }
  [[nodiscard]] std::size_t group_size() const { return to_size(shape.n_heads) / to_size(n_kv_heads); }
  [[nodiscard]] std::size_t layer_of(std::size_t head) const { return head / to_size(n_kv_heads); }
  // The g-th of the group of a head.
  [[nodiscard]] std::size_t query_head(std::size_t head, std::size_t g) const {
    return layer_of(head) * to_size(shape.n_heads) + head % to_size(n_kv_heads) * group_size() + g;
  }
  // With the magnitude of the head's layer in it.
  [[nodiscard]] KeyRotation with_magnitude(KeyRotation rotation, std::size_t head) const;
};

}  // namespace ebb
