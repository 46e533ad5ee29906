// Expected Attention (Devoto et al. 2025, arXiv 2510.00636): what the queries to come are expected to look at least leaves, weighed by
// the length of its values. Queries are taken for normally distributed, with the mean and covariance that those of the session
// had before they were rotated, turned to the next `future` positions. A token's score in a head is
//
//   (a + epsilon) |v|      a: the softmax of its expected logits, mean over the query heads of a KV head
//
// and a block's the mean over its tokens. The first tokens are held, as the original keeps its sinks, and are neither counted nor
// scored. The original has the statistics of one prompt and prunes once, here they are of all queries that the session's steps
// computed, replies too. What was taken over from other sessions, and not computed, has none; before the first is counted all
// tokens are expected to be looked at alike, and the length of values decides. The positions to come begin at the real next one,
// where the original's decoding takes the length of a buffer.
//
// Price: hot tokens * query heads * (head size)^2 / 2 products for each choice, and a matrix for each query head of each session
// (model/expected_attention.h, model/query_moments.h). Both are beyond what a budget of K and V bounds, so that a stranger's request
// may choose it only where the server's operator lets it.
#include "policy/all.h"

namespace ebb {
namespace {

class ExpectedAttentionPolicy final : public Policy {
 public:
  explicit ExpectedAttentionPolicy(const ParameterValues& values)
      : n_future_(values.whole("future")),
        with_covariance_(values.whole("covariance") == 1),
        with_values_(values.whole("values") == 1),
        epsilon_(values["epsilon"]) {}

  [[nodiscard]] std::string_view name() const override { return "expected_attention"; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kHead, .expected = n_future_, .expected_spread = with_covariance_};
  }

  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    std::vector<double> scores = with_values_ ? scope.expected_value : scope.expected;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      scores[i] += epsilon_ * (with_values_ ? scope.value_length[i] : 1.0);
    }
    return scores;
  }

 private:
  std::int32_t n_future_;
  bool with_covariance_;
  bool with_values_;
  double epsilon_;
};

}  // namespace

std::unique_ptr<Policy> make_expected_attention_policy(const ParameterValues& values) {
  return std::make_unique<ExpectedAttentionPolicy>(values);
}

}  // namespace ebb
