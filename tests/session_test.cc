// Sessions on the engine: the budget, eviction and recall, batches, and what happens when things go wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/by_words.h"
#include "tests/sessions.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

TEST_F(Sessions, hot_blocks_never_exceed_the_budget_and_old_ones_are_saved) {
  const auto session = new_session(96);
  for (int turn = 0; turn < 3; ++turn) say(*session, "zebra " + kLongText);
  EXPECT_GT(session->stats().n_evicted_blocks, 10);
  EXPECT_EQ(session->stats().n_saved_blocks, session->stats().n_evicted_blocks);
  EXPECT_EQ(session->peak_hot_tokens(), 96);
  EXPECT_GE(engine_->store()->stats().tier("ram").n_records, session->stats().n_saved_blocks);
  engine_->store()->check_invariants();
}

TEST_F(Sessions, every_token_from_before_a_turn_is_counted_once) {
  const auto session = new_session(96);
  say(*session, "the quagga sleeps here " + kLongText);
  const std::int32_t before = session->end().value();
  say(*session, "where is the quagga", {.max_tokens = 4, .recall = by_words("where is the quagga")});
  EXPECT_EQ(last_.from[Origin::kHotAlready] + last_.from[Origin::kRecalledExact] + last_.from[Origin::kRecomputed] +
                last_.from[Origin::kHole],
            before);
  EXPECT_GT(last_.from[Origin::kRecalledExact], 0);
  EXPECT_GT(last_.from[Origin::kHole], 0);
}

TEST_F(Sessions, the_block_with_the_asked_words_is_recalled_as_it_was) {
  const auto session = new_session(96);
  say(*session, "quagga " + kLongText);
  const std::string name = session->exact_name(BlockIndex(0)).hex();
  ASSERT_FALSE(session->hot().is_hot(BlockIndex(0)));
  say(*session, "quagga", {.max_tokens = 1, .recall = by_words("quagga", 1)});
  ASSERT_EQ(last_.acts.recalled.size(), 1U);
  EXPECT_EQ(last_.acts.recalled.front(), BlockIndex(0));
  EXPECT_EQ(session->exact_name(BlockIndex(0)).hex(), name);
}

TEST_F(Sessions, a_damaged_record_is_refused_counted_and_computed_again) {
  const TemporaryFolder folder;
  open({.store = {.ram_bytes = 0, .disk = DiskOptions{.folder = folder.path()}}});
  const auto session = new_session(96);
  say(*session, "quagga " + kLongText);
  ASSERT_TRUE(engine_->store()->flush().ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) flip_bits(entry.path());
  say(*session, "quagga", {.max_tokens = 1, .recall = by_words("quagga", 1)});
  EXPECT_TRUE(last_.acts.recalled.empty());
  EXPECT_THAT(last_.acts.recomputed, ::testing::ElementsAre(BlockIndex(0)));
  EXPECT_EQ(last_.from[Origin::kRecomputed], 16);
  EXPECT_EQ(session->stats().n_missed_recalls, 1);
  EXPECT_EQ(engine_->store()->stats().tier("disk").n_refused, 1);
}

TEST_F(Sessions, where_nothing_remains_evicted_blocks_are_lost_and_work_goes_on) {
  const auto session = new_session(96, Remains::kNothing);
  say(*session, "quagga " + kLongText);
  say(*session, "quagga", {.max_tokens = 3, .recall = by_words("quagga")});
  EXPECT_TRUE(last_.acts.recalled.empty());
  EXPECT_GT(last_.from[Origin::kHole], 0);
  EXPECT_EQ(session->stats().n_saved_blocks, 0);
}

TEST_F(Sessions, several_generations_of_one_step_do_as_they_do_alone) {
  std::vector<std::string> alone;
  for (const char* text : {"one two three", "four", kLongText.c_str()}) {
    const auto session = new_session(320);
    const auto generation = start(*session, text, {.max_tokens = 12});
    finish(*session, *generation);
    alone.push_back(generation->text());
  }
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Generation>> generations;
  std::vector<Generation*> batch;
  for (const char* text : {"one two three", "four", kLongText.c_str()}) {
    sessions.push_back(new_session(208));
    generations.push_back(start(*sessions.back(), text, {.max_tokens = 12}));
    batch.push_back(generations.back().get());
  }
  while (std::ranges::any_of(batch, [](const Generation* g) { return !g->finished(); })) {
    ASSERT_TRUE(engine_->step(batch).ok());
  }
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(generations[i]->text(), alone[i]) << i;
}

TEST_F(Sessions, frames_return_when_a_session_ends) {
  {
    const auto session = new_session();
    say(*session, kLongText);
    EXPECT_GT(engine_->pool().n_hot(), 0);
  }
  EXPECT_EQ(engine_->pool().n_hot(), 0);
}

TEST_F(Sessions, a_cancelled_step_leaves_the_session_as_it_was_and_the_turn_can_go_on) {
  const auto session = new_session();
  say(*session, "hello");
  const std::int32_t before = session->end().value();
  const auto generation = start(*session, kLongText, {.max_tokens = 2});
  Generation* const running = generation.get();
  engine_->request_cancel();
  EXPECT_EQ(engine_->step({&running, 1}).code(), Code::kCancelled);
  session->check_invariants();
  EXPECT_EQ(session->end().value(), before);
  engine_->clear_cancel();
  finish(*session, *generation);
  EXPECT_EQ(session->end().value(), before + 1 + static_cast<std::int32_t>(tokenize(kLongText).size()) + 1);
}

TEST_F(Sessions, what_a_cancelled_turn_left_is_computed_with_the_next) {
  const auto session = new_session();
  const auto generation = start(*session, "abc def", {.max_tokens = 2});
  const auto n_prompt = static_cast<std::int32_t>(tokenize("abc def").size());
  generation->finish(FinishReason::kCancelled);
  say(*session, "ghi", {.max_tokens = 1});
  EXPECT_EQ(session->end().value(), n_prompt + static_cast<std::int32_t>(tokenize("ghi").size()));
}

TEST_F(Sessions, a_full_context_ends_the_generation_with_a_reason_and_no_other) {
  const auto full = open_session({.budget_tokens = 320, .rebases = false});
  const auto other = new_session(320);
  const auto long_one = start(*full, std::string(630, 'y'), {.max_tokens = 100});
  const auto short_one = start(*other, "ok", {.max_tokens = 20});
  std::vector<Generation*> batch = {long_one.get(), short_one.get()};
  while (!long_one->finished() || !short_one->finished()) ASSERT_TRUE(engine_->step(batch).ok());
  EXPECT_EQ(long_one->reason(), FinishReason::kLength);
  EXPECT_EQ(long_one->status().code(), Code::kOutOfBudget);
  EXPECT_THAT(long_one->status().message(), HasSubstr("trained for"));
  EXPECT_TRUE(short_one->status().ok());
  EXPECT_EQ(full->end().value(), 640);
}

TEST_F(Sessions, a_word_that_a_border_cuts_is_found_with_both_its_blocks) {
  const auto session = open_session({.budget_tokens = 160});
  const std::string start = "one two thre ";
  say(*session, start + "quagga " + kLongText + kLongText, {.max_tokens = 1});
  const BlockIndex first(0);
  const BlockIndex second(1);
  ASSERT_FALSE(session->hot().is_hot(first) || session->hot().is_hot(second));
  ASSERT_EQ(session->block_text(first)->find("quagga"), std::string::npos);
  ASSERT_EQ(session->block_text(second)->find("quagga"), std::string::npos);
  say(*session, "where", {.max_tokens = 1, .recall = by_words("quagga", 2)});
  EXPECT_THAT(last_.acts.recalled, ::testing::UnorderedElementsAre(first, second));
}

TEST_F(Sessions, a_prompt_that_another_session_computed_comes_from_the_cold_store) {
  const auto first = open_session({.budget_tokens = 320});
  say(*first, "quagga " + kLongText);
  const std::vector<std::vector<std::byte>> bytes = evict_all(*first);
  const auto second = open_session({.budget_tokens = 320});
  say(*second, "quagga " + kLongText);
  EXPECT_TRUE(std::ranges::equal(second->tokens(), first->tokens()));
  ASSERT_GE(last_.acts.adopted.size(), 2U);
  EXPECT_EQ(last_.from[Origin::kNew], 1)
      << "whole blocks, the begin of the next, and the token whose logits are asked for";
  EXPECT_EQ(last_.from[Origin::kRecalledExact], last_.n_adopted);
  EXPECT_EQ(last_.from[Origin::kRecalledExact] + last_.from[Origin::kNew],
            static_cast<std::int32_t>(tokenize("quagga " + kLongText).size()));
  for (const BlockIndex block : last_.acts.adopted) {
    EXPECT_EQ(engine_->read_block(*second, block), bytes[block.index()]) << block.value();
  }
  // What differs from its begin on has nothing in common.
  const auto third = open_session({.budget_tokens = 320});
  say(*third, "zebra, " + kLongText);
  EXPECT_TRUE(last_.acts.adopted.empty());
}

TEST_F(Sessions, sealed_blocks_that_another_session_computed_come_from_the_cold_store_too) {
  open({.kv_type = RowType::kKivi4});
  const auto first = open_session({.budget_tokens = 320});
  say(*first, "quagga " + kLongText);
  const std::vector<std::vector<std::byte>> bytes = evict_all(*first);
  const auto second = open_session({.budget_tokens = 320});
  say(*second, "quagga " + kLongText);
  EXPECT_TRUE(std::ranges::equal(second->tokens(), first->tokens()));
  ASSERT_GE(last_.acts.adopted.size(), 2U);
  for (const BlockIndex block : last_.acts.adopted) {
    EXPECT_EQ(engine_->read_block(*second, block), bytes[block.index()]) << block.value();
  }
}

TEST_F(Sessions, a_prompt_that_another_session_has_hot_needs_no_copy_and_no_frames) {
  const auto first = open_session({.budget_tokens = 320});
  say(*first, "quagga " + kLongText);
  const std::int32_t n_hot = engine_->pool().n_hot();
  const auto second = open_session({.budget_tokens = 320});
  say(*second, "quagga " + kLongText);
  EXPECT_TRUE(std::ranges::equal(second->tokens(), first->tokens()));
  EXPECT_GE(last_.from[Origin::kShared], 9 * 16);
  EXPECT_LT(engine_->pool().n_hot() - n_hot, n_hot / 3) << "the open block, and what is not full";
}

// A client that says everything again, each time.
TEST_F(Sessions, a_history_that_goes_on_computes_what_is_new_and_nothing_else) {
  const auto session = open_session({.budget_tokens = 320});
  std::vector<Token> history = tokenize("one two three");
  resume(*session, history);
  history.insert(history.end(), session->tokens().begin() + std::ssize(history), session->tokens().end());
  history.insert(history.end(), session->unfinished().begin(), session->unfinished().end());
  const auto before = static_cast<std::int32_t>(history.size()) - session->n_unfinished();
  for (const Token token : tokenize("and four")) history.push_back(token);
  resume(*session, history);
  EXPECT_EQ(last_.from[Origin::kHotAlready], before);
  EXPECT_EQ(last_.from[Origin::kNew], static_cast<std::int32_t>(history.size()) - before);
  resume(*session, history);
  EXPECT_EQ(last_.from[Origin::kNew], 1);
}

TEST_F(Sessions, an_edited_history_ends_as_if_it_had_never_been_another) {
  const auto edited = open_session({.budget_tokens = 320, .adopts = false});
  resume(*edited, tokenize(kLongText + "one two three four five"));
  const std::vector<Token> history = tokenize(kLongText + "one two zebra four five six");
  resume(*edited, history);
  EXPECT_GE(last_.from[Origin::kHotAlready], 150);
  const auto fresh = open_session({.budget_tokens = 320, .adopts = false});
  resume(*fresh, history);
  EXPECT_TRUE(std::ranges::equal(edited->tokens(), fresh->tokens()));
}

// What is left of the message in front of the edit and what is said now are two parts of one name.
TEST_F(Sessions, after_an_edit_each_block_has_a_name_of_its_own_by_which_it_is_found) {
  const auto session = open_session({.budget_tokens = 320, .adopts = false});
  resume(*session, tokenize(kLongText + "one two three four five"));
  resume(*session, tokenize(kLongText + "one two zebra " + kLongText));
  for (std::int32_t b = 0; b < session->n_blocks(); ++b) {
    EXPECT_THAT(session->find_blocks(session->block_name(BlockIndex(b))), ::testing::ElementsAre(BlockIndex(b)))
        << session->block_name(BlockIndex(b));
  }
}

TEST_F(Sessions, pins_beyond_what_may_be_pinned_hold_no_budget) {
  const auto session = open_session({.budget_tokens = 160, .most_pinned = 0.5});
  say(*session, kLongText.substr(0, 120));
  for (std::int32_t b = 0; b < session->n_blocks(); ++b) session->set_pinned(BlockIndex(b), true);
  say(*session, kLongText, {.max_tokens = 4});
  EXPECT_EQ(session->end().value(), 120 + 150 + 8 - 1) << "all of it found room";
  for (std::int32_t b = 0; b < 5; ++b) EXPECT_TRUE(session->hot().is_hot(BlockIndex(b))) << "the first half holds";
  EXPECT_EQ(session->set_budget(FrameBudget::of_tokens(96, session->shape())).n_tokens(session->shape()), 96);
  for (std::int32_t b = 0; b < 3; ++b) EXPECT_TRUE(session->hot().is_hot(BlockIndex(b)));
}

TEST_F(Sessions, a_message_that_is_held_already_is_held_more_firmly_when_that_is_asked) {
  const auto session = new_session();
  const std::vector<Token> facts = tokenize(kLongText.substr(0, 40));
  const std::vector<Token> question = tokenize("which is it");
  const auto send = [&](const PromptPart& first) {
    const Prompt history = Prompt::Builder().add(facts, first).add(question, {.name = "user2"}).build();
    Result<std::unique_ptr<Generation>> generation = Generation::resume(
        *session, engine_->vocabulary(), history, {.sampling = {.temperature = 0.0F}, .max_tokens = 4});
    ASSERT_TRUE(generation.ok()) << generation.status().message();
    finish(*session, **generation);
  };
  send({.name = "user1"});
  EXPECT_FALSE(session->is_pinned(BlockIndex(0)));
  send({.name = "user1", .priority = 3.0, .pinned = true});
  EXPECT_TRUE(session->is_pinned(BlockIndex(0)));
  EXPECT_EQ(session->parts().front().priority, 3.0);
  send({.name = "user1"});
  EXPECT_TRUE(session->is_pinned(BlockIndex(0))) << "saying nothing lets nothing go";
}

TEST_F(Sessions, names_count_the_turns_that_say_something_and_no_others) {
  const auto session = new_session();
  say(*session, "the first " + std::string(40, 'a'));
  for (int i = 0; i < 3; ++i) {
    session->evict(std::vector{BlockIndex(0)});
    session->recall(std::vector{BlockIndex(0)});
    Turn(*session, Prompt()).settle();
  }
  say(*session, "the second");
  std::vector<std::string> names;
  for (const Part& part : session->parts()) names.push_back(part.name);
  EXPECT_THAT(names, ::testing::ElementsAre("turn1", "reply1", "turn2", "reply2"));
}

TEST_F(Sessions, a_lower_budget_evicts_at_once_and_gives_the_frames_to_others) {
  const auto session = open_session({.budget_tokens = 640});
  const auto generation = start(*session, kLongText + kLongText + kLongText, {.max_tokens = 4});
  Generation* const running = generation.get();
  while (generation->stats().n_generated < 2) ASSERT_TRUE(engine_->step({&running, 1}).ok());
  const std::int32_t n_free = engine_->pool().n_free();
  EXPECT_EQ(session->set_budget(FrameBudget::of_tokens(160, session->shape())).n_tokens(session->shape()), 160);
  EXPECT_LE(session->n_hot_tokens(), 160);
  EXPECT_GT(engine_->pool().n_free(), n_free);
  finish(*session, *generation);
  EXPECT_LE(session->n_hot_tokens(), 160);
}

TEST_F(Sessions, a_prompt_that_the_context_cannot_hold_is_refused_before_any_work) {
  const auto session = open_session({.rebases = false});
  say(*session, "hello");
  const std::int32_t before = session->end().value();
  const Result<std::unique_ptr<Generation>> refused =
      Generation::start(*session, engine_->vocabulary(), Prompt(tokenize(std::string(640, 'y'))), {});
  EXPECT_EQ(refused.status().code(), Code::kOutOfBudget);
  EXPECT_THAT(refused.status().message(), HasSubstr("start a new session"));
  EXPECT_EQ(session->end().value(), before);
  say(*session, "and on");
}

TEST_F(Sessions, senseless_budgets_are_refused_with_what_to_give) {
  EXPECT_THAT(engine_->new_session({.budget_tokens = 16}).status().message(), HasSubstr("give 64 to"));
  EXPECT_EQ(engine_->new_session({.budget_tokens = 1 << 30}).status().code(), Code::kInvalidArgument);
}

TEST_F(Sessions, composed_attention_says_the_same) {
  const auto ten_tokens = [&] {
    const auto session = new_session();
    const auto generation = start(*session, "one two three", {.max_tokens = 10});
    finish(*session, *generation);
    return generation->text();
  };
  const std::string ours = ten_tokens();
  open({.composed_attention = true});
  EXPECT_EQ(ten_tokens(), ours);
}

}  // namespace
}  // namespace ebb
