#include "model/query_setup.h"

#include <utility>

#include "model/model.h"

namespace ebb {

QuerySetup QuerySetup::of(const Model& model, std::int32_t n_threads) {
  const Hparams& hparams = model.hparams();
  QuerySetup setup{.shape = {.n_layers = hparams.n_layers, .n_heads = hparams.n_heads, .n_dims = hparams.head_dim_k},
                   .n_kv_heads = hparams.n_kv_heads,
                   .scale = static_cast<double>(hparams.attention_scale),
                   .n_threads = n_threads,
                   .layers = {}};
  for (RopeFrequencies& frequencies : layer_frequencies(model)) {
    const LayerIndex layer(static_cast<std::int32_t>(setup.layers.size()));
    setup.layers.push_back({.frequencies = std::move(frequencies),
                            .magnitude = rope_magnitude(hparams, layer),
                            .slides = hparams.window(layer) > 0});
  }
  return setup;
}

KeyRotation QuerySetup::with_magnitude(KeyRotation rotation, std::size_t head) const {
  for (auto* factors : {&rotation.cosines, &rotation.sines}) {
    for (float& factor : *factors) factor *= static_cast<float>(layers[layer_of(head)].magnitude);
  }
  return rotation;
}

}  // namespace ebb
