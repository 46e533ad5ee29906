// Sessions that have a state, in lock step with one who computes all tokens in their order and never goes back.
#include "session/image.h"
#include "session/snapshots_test.h"

namespace ebb {
namespace {

class SequenceStatesAtRandom : public SequenceStates {
 protected:
  // What was said and not forgotten: the twin.
  std::vector<Token> said_;
  std::mt19937_64 random_{0};
  // Blocks.
  std::int64_t n_adopted_ = 0;
  std::int64_t n_recomputed_ = 0;

  std::int32_t up_to(std::int32_t n) {
    return static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(n + 1));
  }
  // One of few, so that sessions say the same by chance.
  std::vector<Token> some_text(std::int32_t n_most) { return text(1 + up_to(n_most - 1), random_() % 3); }
  std::vector<BlockIndex> some_blocks() {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = up_to(3); b < session_->n_blocks(); b += 1 + up_to(3)) blocks.emplace_back(b);
    return blocks;
  }

  void check() const { expect_waits_behind(session_->end(), said_); }

  // Most turns are computed to their end; some are cancelled.
  void go_on(Turn turn) {
    if (random_() % 2 == 0) turn.recall(some_blocks());
    const bool ends = random_() % 8 != 0;
    for (std::int32_t n = up_to(4); turn.n_pending() + turn.n_recomputing() > 0 && (ends || n > 0); --n) {
      const std::int32_t n_rows = 1 + up_to(kRows);
      if (random_() % 6 == 0) {
        step(turn, n_rows, static_cast<std::size_t>(up_to(kRows)));
      } else {
        step(turn, n_rows);
      }
      if (HasFatalFailure()) return;
    }
    const TurnStats& stats = turn.settle();
    n_adopted_ += stats.n_adopted / kBlockSize;
    n_recomputed_ += std::ssize(stats.acts.recomputed);
  }

  void say_more() {
    const std::vector<Token> more = some_text(4 * kBlockSize);
    said_.insert(said_.end(), more.begin(), more.end());
    go_on(Turn(*session_, Prompt(more)));
  }
  void cut() {
    const Position end(up_to(session_->end().value()));
    session_->cut(end);
    said_.resize(end.index());
  }
  void resume() {
    std::vector<Token> history(said_.begin(), said_.begin() + up_to(static_cast<std::int32_t>(said_.size())));
    const std::vector<Token> more = some_text(3 * kBlockSize);
    history.insert(history.end(), more.begin(), more.end());
    said_ = history;
    go_on(Turn::resume(*session_, Prompt(history)));
  }
  // What is hot would only be saved again.
  void lose_some() {
    session_->evict(some_blocks());
    const SessionImage image = session_->image();
    for (std::size_t b = 0; b < image.borders.size(); ++b) {
      if (random_() % 6 == 0) store_->drop(image.borders[b].name);
      if (random_() % 3 == 0) store_->drop(session_->exact_name(BlockIndex(static_cast<std::int32_t>(b))));
    }
  }
  void begin_anew() {
    begin(options(2 + up_to(6)));
    said_.clear();
  }
  void go_through_an_image() {
    if (random_() % 2 == 0) session_->save_for_image();
    restore(*decode_image(encode_image(session_->image())));
  }

  void act() {
    switch (random_() % 12) {
      case 0: return cut();
      case 1: return lose_some();
      case 2: return begin_anew();
      case 3: return go_through_an_image();
      case 4: return void(session_->evict(some_blocks()));
      case 5: return void(session_->recall(some_blocks()));
      case 6:
      case 7: return resume();
      default: return say_more();
    }
  }
};

TEST_P(SequenceStatesAtRandom, whatever_is_done_the_state_is_that_of_one_who_never_goes_back) {
  for (std::uint64_t seed = 0; seed < 12 && !HasFailure(); ++seed) {
    random_.seed(seed);
    begin_anew();
    for (int i = 0; i < 150 && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, act {}", seed, i));
      if (said_.size() > 20 * kBlockSize) begin_anew();
      act();
      check();
      store_->check_invariants();
    }
  }
  EXPECT_GT(n_adopted_, 100);
  EXPECT_GT(n_recomputed_, 20);
}

INSTANTIATE_TEST_SUITE_P(Layouts, SequenceStatesAtRandom, ::testing::Values(KeyOrder::kByDim),
                         [](const auto&) { return "by_dim"; });

}  // namespace
}  // namespace ebb
