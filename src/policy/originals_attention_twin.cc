#include "policy/originals_attention_twin.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ebb::originals {
namespace {

void check_weights(const Heads& weights, std::size_t n_kv_heads) {
  check_heads(weights, n_kv_heads);
  for (const Rows& head : weights) {
    for (const Row& row : head) {
      for (const double weight : row) EBB_CHECK(weight >= 0, "a weight of {}", weight);
    }
  }
}

// [n_heads][n_tokens], summed over all queries.
Rows sum_over_queries(const Heads& weights) {
  Rows sums;
  for (const Rows& head : weights) {
    Row sum(head.front().size(), 0.0);
    for (const Row& row : head) {
      for (std::size_t j = 0; j < row.size(); ++j) sum[j] += row[j];
    }
    sums.push_back(sum);
  }
  return sums;
}

// Of one query over one head's values.
Row attend(const Row& weights, const Rows& values) {
  Row out(values.front().size(), 0.0);
  for (std::size_t j = 0; j < weights.size(); ++j) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weights[j] * values[j][i];
  }
  return out;
}

double norm_of_product(const Row& v, const Rows& matrix) {
  EBB_CHECK(matrix.size() == v.size(), "{} numbers times {} rows", v.size(), matrix.size());
  return norm(attend(v, matrix));
}

void check_values(const Heads& weights, const Heads& values) {
  check_heads(values, values.size());
  check_weights(weights, values.size());
  EBB_CHECK(values[0].size() == weights[0][0].size(), "{} values of {} tokens", values[0].size(), weights[0][0].size());
}

}  // namespace

Row tova_scores(const Heads& weights) {
  check_weights(weights, 1);
  Rows last;
  for (const Rows& head : weights) last.push_back(head.back());
  return mean_over_groups(last, 1).front();
}

Rows h2o_scores(const Heads& weights, std::size_t n_kv_heads, std::size_t n_recent) {
  check_weights(weights, n_kv_heads);
  return protect(mean_over_groups(sum_over_queries(weights), n_kv_heads), 0, n_recent);
}

Rows observed_attention_scores(const Heads& weights, std::size_t n_kv_heads) {
  Rows scores = h2o_scores(weights, n_kv_heads, 0);
  const std::size_t n_tokens = scores[0].size();
  EBB_CHECK(weights[0].size() == n_tokens, "{} queries of {} tokens", weights[0].size(), n_tokens);
  for (Row& row : scores) {
    for (std::size_t j = 0; j < n_tokens; ++j) row[j] /= static_cast<double>(n_tokens - j);
  }
  return scores;
}

Rows snapkv_scores(const Heads& weights, std::size_t n_kv_heads, const SnapKv& snapkv) {
  check_weights(weights, n_kv_heads);
  const std::size_t n_tokens = weights[0][0].size();
  if (n_tokens <= snapkv.window) return Rows(n_kv_heads, Row(n_tokens, kAlways));
  const std::size_t n_queries = weights[0].size();
  EBB_CHECK(snapkv.window > 0 && snapkv.window <= n_queries, "a window of {}, {} queries", snapkv.window, n_queries);
  Rows pooled;
  for (const Rows& head : weights) {
    Row mean(n_tokens - snapkv.window, 0.0);
    for (std::size_t q = n_queries - snapkv.window; q < n_queries; ++q) {
      for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += head[q][j] / static_cast<double>(snapkv.window);
    }
    pooled.push_back(pool(mean, snapkv.pool, snapkv.kernel));
  }
  Rows scores = mean_over_groups(pooled, n_kv_heads);
  for (Row& row : scores) row.resize(n_tokens, kAlways);
  return scores;
}

Rows defensivekv_scores(const Heads& weights, const Heads& values, const Heads& output, std::size_t n_window) {
  check_values(weights, values);
  check_heads(output, values.size());
  EBB_CHECK(output.size() == weights.size(), "{} output matrices of {} heads", output.size(), weights.size());
  const std::size_t n_kv_heads = values.size();
  const std::size_t n_group = weights.size() / n_kv_heads;
  const std::size_t n_tokens = weights[0][0].size();
  const std::size_t n_scored = n_tokens - std::min(n_tokens, n_window);
  Rows scores(n_kv_heads, Row(n_tokens, 0.0));
  for (std::size_t q = 0; q < weights[0].size(); ++q) {
    Rows of_query;
    for (const Rows& head : weights) of_query.push_back(head[q]);
    const Rows means = mean_over_groups(of_query, n_kv_heads);
    for (std::size_t h = 0; h < n_kv_heads; ++h) {
      for (std::size_t j = 0; j < n_tokens; ++j) scores[h][j] = std::max(scores[h][j], means[h][j]);
    }
  }
  for (std::size_t h = 0; h < n_kv_heads; ++h) {
    double mean = 0;
    for (std::size_t j = 0; j < n_scored; ++j) mean += scores[h][j] / static_cast<double>(n_scored);
    for (std::size_t j = 0; j < n_scored; ++j) {
      double norm_of_value = 0;
      for (std::size_t g = 0; g < n_group; ++g) {
        norm_of_value += norm_of_product(values[h][j], output[h * n_group + g]) / static_cast<double>(n_group);
      }
      scores[h][j] = std::max(scores[h][j], mean) * norm_of_value;
    }
  }
  return protect(scores, 0, n_window);
}

Rows dropkv_scores(const Heads& weights, const Heads& values) {
  check_values(weights, values);
  const std::size_t n_group = weights.size() / values.size();
  const std::size_t n_queries = weights[0].size();
  const std::size_t n_tokens = weights[0][0].size();
  Rows costs(weights.size(), Row(n_tokens, 0.0));
  for (std::size_t h = 0; h < weights.size(); ++h) {
    const Rows& head_values = values[h / n_group];
    for (const Row& row : weights[h]) {
      const Row out = attend(row, head_values);
      for (std::size_t j = 0; j < n_tokens; ++j) {
        Row difference = out;
        for (std::size_t i = 0; i < out.size(); ++i) difference[i] -= head_values[j][i];
        const double m = row[j];
        const double cost = m < 1 ? m / (1 - m) * (m / (1 - m)) * dot(difference, difference) : kAlways;
        costs[h][j] += cost / static_cast<double>(n_queries);
      }
    }
  }
  return mean_over_groups(costs, values.size());
}

Rows kvzip_scores(const Heads& replay_weights, std::size_t n_kv_heads, std::size_t n_sinks) {
  check_weights(replay_weights, n_kv_heads);
  const std::size_t n_group = replay_weights.size() / n_kv_heads;
  const std::size_t n_tokens = replay_weights[0][0].size();
  Rows scores(n_kv_heads, Row(n_tokens, 0.0));
  for (std::size_t h = 0; h < replay_weights.size(); ++h) {
    for (const Row& row : replay_weights[h]) {
      Row& largest = scores[h / n_group];
      for (std::size_t j = 0; j < n_tokens; ++j) largest[j] = std::max(largest[j], row[j]);
    }
  }
  for (Row& row : scores) {
    for (std::size_t j = 0; j < std::min(n_sinks, n_tokens); ++j) row[j] = 1;
  }
  return scores;
}

std::vector<Tokens> kvzip_kept(const Rows& scores_of_all_layers, double removed) {
  EBB_CHECK(removed >= 0 && removed <= 1, "a fraction of {}", removed);
  std::size_t n = 0;
  for (const Row& row : scores_of_all_layers) n += row.size();
  const auto n_removed = static_cast<std::size_t>(std::floor(removed * static_cast<double>(n)));
  return keep_highest_of_all(scores_of_all_layers, n - n_removed);
}

}  // namespace ebb::originals
