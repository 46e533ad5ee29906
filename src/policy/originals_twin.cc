#include "policy/originals_twin.h"

#include <algorithm>
#include <cmath>
#include <compare>

#include "base/check.h"

namespace ebb::originals {
namespace {

// In the order in which victims leave.
struct Candidate {
  double score = 0;
  std::size_t token = 0;
  std::size_t head = 0;
  auto operator<=>(const Candidate&) const = default;
};

}  // namespace

std::vector<Tokens> keep_highest_of_all(const Rows& scores, std::size_t budget_of_all) {
  std::vector<Candidate> candidates;
  std::size_t n_always = 0;
  for (std::size_t h = 0; h < scores.size(); ++h) {
    for (std::size_t j = 0; j < scores[h].size(); ++j) {
      const double score = scores[h][j];
      EBB_CHECK(std::isfinite(score) || score == kAlways, "head {} token {} scores {}", h, j, score);
      if (score == kAlways) ++n_always;
      candidates.push_back({.score = score, .token = j, .head = h});
    }
  }
  EBB_CHECK(n_always <= budget_of_all, "{} tokens always stay, in a budget of {}", n_always, budget_of_all);
  std::sort(candidates.begin(), candidates.end());
  const std::size_t n_victims = candidates.size() - std::min(budget_of_all, candidates.size());
  std::vector<Tokens> kept(scores.size());
  for (std::size_t i = n_victims; i < candidates.size(); ++i) kept[candidates[i].head].push_back(candidates[i].token);
  for (Tokens& tokens : kept) std::sort(tokens.begin(), tokens.end());
  return kept;
}

Tokens keep_highest(const Row& scores, std::size_t budget) { return keep_highest_of_all({scores}, budget).front(); }

std::vector<Tokens> keep_highest(const Rows& scores, std::size_t budget_per_head) {
  return keep_highest(scores, Counts(scores.size(), budget_per_head));
}

std::vector<Tokens> keep_highest(const Rows& scores, const Counts& budgets) {
  EBB_CHECK(scores.size() == budgets.size(), "{} budgets for {} heads", budgets.size(), scores.size());
  std::vector<Tokens> kept;
  for (std::size_t h = 0; h < scores.size(); ++h) kept.push_back(keep_highest(scores[h], budgets[h]));
  return kept;
}

Rows protect(Rows scores, std::size_t n_first, std::size_t n_last) {
  for (Row& row : scores) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (j < n_first || j + n_last >= row.size()) row[j] = kAlways;
    }
  }
  return scores;
}

Row recency_scores(std::size_t n_tokens) {
  Row scores(n_tokens);
  for (std::size_t j = 0; j < n_tokens; ++j) scores[j] = static_cast<double>(j);
  return scores;
}

Row streaming_scores(std::size_t n_tokens, std::size_t n_sinks) {
  return protect({recency_scores(n_tokens)}, n_sinks, 0).front();
}

Tokens streaming_kept(std::size_t n_tokens, std::size_t n_new, const StreamingWindow& window) {
  EBB_CHECK(n_new <= window.n_recent, "{} tokens at once, with {} recent ones", n_new, window.n_recent);
  const std::size_t budget = window.n_sinks + window.n_recent - n_new;
  return keep_highest(streaming_scores(n_tokens, window.n_sinks), budget);
}

Row random_scores(std::size_t n_tokens, std::uint64_t seed) {
  const auto mix = [](std::uint64_t x) {  // the finaliser of SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  };
  Row scores(n_tokens);
  for (std::size_t j = 0; j < n_tokens; ++j) {
    const std::uint64_t bits = mix(mix(seed + 0x9e3779b97f4a7c15) + (j + 1) * 0x9e3779b97f4a7c15);
    scores[j] = std::ldexp(static_cast<double>(bits >> 11), -53);
  }
  return scores;
}

Row pool(const Row& row, Pool kind, std::size_t kernel) {
  EBB_CHECK(kernel % 2 == 1, "a kernel of {}", kernel);
  const std::size_t reach = kernel / 2;
  Row pooled(row.size());
  for (std::size_t j = 0; j < row.size(); ++j) {
    double sum = 0;
    double largest = row[j];
    for (std::size_t i = j - std::min(j, reach); i <= j + reach && i < row.size(); ++i) {
      sum += row[i];
      largest = std::max(largest, row[i]);
    }
    pooled[j] = kind == Pool::kAverage ? sum / static_cast<double>(kernel) : largest;
  }
  return pooled;
}

Row softmax(const Row& logits) {
  if (logits.empty()) return {};
  const double largest = *std::max_element(logits.begin(), logits.end());
  Row weights;
  double sum = 0;
  for (const double logit : logits) {
    weights.push_back(std::exp(logit - largest));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double dot(const Row& a, const Row& b) {
  EBB_CHECK(a.size() == b.size(), "{} numbers times {}", a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double norm(const Row& a) { return std::sqrt(dot(a, a)); }

Rows mean_over_groups(const Rows& by_query_head, std::size_t n_kv_heads) {
  const std::size_t n_group = by_query_head.size() / n_kv_heads;
  Rows means(n_kv_heads, Row(by_query_head.front().size(), 0.0));
  for (std::size_t h = 0; h < by_query_head.size(); ++h) {
    for (std::size_t j = 0; j < by_query_head[h].size(); ++j) {
      means[h / n_group][j] += by_query_head[h][j] / static_cast<double>(n_group);
    }
  }
  return means;
}

void check_heads(const Heads& heads, std::size_t n_kv_heads) {
  EBB_CHECK(n_kv_heads > 0 && !heads.empty() && heads.size() % n_kv_heads == 0, "{} heads, {} KV heads", heads.size(),
            n_kv_heads);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    EBB_CHECK(!heads[h].empty() && heads[h].size() == heads[0].size(), "head {} has {} rows", h, heads[h].size());
    for (const Row& row : heads[h]) {
      EBB_CHECK(row.size() == heads[0][0].size(), "a row of head {} has {} numbers", h, row.size());
      for (const double x : row) EBB_CHECK(std::isfinite(x), "head {} has a {}", h, x);
    }
  }
}

}  // namespace ebb::originals
