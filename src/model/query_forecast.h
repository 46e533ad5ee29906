// QueryForecast: what is to be expected of the next queries of one query head, from those that there were, turned to where they will
// be (Expected Attention, Devoto et al. 2025, arXiv 2510.00636).
//
//   R        the mean of the rotations of n_anchors anchors from `first` on, the next token's    (model/key_rotation.h)
//   mean     s R mu                    s: what attention multiplies logits by, in the original 1 / sqrt(d)
//   spread   s^2 / 2 R Sigma R^T       as a triangle whose elements right of the diagonal are doubled
//
// so that a key k, rotated for whatever anchor it has, has the expected logit mean k + k^T spread k: of normally distributed queries
// the logarithm of the mean of exp(s q k). The variance that rotation itself adds is left out, as the original does.
//
// Forecaster is of one model, and keeps nothing of it. A forecast costs 2 d^2 products and its 2 d^2 bytes. Thread rule: all
// const functions may run at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/query_moments.h"
#include "model/query_setup.h"

namespace ebb {

struct QueryForecast {
  std::vector<float> mean;    // [n_dims]
  std::vector<float> spread;  // QueryImage::n_products(n_dims) of them, or none where it is not asked for
};

// The queries to come.
struct Horizon {
  Position first;
  std::int32_t n_anchors = 512;
  bool with_spread = true;
};

class Forecaster {
 public:
  explicit Forecaster(QuerySetup setup) : setup_(std::move(setup)) {}
  Forecaster(const Model& model, std::int32_t n_threads) : Forecaster(QuerySetup::of(model, n_threads)) {}

  [[nodiscard]] std::int32_t n_threads() const { return setup_.n_threads; }
  // Of a sequence's queries at `from` and behind.
  [[nodiscard]] QueryMoments make_moments(Position from) const { return {setup_.shape, from}; }
  // Of the query heads of KV head `head`, which is layer * n_kv_heads + KV head.
  [[nodiscard]] std::vector<QueryForecast> forecast(const QueryMoments& moments, std::size_t head,
                                                    const Horizon& horizon) const;

 private:
  QuerySetup setup_;
};

}  // namespace ebb
