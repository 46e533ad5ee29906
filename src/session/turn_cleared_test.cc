// Turns whose prompt says what its client no longer wants in sight: it leaves by whole blocks, and comes back for a question alone.
#include <gmock/gmock.h>

#include "session/turn_test.h"

namespace ebb {
namespace {

class ClearedTurns : public Turns {};

TEST_P(ClearedTurns, what_is_cleared_leaves_at_once_and_comes_back_for_a_question_alone) {
  session_ = make_session(20);
  const std::vector<Token> tokens = *vocabulary_->tokenize("quagga " + std::string(6 * kBlockSize, 'x'));
  const auto n = static_cast<std::int32_t>(tokens.size());
  const Span cleared = {Position(0), Position(2 * kBlockSize + 3)};
  const auto prompt = [&](std::string_view more, std::vector<Span> spans) {
    std::vector<Token> all = tokens;
    const std::vector<Token> behind = *vocabulary_->tokenize(more);
    all.insert(all.end(), behind.begin(), behind.end());
    std::vector<PromptPart> parts = {{.n_tokens = n}, {.n_tokens = static_cast<std::int32_t>(behind.size())}};
    return Prompt(std::move(all), std::move(parts), std::move(spans));
  };
  const auto tell = [&](const Prompt& said, std::string_view question) {
    Turn turn = Turn::resume(*session_, said);
    turn.recall({.cues = find_cues(question), .max_blocks = 2});
    turn.refill(1);
    compute(turn, 7);
    return turn.settle();
  };
  // New, and so computed and let go by the same turn.
  const TurnStats first = tell(prompt("y", {cleared}), "");
  EXPECT_EQ(first.from[Origin::kCleared], 2 * kBlockSize) << "whole blocks leave";
  EXPECT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(2)));
  // There is room, and nobody asks.
  const TurnStats second = tell(prompt("yz", {cleared}), "");
  EXPECT_TRUE(second.acts.recalled.empty());
  EXPECT_EQ(second.from[Origin::kHole], 0);
  EXPECT_EQ(second.n_cleared_back, 0);
  const TurnStats asked = tell(prompt("yzy", {cleared}), "quagga");
  EXPECT_THAT(asked.acts.recalled, testing::Contains(BlockIndex(0)));
  EXPECT_GE(asked.n_cleared_back, kBlockSize);
  check_every_hot_byte();
  // What the next one still clears leaves again; without it, all comes back.
  (void)tell(prompt("yzyz", {cleared}), "");
  EXPECT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  const TurnStats last = tell(prompt("yzyzy", {}), "");
  EXPECT_EQ(last.from.n_unseen(), 0);
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  check_every_hot_byte();
  EXPECT_EQ(last.n_computed, 1) << "nothing is computed twice for it";
}

TEST_P(ClearedTurns, a_part_that_moved_behind_a_reply_held_otherwise_is_found_by_its_name) {
  session_ = make_session(20);
  const auto of = [&](std::string_view text) { return *vocabulary_->tokenize(text); };
  const std::vector<Token> asked = of("quagga " + std::string(2 * kBlockSize, 'x'));
  const std::vector<Token> result = of("dodo " + std::string(3 * kBlockSize, 'w'));
  const auto build = [&](std::string_view reply, bool clears) {
    std::vector<Token> tokens = asked;
    std::vector<PromptPart> parts = {{.n_tokens = static_cast<std::int32_t>(asked.size()), .name = "user0"}};
    const auto add = [&](const std::vector<Token>& more, Source source, const char* name) {
      tokens.insert(tokens.end(), more.begin(), more.end());
      parts.push_back({.n_tokens = static_cast<std::int32_t>(more.size()), .source = source, .name = name});
    };
    add(of(reply), Source::kAssistant, "assistant1");
    const Position begin(static_cast<std::int32_t>(tokens.size()));
    add(result, Source::kTool, "tool2");
    const Position end(static_cast<std::int32_t>(tokens.size()));
    add(of("y"), Source::kUser, "user3");
    return Prompt(std::move(tokens), std::move(parts), clears ? std::vector<Span>{{begin, end}} : std::vector<Span>());
  };
  // As it was generated, and as the client says it; to both the reply is the same.
  {
    Turn turn(*session_, build("zzzzz", false));
    compute(turn, 16);
    turn.settle();
  }
  ResumeOptions options;
  options.same_reply.whole = [](std::string_view, std::string_view) { return true; };
  Turn turn = Turn::resume(*session_, build("zzz", true), options);
  compute(turn, 16);
  const TurnStats stats = turn.settle();
  const std::vector<Span> held = {session_->parts().at(2).span};
  for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
    const Span block = session_->hot().span(BlockIndex(b));
    const bool is_inside = held.front().begin <= block.begin && block.end <= held.front().end;
    EXPECT_EQ(session_->hot().is_hot(BlockIndex(b)), !is_inside) << b;
  }
  EXPECT_GE(stats.from[Origin::kCleared], 2 * kBlockSize);
}

TEST_P(ClearedTurns, what_is_pinned_stays_and_what_is_lost_is_not_computed_again) {
  session_ = make_session(20, {.remains = Remains::kTokens});
  const std::vector<Token> tokens = *vocabulary_->tokenize("quagga " + std::string(5 * kBlockSize, 'x') + "y");
  const auto n = static_cast<std::int32_t>(tokens.size());
  const auto tell = [&](bool pins) {
    std::vector<PromptPart> parts = {{.n_tokens = 2 * kBlockSize, .name = "a", .pinned = pins},
                                     {.n_tokens = n - 2 * kBlockSize, .name = "b"}};
    Turn turn = Turn::resume(*session_, Prompt(tokens, parts, {{Position(0), Position(4 * kBlockSize)}}));
    turn.refill(1);
    compute(turn, 16);
    return turn.settle();
  };
  const TurnStats pinned = tell(true);
  EXPECT_EQ(pinned.from[Origin::kCleared], 2 * kBlockSize);
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  (void)session_->set_pinned("a", false);
  const TurnStats lost = tell(false);
  EXPECT_EQ(lost.from[Origin::kCleared], 4 * kBlockSize);
  EXPECT_THAT(lost.acts.recomputed, testing::IsEmpty());
  EXPECT_THAT(lost.acts.lost, testing::IsEmpty());
  EXPECT_THAT(lost.acts.evicted, testing::SizeIs(2));
  EXPECT_EQ(lost.n_computed, 1);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ClearedTurns, ::testing::Values(KeyOrder::kByDim),
                         [](const auto&) { return "by_dim"; });

}  // namespace
}  // namespace ebb
