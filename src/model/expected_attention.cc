#include "model/expected_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "model/expected_kernels.h"

namespace ebb {
namespace {

// attention += softmax(logits) / n_group
void add_softmax(const std::vector<float>& logits, std::size_t n_group, std::vector<double>& attention) {
  if (logits.empty()) return;
  const auto most = static_cast<double>(*std::ranges::max_element(logits));
  std::vector<double> weights;
  weights.reserve(logits.size());
  double sum = 0.0;
  for (const float logit : logits) sum += weights.emplace_back(std::exp(static_cast<double>(logit) - most));
  for (std::size_t t = 0; t < logits.size(); ++t) attention[t] += weights[t] / sum / static_cast<double>(n_group);
}

float length_of_row(std::span<const float> row) {
  double sum = 0.0;
  for (const float x : row) sum += double{x} * double{x};
  return static_cast<float>(std::sqrt(sum));
}

}  // namespace

ExpectedAttention::ExpectedAttention(std::vector<QueryForecast> group) : group_(std::move(group)) {
  EBB_CHECK(!group_.empty(), "a KV head without query heads");
  n_dims_ = group_.front().mean.size();
  for (const QueryForecast& forecast : group_) {
    EBB_CHECK(forecast.mean.size() == n_dims_ &&
                  (forecast.spread.empty() || forecast.spread.size() == QueryImage::n_products(n_dims_)),
              "a forecast of {} and {} numbers for {} dimensions", forecast.mean.size(), forecast.spread.size(),
              n_dims_);
  }
  logits_.resize(group_.size());
  lanes_.resize(n_dims_ * kExpectedLanes);
}

void ExpectedAttention::add(const Tokens& block) {
  EBB_CHECK(block.keys.size() == block.n_tokens * n_dims_, "{} numbers of {} keys of {}", block.keys.size(),
            block.n_tokens, n_dims_);
  const std::size_t n_value_dims = block.n_tokens == 0 ? 0 : block.values.size() / block.n_tokens;
  for (std::size_t t = 0; t < block.n_tokens; ++t) {
    lengths_.push_back(length_of_row(block.values.subspan(t * n_value_dims, n_value_dims)));
    for (std::size_t d = 0; d < n_dims_; ++d) lanes_[d * kExpectedLanes + n_lanes_] = block.keys[t * n_dims_ + d];
    if (++n_lanes_ == kExpectedLanes) compute_lanes();
  }
  ends_.push_back(lengths_.size());
}

// Lanes that are not there hold what was there before, and give nothing.
void ExpectedAttention::compute_lanes() {
  std::array<float, kExpectedLanes> logits;
  for (std::size_t g = 0; g < group_.size(); ++g) {
    const QueryForecast& forecast = group_[g];
    expected_kernels().find_logits(forecast.mean.data(), forecast.spread.empty() ? nullptr : forecast.spread.data(),
                                   lanes_.data(), n_dims_, logits.data());
    for (std::size_t j = 0; j < n_lanes_; ++j) logits_[g].push_back(std::isfinite(logits[j]) ? logits[j] : 0.0F);
  }
  n_lanes_ = 0;
}

std::vector<ExpectedBlock> ExpectedAttention::finish() {
  if (n_lanes_ > 0) compute_lanes();
  std::vector<double> attention(lengths_.size(), 0.0);
  for (const std::vector<float>& logits : logits_) add_softmax(logits, group_.size(), attention);
  std::vector<ExpectedBlock> blocks;
  std::size_t token = 0;
  for (const std::size_t end : ends_) {
    ExpectedBlock& block = blocks.emplace_back();
    const auto n_tokens = static_cast<double>(end - token);
    for (; token < end; ++token) {
      const auto length = static_cast<double>(lengths_[token]);
      block.attention += attention[token] / n_tokens;
      block.weighted_value += attention[token] * length / n_tokens;
      block.value_length += length / n_tokens;
    }
  }
  return blocks;
}

}  // namespace ebb
