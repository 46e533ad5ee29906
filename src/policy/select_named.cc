// The selector of blocks that the caller names.
#include "policy/selector.h"

namespace ebb {
namespace {

// Beside the most that others may have back: who names blocks wants these.
class Identity final : public Selector {
 public:
  [[nodiscard]] std::string_view name() const override { return kIdentity; }
  [[nodiscard]] SelectorAsk asks() const override { return {.names = true}; }
  [[nodiscard]] std::vector<Considered> select(const RecallEvidence& evidence) const override {
    std::vector<Considered> all;
    for (const BlockIndex block : evidence.named) {
      if (block.value() >= std::ssize(evidence.missing)) continue;
      const bool is_cold = evidence.missing[block.index()] > 0.0;
      all.push_back({.block = block, .score = 1.0, .verdict = is_cold ? Verdict::kRecall : Verdict::kKeep});
    }
    return all;
  }
};

}  // namespace

std::unique_ptr<const Selector> make_identity(const ParameterValues&) { return std::make_unique<Identity>(); }

}  // namespace ebb
