// SessionOptions: how a session keeps its budget and its prompts, and SessionDeps: what it stands on.
//
// Thread rule: values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cache/frame_memory.h"
#include "cache/frame_pool.h"
#include "cache/hot_blocks.h"
#include "model/key_scorer.h"
#include "model/output_lengths.h"
#include "model/query_forecast.h"
#include "model/sequence_state.h"
#include "policy/budget_list.h"
#include "policy/choose.h"
#include "policy/policy.h"
#include "policy/sparse_prompt.h"
#include "session/block_starts.h"
#include "session/finder.h"
#include "session/keeper.h"
#include "session/meanings.h"
#include "text/vocabulary.h"

namespace ebb {

// What a session stands on; all must outlive it.
struct SessionDeps {
  FramePool& pool;
  FrameMemory& memory;
  const Vocabulary& vocabulary;
  // Of sessions that are given no other.
  std::shared_ptr<const Policy> policy;
  // Null: no bytes are kept of what is evicted.
  ColdStore* store = nullptr;
  // Null: blocks cannot be moved to other anchors.
  const BlockMover* mover = nullptr;
  // What the model's output matrices make of values; null: no policy of a session asks for that.
  const OutputLengths* output_lengths = nullptr;
  // What is to be expected of the model's queries; null: no policy of a session asks for that.
  const Forecaster* forecaster = nullptr;
  // Scores keys that left, by digests in this room; either null: recall goes by words and names alone.
  const KeyScorer* scorer = nullptr;
  ByteRoom* digest_room = nullptr;
  // What texts mean, by an embedding model; null: nothing is found by that.
  MeaningSource* meanings = nullptr;
  // Open frames, of a layout that seals; null of any other.
  FramePool* open_pool = nullptr;
  // What sessions of the pool have hot in common; null: they share no frames.
  HotBlocks* hot = nullptr;
  // What they computed, by its begin, where they share frames; null: only whole blocks of others are taken.
  BlockStarts* starts = nullptr;
  // What this very sequence carries on beside K and V, and nobody else's; null: nothing, as all models of today.
  SequenceState* state = nullptr;
  BlockShape shape;
  Hash128 model;
  // Positions that the model was trained for.
  std::int32_t n_ctx_train = 0;
  // Whether attention tells of a step's queries only what they give together: the largest mass is then of one query.
  bool gives_sums_only = false;
  // Called on another thread when records that were read behind are there, or meanings that a look waits for; null: nobody is told.
  std::function<void()> when_fetched = nullptr;
};

enum class Removal : std::uint8_t {
  kSparse,  // survivors stay where they are: no work
  // Survivors close up, turned once per eviction, as shifting caches do: by head, where blocks leave by head. What is recalled
  // into some heads of a block that is hot in others comes between them until the next eviction. For comparison.
  kCompact,
};

// The largest block there is.
inline constexpr std::int32_t kMostRenewed = 1024;

struct SessionOptions {
  // The most tokens that may be hot, rounded down to whole blocks; at most the pool.
  std::int32_t budget_tokens = 0;
  // The same while a prompt is computed; no more than budget_tokens: as those.
  std::int32_t prompt_budget_tokens = 0;
  // How layers or heads share what is in force; null: as the policy says.
  std::shared_ptr<const BudgetList> budget_list;
  Watermarks watermarks;
  // Chooses what leaves; null: the engine's.
  std::shared_ptr<const Policy> policy;
  // The first tokens, protected where the policy wants sinks.
  std::int32_t sink_tokens = 4;
  // The last tokens, protected. Less: models lose the thread of the sentence.
  std::int32_t recent_tokens = 64;
  // The first tokens, pinned.
  std::int32_t pinned_tokens = 0;
  // Share of the budget, above 0 to 1, that pinned blocks may hold. Those beyond it, the last of the session, are protected
  // and no more, so that whoever may pin cannot keep a session's budget from shrinking.
  double most_pinned = 1.0;
  Remains remains = Remains::kBytes;
  // What rows of a prompt need not look at.
  SparsePrompt sparse_prompt;
  RecallPlace recall_place = RecallPlace::kOriginal;
  // Of each block that comes back, so many first tokens are computed again where it lies, with what is hot before it in sight: more of
  // them mend more of what a block does not know of its new neighbours, and take longer. Approximate; for comparison.
  std::int32_t renewed_tokens = 0;
  Removal removal = Removal::kSparse;
  // When anchors reach the end of what the model was trained for: give hot blocks new ones close together and go on.
  // Off: the turn is refused.
  bool rebases = true;
  // Shares what other sessions have hot for the same tokens, and takes what they computed from the cold store, by exact
  // name. Off: benches that compare sessions compute everything.
  bool adopts = true;
  // Sessions of different tenants never share blocks, hot or saved, whatever they hold; part of every name.
  std::string tenant;

  [[nodiscard]] Status validate() const;
};

}  // namespace ebb
