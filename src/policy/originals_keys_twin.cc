#include "policy/originals_keys_twin.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ebb::originals {
namespace {

double cosine(const Row& a, const Row& b) {
  const double norms = norm(a) * norm(b);
  return norms > 0 ? dot(a, b) / norms : 0;
}

Row keydiff_scores_of_head(const Rows& keys) {
  Row anchor(keys.front().size(), 0.0);
  for (const Row& key : keys) {
    const double length = norm(key);
    for (std::size_t i = 0; length > 0 && i < key.size(); ++i) {
      anchor[i] += key[i] / length / static_cast<double>(keys.size());
    }
  }
  Row scores;
  for (const Row& key : keys) scores.push_back(-cosine(key, anchor));
  return scores;
}

// Partitions that have one behind them.
std::size_t count_scored_partitions(std::size_t n_tokens, const LagKv& lagkv) {
  EBB_CHECK(lagkv.lag > 0, "partitions of no tokens");
  const std::size_t n_full = (n_tokens - std::min(n_tokens, lagkv.n_sinks)) / lagkv.lag;
  return n_full - std::min<std::size_t>(n_full, 1);
}

// Softmax over the lag tokens from `begin` on.
Row score_partition(const Rows& x, std::size_t begin, const LagKv& lagkv) {
  const std::size_t reference = begin + lagkv.lag;
  const auto n_channels = static_cast<double>(x[0].size());
  EBB_CHECK(n_channels >= 2, "a deviation over {} channels", n_channels);
  Row lo = x[reference];
  Row hi = x[reference];
  for (std::size_t t = reference; t < reference + lagkv.lag; ++t) {
    for (std::size_t i = 0; i < lo.size(); ++i) {
      lo[i] = std::min(lo[i], x[t][i]);
      hi[i] = std::max(hi[i], x[t][i]);
    }
  }
  Row deviations;
  for (std::size_t t = begin; t < reference; ++t) {
    Row z;
    double mean = 0;
    for (std::size_t i = 0; i < lo.size(); ++i) {
      z.push_back((x[t][i] - lo[i]) / std::max(hi[i] - lo[i], lagkv.smallest_range));
      mean += z.back() / n_channels;
    }
    double squares = 0;
    for (const double value : z) squares += (value - mean) * (value - mean);
    deviations.push_back(std::sqrt(squares / (n_channels - 1)));
  }
  return softmax(deviations);
}

// The mean over positions of RoPE's rotation matrix.
Rows mean_rotation(std::size_t head_dim, const ExpectedAttention& expected) {
  EBB_CHECK(head_dim % 2 == 0 && expected.n_future > 0, "head_dim {}, {} positions", head_dim, expected.n_future);
  Rows matrix(head_dim, Row(head_dim, 0.0));
  const std::size_t half = head_dim / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const double frequency = std::pow(expected.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    for (std::size_t f = 0; f < expected.n_future; ++f) {
      const double angle = static_cast<double>(expected.next_position + f) * frequency;
      const double cos = std::cos(angle) / static_cast<double>(expected.n_future);
      const double sin = std::sin(angle) / static_cast<double>(expected.n_future);
      matrix[i][i] += cos;
      matrix[i][i + half] -= sin;
      matrix[i + half][i] += sin;
      matrix[i + half][i + half] += cos;
    }
  }
  return matrix;
}

Row multiply(const Rows& matrix, const Row& x) {
  Row product;
  for (const Row& row : matrix) product.push_back(dot(row, x));
  return product;
}

// a b^T
Rows multiply_by_transposed(const Rows& a, const Rows& b) {
  Rows product;
  for (const Row& row : a) product.push_back(multiply(b, row));
  return product;
}

struct Moments {
  Row mean;
  Rows covariance;
};

Moments find_moments(const Rows& queries, std::size_t n_skipped) {
  EBB_CHECK(queries.size() > n_skipped, "{} queries, {} of them of sinks", queries.size(), n_skipped);
  const std::size_t d = queries[0].size();
  const auto n = static_cast<double>(queries.size() - n_skipped);
  Moments moments = {.mean = Row(d, 0.0), .covariance = Rows(d, Row(d, 0.0))};
  for (std::size_t q = n_skipped; q < queries.size(); ++q) {
    for (std::size_t i = 0; i < d; ++i) moments.mean[i] += queries[q][i] / n;
  }
  for (std::size_t q = n_skipped; q < queries.size(); ++q) {
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t j = 0; j < d; ++j) {
        moments.covariance[i][j] += (queries[q][i] - moments.mean[i]) * (queries[q][j] - moments.mean[j]) / n;
      }
    }
  }
  return moments;
}

// Softmax over a KV head's keys after the sinks of one query head's expected logits.
Row expect_weights(const Moments& moments, const Rows& keys, const ExpectedAttention& expected) {
  const auto d = static_cast<double>(keys[0].size());
  const Rows rotation = mean_rotation(keys[0].size(), expected);
  const Row mean = multiply(rotation, moments.mean);
  // R Sigma R^T: (R Sigma^T) R^T, as Sigma is symmetric.
  const Rows covariance = multiply_by_transposed(multiply_by_transposed(rotation, moments.covariance), rotation);
  Row logits;
  for (std::size_t j = expected.n_sinks; j < keys.size(); ++j) {
    logits.push_back(dot(mean, keys[j]) / std::sqrt(d) + dot(keys[j], multiply(covariance, keys[j])) / (2 * d));
  }
  return softmax(logits);
}

}  // namespace

Rows keydiff_scores(const Heads& keys) {
  check_heads(keys, keys.size());
  Rows scores;
  for (const Rows& head : keys) scores.push_back(keydiff_scores_of_head(head));
  return scores;
}

std::vector<Tokens> keydiff_kept(const Heads& keys, std::size_t budget, std::size_t block_size) {
  check_heads(keys, keys.size());
  EBB_CHECK(budget > 0 && block_size > 0, "budget {}, blocks of {}", budget, block_size);
  std::vector<Tokens> kept_by_head;
  for (const Rows& head : keys) {
    Tokens kept;
    std::size_t next = 0;
    while (next < std::min(budget, head.size())) kept.push_back(next++);
    while (next < head.size()) {
      for (const std::size_t end = std::min(next + block_size, head.size()); next < end;) kept.push_back(next++);
      Rows present;
      for (const std::size_t token : kept) present.push_back(head[token]);
      Tokens still_kept;
      for (const std::size_t i : keep_highest(keydiff_scores_of_head(present), budget)) still_kept.push_back(kept[i]);
      kept = still_kept;
    }
    kept_by_head.push_back(kept);
  }
  return kept_by_head;
}

Rows knorm_scores(const Heads& keys) {
  check_heads(keys, keys.size());
  Rows scores;
  for (const Rows& head : keys) {
    Row row;
    for (const Row& key : head) row.push_back(-norm(key));
    scores.push_back(row);
  }
  return scores;
}

Rows lagkv_scores(const Heads& keys, const Heads& values, const LagKv& lagkv) {
  check_heads(keys, keys.size());
  check_heads(values, keys.size());
  const std::size_t n_tokens = keys[0].size();
  EBB_CHECK(values.size() == keys.size() && values[0].size() == n_tokens, "keys and values of unlike tokens");
  Rows scores(keys.size(), Row(n_tokens, kAlways));
  for (std::size_t p = 0; p < count_scored_partitions(n_tokens, lagkv); ++p) {
    const std::size_t begin = lagkv.n_sinks + p * lagkv.lag;
    for (std::size_t h = 0; h < keys.size(); ++h) {
      const Row of_keys = score_partition(keys[h], begin, lagkv);
      const Row of_values = score_partition(values[h], begin, lagkv);
      for (std::size_t t = 0; t < lagkv.lag; ++t) scores[h][begin + t] = of_keys[t] + lagkv.rho * of_values[t];
    }
  }
  return scores;
}

std::vector<Tokens> lagkv_kept(const Rows& scores, const LagKv& lagkv) {
  const auto n_stay = static_cast<std::size_t>(std::floor(lagkv.keep * static_cast<double>(lagkv.lag)));
  std::vector<Tokens> kept_by_head;
  for (const Row& row : scores) {
    Tokens kept;
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (row[j] == kAlways) kept.push_back(j);
    }
    for (std::size_t p = 0; p < count_scored_partitions(row.size(), lagkv); ++p) {
      const std::size_t begin = lagkv.n_sinks + p * lagkv.lag;
      Row partition;
      for (std::size_t t = 0; t < lagkv.lag; ++t) partition.push_back(row[begin + t]);
      for (const std::size_t t : keep_highest(partition, n_stay)) kept.push_back(begin + t);
    }
    std::sort(kept.begin(), kept.end());
    kept_by_head.push_back(kept);
  }
  return kept_by_head;
}

Rows expected_attention_scores(const Heads& queries, const Heads& keys, const Heads& values,
                               const ExpectedAttention& expected) {
  check_heads(keys, keys.size());
  check_heads(values, keys.size());
  check_heads(queries, keys.size());
  const std::size_t n_group = queries.size() / keys.size();
  Rows by_query_head;
  for (std::size_t h = 0; h < queries.size(); ++h) {
    by_query_head.push_back(expect_weights(find_moments(queries[h], expected.n_sinks), keys[h / n_group], expected));
  }
  const Rows means = mean_over_groups(by_query_head, keys.size());
  Rows scores(keys.size(), Row(keys[0].size(), kAlways));
  for (std::size_t h = 0; h < keys.size(); ++h) {
    for (std::size_t j = 0; j < means[h].size(); ++j) {
      const std::size_t token = expected.n_sinks + j;
      scores[h][token] = (means[h][j] + expected.epsilon) * norm(values[h][token]);
    }
  }
  return scores;
}

Row rkv_redundancy(const Rows& keys, double similar) {
  const std::size_t n = keys.size();
  Row means(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    Row row(n, 0.0);
    std::size_t spared = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      row[j] = dot(keys[i], keys[j]) / ((norm(keys[i]) + 1e-8) * (norm(keys[j]) + 1e-8));
      if (row[j] > similar) spared = j;
    }
    row[spared] = 0;
    for (std::size_t j = 0; j < n; ++j) means[j] += row[j] / static_cast<double>(n);
  }
  return softmax(means);
}

Rows rkv_scores(const Heads& queries, const Heads& keys, const RKv& rkv) {
  check_heads(keys, keys.size());
  check_heads(queries, keys.size());
  EBB_CHECK(queries[0].size() == rkv.window, "{} queries, a window of {}", queries[0].size(), rkv.window);
  const std::size_t n_tokens = keys[0].size();
  Rows scores(keys.size(), Row(n_tokens, kAlways));
  if (n_tokens <= rkv.window) return scores;
  const std::size_t n_group = queries.size() / keys.size();
  const std::size_t n_scored = n_tokens - rkv.window;
  for (std::size_t h = 0; h < keys.size(); ++h) {
    Row importance(n_scored, 0.0);
    for (std::size_t q = 0; q < rkv.window; ++q) {
      Row logits(n_scored, -std::numeric_limits<double>::infinity());
      for (std::size_t head = h * n_group; head < (h + 1) * n_group; ++head) {
        for (std::size_t j = 0; j < n_scored; ++j) {
          const double logit = dot(queries[head][q], keys[h][j]) / std::sqrt(static_cast<double>(keys[h][j].size()));
          logits[j] = std::max(logits[j], logit);
        }
      }
      const Row weights = softmax(logits);
      for (std::size_t j = 0; j < n_scored; ++j) importance[j] += weights[j] / static_cast<double>(rkv.window);
    }
    const Row pooled = pool(importance, Pool::kMaximum, rkv.kernel);
    const Row redundancy = rkv_redundancy(keys[h], rkv.similar);
    for (std::size_t j = 0; j < n_scored; ++j) {
      scores[h][j] = rkv.lambda * pooled[j] - (1 - rkv.lambda) * redundancy[j];
    }
  }
  return scores;
}

}  // namespace ebb::originals
