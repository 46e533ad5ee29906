#include "model/query_forecast.h"

#include <cmath>
#include <span>
#include <utility>

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

std::vector<QueryForecast> Forecaster::forecast(const QueryMoments& moments, std::size_t head,
                                                const Horizon& horizon) const {
  const QuerySetup::Layer& layer = setup_.layers[setup_.layer_of(head)];
  const KeyRotation rotation =
      setup_.with_magnitude(make_mean_rotation(layer.frequencies, horizon.first, horizon.n_anchors), head);
  std::vector<QueryForecast> group;
  for (std::size_t g = 0; g < setup_.group_size(); ++g) {
    const std::size_t query_head = setup_.query_head(head, g);
    QueryForecast& forecast = group.emplace_back();
    forecast.mean = turned_mean(rotation, moments.mean(query_head), setup_.scale);
    if (!horizon.with_spread) continue;
    forecast.spread = turned_spread(rotation, moments.covariance(query_head), setup_.scale * setup_.scale / 2.0);
  }
  return group;
}

}  // namespace ebb
