// OfferedPolicies: which policies whoever sends a request may choose, as whoever runs the server says.
//
// It does not know requests. Thread rule: a value; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace ebb {

class OfferedPolicies {
 public:
  // The longest policy with its parameters that is looked at; all parameters of any fit several times.
  static constexpr std::size_t kMostBytes = 512;

  // Those that are open to strangers (PolicyEntry::is_open), without windows that are noted by slice: such notes may take more
  // memory than K and V; and without what compares blocks with each other (Policy::compares_blocks()), which takes time.
  OfferedPolicies();
  // Names with commas, or one word: "open", as above; "all"; "own", none beside the server's own. kInvalidArgument says
  // which names there are.
  static Result<OfferedPolicies> parse(std::string_view list);

  // As make_policy(), of those that are offered. kInvalidArgument says which those are, or the policy's parameters.
  Result<std::shared_ptr<const Policy>> make(std::string_view spec) const;
  [[nodiscard]] bool has(std::string_view name) const;
  // What the server goes by itself (Policy::spec()) may always be named.
  void set_own(std::string spec) { own_ = std::move(spec); }

 private:
  std::vector<std::string_view> names_;  // of the registry, in its order
  bool with_costly_ = false;
  std::string own_;
};

}  // namespace ebb
