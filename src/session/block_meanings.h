// BlockMeanings: what the blocks of one session mean (session/meanings.h), by which they are found when they share no word with what was
// said.
//
// Nothing is computed before somebody first asks by meaning; from then on each block that fills is asked for, behind the turn. A look
// waits for the vectors of what was said, and a bounded time for those of blocks that are not there yet, cold ones first: those that are
// still missing then are not found by it, and it says how many it looked at.
//
// It reads texts, chooses nothing and moves nothing. Thread rule: as its session's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/hot_set.h"
#include "policy/cues.h"
#include "policy/selector.h"
#include "session/meanings.h"
#include "text/vocabulary.h"

namespace ebb {

class BlockMeanings {
 public:
  struct Deps {
    const HotSet& hot;
    const Vocabulary& vocabulary;
    // Null: there are none.
    MeaningSource* source = nullptr;
    // MeaningSource::await's.
    std::function<void()> notify;
  };
  explicit BlockMeanings(Deps deps) : deps_(std::move(deps)) {}

  [[nodiscard]] bool is_there() const { return deps_.source != nullptr; }
  // A turn that looks for these begins.
  void begin(std::span<const Cue> cues);
  // A block became full.
  void note_full(BlockIndex block);
  // This block and those behind it are forgotten.
  void forget_from(BlockIndex first);

  // Whether a look can begin; if not, it waits, and `notify` is called. `missing` as RecallEvidence has it.
  [[nodiscard]] bool is_ready(std::span<const double> missing, double most_ms);
  // Until it can.
  void wait();
  // What the last look waited.
  [[nodiscard]] double waited_ms() const { return wait_ == nullptr ? 0.0 : wait_->ms(); }
  // The look is over: the next one waits anew.
  void end_look() { wait_.reset(); }

  // [cue], of blocks whose vectors are there, and of those that lie before one whose first sentence begins in them.
  [[nodiscard]] std::vector<CueLikeness> rank(std::span<const Cue> cues) const;
  // Blocks whose vectors are there.
  [[nodiscard]] std::int32_t n_known() const;

 private:
  void ask(BlockIndex block);
  [[nodiscard]] CueLikeness rank(const Cue& cue, const Meaning& meaning) const;

  Deps deps_;
  bool has_begun_ = false;
  std::vector<std::shared_ptr<Meaning>> blocks_;          // [block]; null: not asked for yet
  std::map<std::string, std::shared_ptr<Meaning>> cues_;  // of the turn under way
  std::shared_ptr<MeaningWait> wait_;
};

}  // namespace ebb
