// Policy: in which order hot blocks should leave the cache.
//
// A policy is a pure function of the evidence. How many leave, and that held ones do not, is choose's part
// (policy/choose.h). Thread rule: immutable; any thread.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "policy/evidence.h"

namespace ebb {

// A score at which a block never leaves.
inline constexpr double kNeverLeaves = std::numeric_limits<double>::infinity();

class Policy {
 public:
  virtual ~Policy() = default;
  // As flags and reports name it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // One finite score, or kNeverLeaves, for each of evidence.blocks; the lowest leaves first, the earlier position where
  // scores are equal.
  [[nodiscard]] virtual std::vector<double> score(const Evidence& evidence) const = 0;
  // Whether it looks at last_access or attention: measuring attention mass costs time, so it is done only then.
  [[nodiscard]] virtual bool wants_attention() const { return false; }
  // Whether it looks at focus, which takes time for every block.
  [[nodiscard]] virtual bool wants_focus() const { return false; }
  // Whether it chooses for each (layer, KV head) by itself: evidence then has a row for each in which a block is hot.
  [[nodiscard]] virtual bool wants_heads() const { return false; }
  // Whether the first tokens are to be held for it. Without them attention has nowhere to rest and text falls apart
  // (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks").
  [[nodiscard]] virtual bool wants_sinks() const { return true; }
};

// Weights of the composite score; those of parts without evidence drop out, the rest are scaled to sum 1.
struct EvokeWeights {
  double recency = 0.4;
  double focus = 0.6;
  double attention = 0.0;
  double recovery = 0.0;
  // The decay of recency, per token between the block and the end. Larger: only the newest blocks differ.
  double recency_decay = 0.01;
};

// Nothing leaves: a full cache ends the generation. The baseline for quality and bits.
[[nodiscard]] std::unique_ptr<Policy> make_none_policy();
// Oldest position first, the first tokens included: a sliding window. A control; prefer streaming.
[[nodiscard]] std::unique_ptr<Policy> make_recency_policy();
// Oldest position first after the sinks (StreamingLLM, Xiao et al. 2023).
[[nodiscard]] std::unique_ptr<Policy> make_streaming_policy();
// Least recently looked at first: what tinfer's "scored" mode set out to do, by attention instead of by writes.
[[nodiscard]] std::unique_ptr<Policy> make_scored_policy();
// Composite of recency, focus, attention and recovery with floors by source (EVOKE's scorer).
[[nodiscard]] std::unique_ptr<Policy> make_evoke_policy(const EvokeWeights& weights = {});

struct PolicyEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Policy> (*make)();
};

// All policies, in the order in which help should list them.
[[nodiscard]] std::span<const PolicyEntry> policies();
// kNotFound names those that there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name);

}  // namespace ebb
