#include "model/query_forecast.h"

#include <cmath>
#include <span>
#include <utility>

#include "base/to_size.h"
#include "model/model.h"

namespace ebb {
namespace {

std::vector<float> turned_mean(const KeyRotation& rotation, const std::vector<double>& mean, double scale) {
  std::vector<float> turned;
  for (const double x : mean) turned.push_back(static_cast<float>(x * scale));
  rotate_row(rotation, turned);
  return turned;
}

// Turning every row of a matrix multiplies it by R^T from the right. Sigma is symmetric: done twice, with the result's rows made its
// columns in between, that is R Sigma R^T.
std::vector<float> turned_spread(const KeyRotation& rotation, const std::vector<double>& covariance, double scale) {
  const auto n = static_cast<std::size_t>(std::sqrt(static_cast<double>(covariance.size())) + 0.5);
  std::vector<float> matrix;
  for (const double x : covariance) matrix.push_back(static_cast<float>(x * scale));
  for (int times = 0; times < 2; ++times) {
    for (std::size_t i = 0; i < n; ++i) rotate_row(rotation, std::span(matrix).subspan(i * n, n));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) std::swap(matrix[i * n + j], matrix[j * n + i]);
    }
  }
  std::vector<float> triangle;
  triangle.reserve(QueryImage::n_products(n));
  for (std::size_t i = 0; i < n; ++i) {
    triangle.push_back(matrix[i * n + i]);
    // Both halves, which differ by their rounding.
    for (std::size_t j = i + 1; j < n; ++j) triangle.push_back(matrix[i * n + j] + matrix[j * n + i]);
  }
  return triangle;
}

}  // namespace

Forecaster::Setup Forecaster::setup_of(const Model& model, std::int32_t n_threads) {
  const Hparams& hparams = model.hparams();
  Setup setup{.shape = {.n_layers = hparams.n_layers, .n_heads = hparams.n_heads, .n_dims = hparams.head_dim_k},
              .n_kv_heads = hparams.n_kv_heads,
              .scale = static_cast<double>(hparams.attention_scale),
              .n_threads = n_threads,
              .layers = {}};
  for (RopeFrequencies& frequencies : layer_frequencies(model)) {
    const LayerIndex layer(static_cast<std::int32_t>(setup.layers.size()));
    setup.layers.push_back({.frequencies = std::move(frequencies), .magnitude = rope_magnitude(hparams, layer)});
  }
  return setup;
}

std::vector<QueryForecast> Forecaster::forecast(const QueryMoments& moments, std::size_t head,
                                                const Horizon& horizon) const {
  const std::size_t n_heads = to_size(setup_.shape.n_heads);
  const std::size_t n_group = n_heads / to_size(setup_.n_kv_heads);
  const std::size_t layer = head / to_size(setup_.n_kv_heads);
  KeyRotation rotation = make_mean_rotation(setup_.layers[layer].frequencies, horizon.first, horizon.n_anchors);
  for (auto* factors : {&rotation.cosines, &rotation.sines}) {
    for (float& factor : *factors) factor *= static_cast<float>(setup_.layers[layer].magnitude);
  }
  std::vector<QueryForecast> group;
  for (std::size_t g = 0; g < n_group; ++g) {
    const std::size_t query_head = layer * n_heads + head % to_size(setup_.n_kv_heads) * n_group + g;
    QueryForecast& forecast = group.emplace_back();
    forecast.mean = turned_mean(rotation, moments.mean(query_head), setup_.scale);
    if (!horizon.with_spread) continue;
    forecast.spread = turned_spread(rotation, moments.covariance(query_head), setup_.scale * setup_.scale / 2.0);
  }
  return group;
}

}  // namespace ebb
