// Policies that look at positions only: none, a sliding window, and StreamingLLM (Xiao et al. 2023, arXiv 2309.17453), where
// the first tokens and the most recent ones stay. Positions keep their place here, which leaves holes; the original numbers
// the survivors anew instead.
#include "policy/all.h"

namespace ebb {
namespace {

class Oldest final : public Policy {
 public:
  Oldest(std::string_view name, bool sinks) : name_(name), sinks_(sinks) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Ask asks() const override { return {.sinks = sinks_}; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> scores;
    for (const ScopeRow& row : scope.rows) scores.push_back(evidence.block(row).span.end.value());
    return scores;
  }

 private:
  std::string_view name_;
  bool sinks_;
};

class None final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }
  [[nodiscard]] bool lets_go() const override { return false; }

  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    return std::vector<double>(scope.rows.size(), kNeverLeaves);
  }
};

}  // namespace

std::unique_ptr<Policy> make_none_policy(const ParameterValues&) { return std::make_unique<None>(); }

std::unique_ptr<Policy> make_recency_policy(const ParameterValues&) {
  return std::make_unique<Oldest>("recency", false);
}

std::unique_ptr<Policy> make_streaming_policy(const ParameterValues&) {
  return std::make_unique<Oldest>("streaming", true);
}

}  // namespace ebb
