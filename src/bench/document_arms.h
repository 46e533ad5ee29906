// Document arms: what the document bench compares: who chooses what leaves, and what comes back of it.
//
//   never evicting        everything hot: the most that can be had
//   POLICY                what leaves is gone for this request
//   POLICY, recall        blocks that fit what the request begins and ends with come back before its last tokens, as ebb serve has it
//   POLICY, SELECTORS     the same, chosen by these alone (policy/selector.h)
//   POLICY, oracle        what tells the answer comes back there, and nothing else; of kinds in which the whole document tells it,
//                         there is none
//   POLICY, breadcrumb    as recall, but nothing is kept of what leaves but its tokens: it is computed again
//   POLICY, discard       as recall, but nothing is kept of what leaves
//
// It knows no session. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "policy/selector.h"
#include "session/session_options.h"

namespace ebb {

// Which blocks come back, of sessions that are not told who chooses.
inline constexpr std::string_view kDefaultSelector = "recall";

enum class ArmRecall : std::uint8_t { kNothing, kSelected, kOracle };

struct DocumentArm {
  // Empty: nothing ever leaves.
  std::string policy;
  ArmRecall recall = ArmRecall::kNothing;
  // As they are named: kDefaultSelector, or as SelectorList has them.
  std::string selector{kDefaultSelector};
  SelectorList selectors = {};
  Remains remains = Remains::kBytes;

  // "streaming, recall"
  [[nodiscard]] std::string name() const;
};

// Every policy in every way; `arms` are "alone", "recall" (once for each selector), "oracle", "breadcrumb", "discard".
// Errors name one that there is not.
Result<std::vector<DocumentArm>> make_document_arms(std::span<const std::string> policies,
                                                    std::span<const std::string> arms,
                                                    std::span<const std::string> selectors);

// How much of a request may be hot: a part of it, 4 for a quarter and 1 for all of it, or so many tokens.
struct HotPart {
  std::int32_t part = 1;
  std::int32_t n_tokens = 0;

  [[nodiscard]] bool is_all() const { return part == 1 && n_tokens == 0; }
  // "1/4", "512"
  [[nodiscard]] std::string name() const;
  friend bool operator==(const HotPart&, const HotPart&) = default;
};

}  // namespace ebb
