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
//   POLICY, recompute     what the oracle brings back, computed again from its tokens
//   POLICY, recall, disk  as recall, where RAM holds eight of the blocks that left and a disk the others
//   ..., tail             what comes back is moved to the end; or compacted: all that is hot closes up (session/keeper.h)
//
// And two lists that are asked for by one name: baselines(), arms as their papers have them, and ablation(), ours with one thing
// changed and all of EVOKE's factors in every combination.
//
// It knows no session. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "policy/selector.h"
#include "session/session_options.h"

namespace ebb {

// Which blocks come back, of sessions that are not told who chooses.
inline constexpr std::string_view kDefaultSelector = "recall";

enum class ArmRecall : std::uint8_t { kNothing, kSelected, kOracle };

// Of an ablation: what was varied, and how: {"selectors", "lexical"}.
using Factor = std::pair<std::string, std::string>;

struct DocumentArm {
  // As it is called, where its parts do not say it.
  std::string title = {};
  // Empty: nothing ever leaves.
  std::string policy = {};
  ArmRecall recall = ArmRecall::kNothing;
  // As they are named: kDefaultSelector, or as SelectorList has them.
  std::string selector{kDefaultSelector};
  SelectorList selectors = {};
  Remains remains = Remains::kBytes;
  RecallPlace place = RecallPlace::kOriginal;
  // Of each block that comes back, first tokens that are computed again where it lies.
  std::int32_t n_renewed = 0;
  // Of what left, blocks that RAM holds, where a disk holds the others; 0: RAM holds all.
  std::int32_t n_ram_blocks = 0;
  // Blocks to bring back at most, and tokens of a block; 0: as the bench says.
  std::int32_t n_recalled = 0;
  std::int32_t block_size = 0;
  Watermarks watermarks = {};
  // Of the budget, the newest tokens that are protected; 0: as sessions have it.
  double recent_share = 0.0;
  // What comes back comes behind the question, which does not see it; only the reply does.
  bool is_late = false;
  // None, but of an ablation's factorial all of them, always in the same order.
  std::vector<Factor> factors = {};

  // "streaming, recall"
  [[nodiscard]] std::string name() const;
};

// "original", "compacted", "tail", as ebb run --kv-recall-place has them; and back.
[[nodiscard]] std::string_view name_of(RecallPlace place);
[[nodiscard]] std::optional<RecallPlace> find_recall_place(std::string_view name);

// What arms are made of.
struct DocumentArmNames {
  std::vector<std::string> policies;
  // "alone", "recall" (once for each selector, place and renewed), "oracle" (once for each place and renewed), "breadcrumb", "discard", "recompute",
  // "disk".
  std::vector<std::string> arms;
  std::vector<std::string> selectors = {std::string(kDefaultSelector)};
  std::vector<RecallPlace> places = {RecallPlace::kOriginal};
  std::vector<std::int32_t> renewed = {0};
};
// Every policy in every way. Errors name one that there is not.
Result<std::vector<DocumentArm>> make_document_arms(const DocumentArmNames& names);

// Arms, and the name of the one that the others are held against.
struct DocumentArmList {
  std::vector<DocumentArm> arms;
  std::string against;
};
// What is published, each as near to its paper as blocks allow (docs/benchmarks says what differs), ours with each selector, and an
// oracle; held against ours.
// Where there is an embedding model, EVOKE's compare what is said by it, and ours have an arm for it.
[[nodiscard]] DocumentArmList baselines(bool has_meanings = false);
// Ours with one of block size, most blocks, selectors, gate, moment and policy changed; and every combination of selectors, moment,
// gate and policies that EVOKE's ablation has. Each is called by what it changes.
[[nodiscard]] DocumentArmList ablation();

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
