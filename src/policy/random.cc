// A control: any order is as good as this one, but the same seed gives the same.
#include "policy/all.h"

namespace ebb {
namespace {

// Sebastiano Vigna's splitmix64: one well mixed number for each state.
std::uint64_t mix(std::uint64_t state) {
  state += 0x9E3779B97F4A7C15U;
  state = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27U)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31U);
}

class Random final : public Policy {
 public:
  Random(std::uint64_t seed, Scope scope) : seed_(seed), scope_(scope) {}

  [[nodiscard]] std::string_view name() const override { return "random"; }
  [[nodiscard]] Ask asks() const override { return {.scope = scope_}; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    // One order for all, however finely the budget is shared.
    const auto order = static_cast<std::uint64_t>(scope_ == Scope::kSession ? 0 : scope.index);
    std::vector<double> scores;
    for (const ScopeRow& row : scope.rows) {
      const auto block = static_cast<std::uint64_t>(evidence.block(row).block.value());
      const std::uint64_t number = mix(mix(seed_ ^ (order << 32U)) ^ block);
      scores.push_back(static_cast<double>(number >> 11U));
    }
    return scores;
  }

 private:
  std::uint64_t seed_;
  Scope scope_;
};

}  // namespace

std::unique_ptr<Policy> make_random_policy(const ParameterValues& values) {
  return std::make_unique<Random>(static_cast<std::uint64_t>(values["seed"]),
                                  values.whole("heads") == 1 ? Scope::kHead : Scope::kSession);
}

}  // namespace ebb
