// SequenceStates: sessions that have a state, for the tests of snapshots: every step checks that the state stands where its
// rows begin, and every look that it is what computing all tokens in their order gives.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/toy_state.h"
#include "session/turn_test.h"

namespace ebb {

class SequenceStates : public Turns {
 protected:
  static constexpr std::int32_t kRows = 40;  // of a step: more than two blocks

  SequenceStates() { begin(); }
  ~SequenceStates() override { session_.reset(); }

  SessionDeps state_deps() {
    SessionDeps deps = this->deps();
    deps.state = state_.get();
    return deps;
  }
  static SessionOptions options(std::int32_t budget_blocks = kBudgetBlocks) {
    return {.budget_tokens = budget_blocks * kBlockSize};
  }

  // Another session instead, with a state of its own.
  void begin(const SessionOptions& with = options()) {
    auto state = std::make_unique<ToyState>();
    std::swap(state_, state);
    session_ = std::make_unique<Session>(state_deps(), with);
  }
  void restore(const SessionImage& image) {
    auto state = std::make_unique<ToyState>();
    std::swap(state_, state);
    Result<std::unique_ptr<Session>> restored = Session::restore(state_deps(), options(), image);
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    session_ = *std::move(restored);
  }

  // No two blocks of it are alike.
  [[nodiscard]] std::vector<Token> text(std::int32_t n_tokens, std::uint64_t seed = 1) const {
    std::mt19937_64 random(seed);
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < n_tokens; ++i) {
      tokens.push_back(vocabulary_->tokenize(std::string(1, static_cast<char>('a' + random() % 26)))->front());
    }
    return tokens;
  }

  // One step, as a model would compute it; of n_computed rows only, where it then fails.
  void step(Turn& turn, std::int32_t n_rows, std::optional<std::size_t> n_computed = std::nullopt) {
    const Result<SequenceInput> input = turn.begin_step(n_rows);
    ASSERT_TRUE(input.ok()) << input.status().message();
    const auto before = session_->tokens().first(input->first.index());
    ASSERT_EQ(state_->value(), value_behind(before)) << "rows from " << input->first.value();
    if (n_computed) {
      state_->compute(input->tokens.first(std::min(*n_computed, input->tokens.size())));
      return turn.abandon_step();
    }
    fill(*input);
    state_->compute(input->tokens);
    turn.end_step();
    session_->check_invariants();
  }
  TurnStats finish(Turn turn, std::int32_t n_rows = kRows) {
    while (turn.n_pending() + turn.n_recomputing() > 0 && !HasFatalFailure()) step(turn, n_rows);
    const TurnStats stats = turn.settle();
    check_state();
    return stats;
  }
  TurnStats say(std::vector<Token> tokens, std::int32_t n_rows = kRows) {
    return finish(Turn(*session_, Prompt(std::move(tokens))), n_rows);
  }

  // What one has who computes these in their order and never goes back.
  [[nodiscard]] ToyState::Value value_behind(std::span<const Token> tokens) const {
    ToyState::Value value;
    value.rounding = state_->value().rounding;
    for (const Token token : tokens) value.add(token);
    return value;
  }
  void check_state() const {
    session_->check_invariants();
    EXPECT_EQ(state_->value(), value_behind(session_->tokens())) << "behind " << session_->end().value();
  }
  // What a session has that ends in these tokens, computed up to `end`, and the rest of which waits.
  void expect_waits_behind(Position end, std::span<const Token> tokens) const {
    EXPECT_EQ(session_->end(), end);
    std::vector<Token> all(session_->tokens().begin(), session_->tokens().end());
    all.insert(all.end(), session_->unfinished().begin(), session_->unfinished().end());
    EXPECT_TRUE(std::ranges::equal(all, tokens));
    check_state();
  }

  [[nodiscard]] Hash128 border(std::size_t n_blocks) const { return session_->image().borders[n_blocks - 1].name; }
  [[nodiscard]] RecordHandle record(std::size_t n_blocks) const {
    const Result<RecordHandle> found = store_->get(
        {.model = {1, 2}, .layout = state_->layout(), .name = border(n_blocks), .kind = RecordKind::kSequenceState});
    return found.ok() ? *found : nullptr;
  }
  // With the same frames.
  [[nodiscard]] static RecordHandle copy_of(const RecordHandle& record, const RecordHeader& header) {
    RecordBuilder copy(header, {});
    const Status copied = record->copy_frames(
        [&](std::int32_t, std::span<const std::byte> frame) { std::ranges::copy(frame, copy.frames().begin()); });
    EXPECT_TRUE(copied.ok()) << copied.message();
    return std::move(copy).seal();
  }
  // A record never changes, except where memory is sick.
  void damage(std::size_t n_blocks) const {
    const RecordHandle sick = record(n_blocks);
    ASSERT_NE(sick, nullptr);
    const_cast<std::byte&>(sick->bytes()[sick->header().frames_offset() + 5]) ^= std::byte{1};
  }

  std::unique_ptr<ToyState> state_;
};

}  // namespace ebb
