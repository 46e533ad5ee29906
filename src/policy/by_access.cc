// Least recently accessed first, where attention is what accesses a block. tinfer's mode of this name stamps cells when they
// are written only, which makes it oldest first; its recent floor, which grows with the session, is `recent`.
#include "policy/all.h"

namespace ebb {
namespace {

// tinfer's floor has at least so many tokens. At most as many as the second, since one that grows for ever with positions
// leaves nothing to evict in the end (there: when a session is four times as long as the cache).
constexpr std::int32_t kLeastRecent = 32;
constexpr std::int32_t kMostRecent = 256;

class ByAccess final : public Policy {
 public:
  explicit ByAccess(double recent) : recent_(recent) {}

  [[nodiscard]] std::string_view name() const override { return "scored"; }
  [[nodiscard]] Ask asks() const override { return {.shares = true}; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> scores;
    std::int64_t latest = 0;
    for (const ScopeRow& row : scope.rows) {
      scores.push_back(static_cast<double>(evidence.block(row).last_access));
      latest = std::max(latest, evidence.block(row).last_access);
    }
    if (recent_ == 0.0) return scores;
    const double share = recent_ * evidence.end.value();
    const Position floor =
        evidence.end - static_cast<std::int32_t>(std::clamp(share, double{kLeastRecent}, double{kMostRecent}));
    for (std::size_t i = 0; i < scores.size(); ++i) {
      // The newest leaves last.
      const Position end = evidence.block(scope.rows[i]).span.end;
      if (end > floor) scores[i] = static_cast<double>(latest + 1 + end.value());
    }
    return scores;
  }

 private:
  double recent_;
};

}  // namespace

std::unique_ptr<Policy> make_scored_policy(const ParameterValues& values) {
  return std::make_unique<ByAccess>(values["recent"]);
}

}  // namespace ebb
