#include "policy/policy.h"

namespace ebb {
namespace {

class None final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence) const override {
    return std::vector<double>(evidence.blocks.size(), kNeverLeaves);
  }
};

}  // namespace

std::unique_ptr<Policy> make_none_policy() { return std::make_unique<None>(); }

}  // namespace ebb
