// Policy: in which order hot blocks should leave the cache.
//
// A policy is a pure function of the evidence. How many leave, where, and that held ones do not, is choose's part
// (policy/choose.h). Thread rule: immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
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
  // Of a prompt, so many of its last queries count into the totals and none before them; 0: all.
  std::int32_t prompt_window = 0;
  // Totals of Scope::kLayer only: what a step's queries gave is added up over a layer's heads, and each token has the most that it or
  // one of the next got, so many together with it, before it counts; 0: each what it got. Of rows or slices of
  // several tokens as many whole ones.
  std::int32_t pool_ahead = 0;
  // ScopeEvidence::last: of the very last query.
  bool last = false;
  // How many queries window_mean and window_max look back; 0: not at all.
  std::int32_t window = 0;
  // ScopeEvidence::reread: every prompt is computed twice for it (session/reread.h).
  bool reread = false;
  // Totals, window and last by slice too, ScopeEvidence::slices: of so many tokens each; 0, or a whole block: not at all.
  // It divides the grain, else check_slice() refuses it.
  std::int32_t slice = 0;

  // Of the keys and values of full blocks, as their frames hold them. Each frame is read once for all of these, when it has become
  // hot, and what was read leaves with it (model/frame_digest.h has what it costs).
  // ScopeEvidence::key_norm and key_direction.
  bool keys = false;
  // The others of Scope::kHead only: ScopeEvidence::keys and values.
  bool ranges = false;
  // ScopeEvidence::values.mean.
  bool value_means = false;
  // ScopeEvidence::output_length (model/output_lengths.h has what it costs).
  bool output_lengths = false;

  // Over so many positions to come, ScopeEvidence::expected, expected_value and value_length; 0: not at all. Of Scope::kHead only.
  // The queries of every step are noted for it (model/query_moments.h), and what they are expected to look at is computed anew for
  // each choice (model/expected_attention.h has what it costs).
  std::int32_t expected = 0;
  // With the covariance of queries, and not their mean alone.
  bool expected_spread = false;

  // Of a block of `grain` tokens; 0: slices are not told apart.
  [[nodiscard]] std::int32_t n_slices(std::int32_t grain) const {
    return slice > 0 && slice < grain && grain % slice == 0 ? grain / slice : 0;
  }
  // Whether blocks of `grain` tokens are whole slices, or slices are no finer than they.
  [[nodiscard]] Status check_slice(std::int32_t grain) const;
  [[nodiscard]] bool frames() const { return keys || ranges || value_means || output_lengths; }
  [[nodiscard]] bool attention() const { return shares || totals || last || window > 0 || reread; }

  friend bool operator==(const Ask&, const Ask&) = default;
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
  // What make_policy() makes another like it from: the name, and those parameters that are not at their defaults.
  [[nodiscard]] virtual std::string spec() const { return std::string(name()) + parameters_; }
  [[nodiscard]] virtual Ask asks() const { return {}; }
  [[nodiscard]] virtual Shares shares() const { return {}; }
  // Whether it ever lets anything leave; else it gives all kNeverLeaves.
  [[nodiscard]] virtual bool lets_go() const { return true; }
  // Whether priorities are part of its scores already; of all others choose makes them count.
  [[nodiscard]] virtual bool weighs_priorities() const { return false; }
  // Whether its parameters make sense where blocks have `grain` tokens.
  [[nodiscard]] virtual Status check_grain(std::int32_t /*grain*/) const { return {}; }
  // One finite score, or kNeverLeaves, for each row of the scope; the lowest leaves first, the earlier position where
  // scores are equal.
  [[nodiscard]] virtual std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const = 0;

  // Whether a choice compares blocks with each other, which takes time with the square of how many there are. Strangers' requests
  // choose such a one only where the server's operator names it.
  [[nodiscard]] virtual bool compares_blocks() const { return false; }

  // Rescue: some that would leave stay, since they stand for others, and as many leave in their stead. The most rows of a
  // scope that are rescued from one choice,
  [[nodiscard]] virtual std::int32_t n_rescued(std::int32_t /*grain*/) const { return 0; }
  // and which: of those rows that would leave if so many more had to, n_rescued() at most.
  [[nodiscard]] virtual std::vector<std::size_t> rescue(const Evidence& /*evidence*/, const ScopeEvidence& /*scope*/,
                                                        std::span<const std::size_t> /*leaving*/) const {
    return {};
  }

 private:
  friend Result<std::unique_ptr<Policy>> make_policy(std::string_view spec);
  std::string parameters_;  // behind the name, with the colon
};

struct PolicyEntry {
  std::string_view name;
  std::string_view summary;
  // Where it comes from.
  std::string_view source;
  std::span<const Parameter> parameters;
  std::unique_ptr<Policy> (*make)(const ParameterValues& values);
  // Whether a stranger's request may choose it unless the server's operator says otherwise: a choice takes time in
  // proportion to what is hot, and whatever is not pinned leaves when the session's share of the budget shrinks.
  bool is_open = true;
};

// What chooses unless somebody says otherwise: docs/decisions/0018-layer-defensivekv-is-the-default.md.
inline constexpr std::string_view kDefaultPolicy = "layer_defensivekv";

// All policies, in the order in which help should list them.
[[nodiscard]] std::span<const PolicyEntry> policies();
// What tinfer's modes 1 and 2 are called here; anything else as it is.
[[nodiscard]] std::string_view spelled_out(std::string_view spec);
// From "name" or "name:parameter=value,parameter=value", or a number of spelled_out(). kNotFound names the policies that there
// are, kInvalidArgument the parameters that this one takes.
Result<std::unique_ptr<Policy>> make_policy(std::string_view spec);

}  // namespace ebb
