// Policy: in which order hot blocks should leave the cache.
//
// A policy is a pure function of the evidence. How many leave, where, and that held ones do not, is choose's part
// (policy/choose.h). Thread rule: immutable; any thread.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "policy/evidence.h"
#include "policy/parameters.h"

namespace ebb {

// A score at which a block never leaves.
inline constexpr double kNeverLeaves = std::numeric_limits<double>::infinity();

// What a policy asks to be measured. Nothing that none asks for is measured.
struct Ask {
  Scope scope = Scope::kSession;
  // Whether the first tokens are to be held for it. Without them attention has nowhere to rest and text falls apart
  // (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks").
  bool sinks = true;
  // BlockEvidence::attention and last_access by attention.
  bool shares = false;
  // BlockEvidence::focus, which takes time for every block.
  bool focus = false;
  // ScopeEvidence::total and n_queries: of every query.
  bool totals = false;
  // ScopeEvidence::last: of the very last query.
  bool last = false;
  // How many queries window_mean and window_max look back; 0: not at all.
  std::int32_t window = 0;

  // ScopeEvidence::key_norm and key_direction; of Scope::kHead only.
  bool keys = false;

  [[nodiscard]] bool attention() const { return shares || totals || last || window > 0; }
};

// How a budget is shared out among scopes.
enum class FrameSharing : std::uint8_t {
  kEven,
  kPyramid,       // lower layers get more, by equal steps (PyramidKV)
  kAcrossHeads,   // heads of a layer get what their scores win from each other (AdaKV)
  kAcrossLayers,  // and so do all heads of all layers
};

struct BudgetList;

struct Shares {
  FrameSharing sharing = FrameSharing::kEven;
  // Across heads and layers: the part of an even share that each has for certain. Pyramid: the highest layer's part of an
  // even share.
  double floor = 0.0;
  // What the user gave instead (policy/budget_list.h); null: as above. Heads still win from each other within a layer.
  const BudgetList* list = nullptr;
};

class Policy {
 public:
  virtual ~Policy() = default;
  // As flags and reports name it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Ask asks() const { return {}; }
  [[nodiscard]] virtual Shares shares() const { return {}; }
  // Whether priorities are part of its scores already; of all others choose makes them count.
  [[nodiscard]] virtual bool weighs_priorities() const { return false; }
  // One finite score, or kNeverLeaves, for each row of the scope; the lowest leaves first, the earlier position where
  // scores are equal.
  [[nodiscard]] virtual std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const = 0;
};

struct PolicyEntry {
  std::string_view name;
  std::string_view summary;
  // Where it comes from.
  std::string_view source;
  std::span<const Parameter> parameters;
  std::unique_ptr<Policy> (*make)(const ParameterValues& values);
};

// All policies, in the order in which help should list them.
[[nodiscard]] std::span<const PolicyEntry> policies();
// From "name" or "name:parameter=value,parameter=value". kNotFound names the policies that there are, kInvalidArgument the
// parameters that this one takes.
Result<std::unique_ptr<Policy>> make_policy(std::string_view spec);

}  // namespace ebb
