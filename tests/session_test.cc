// Sessions on the engine: the budget, eviction and recall, batches, and what happens when things go wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/generation.h"
#include "model/random_model.h"
#include "tests/files.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

class Sessions : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model({.n_kv_heads = 2, .n_ctx_train = 640}, file_.path()).ok());
    open({});
  }

  void open(EngineOptions options) {
    options.model = file_.path();
    options.n_threads = 2;
    options.block_size = 16;
    options.policy = "recency";
    options.chunk = 64;
    Result<std::unique_ptr<Engine>> engine = Engine::open(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
  }

  std::vector<Token> tokenize(std::string_view text) {
    Result<std::vector<Token>> tokens = engine_->vocabulary().tokenize(text);
    EXPECT_TRUE(tokens.ok());
    return *std::move(tokens);
  }

  std::unique_ptr<Session> new_session(std::int32_t budget_tokens = 0, Remains remains = Remains::kBytes) {
    return open_session({.budget_tokens = budget_tokens, .remains = remains});
  }

  std::unique_ptr<Session> open_session(const SessionOptions& options) {
    Result<std::unique_ptr<Session>> session = engine_->new_session(options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }

  std::unique_ptr<Generation> start(Session& session, std::string_view text, GenerationOptions options = {}) {
    options.sampling.temperature = 0.0F;
    Result<std::unique_ptr<Generation>> generation =
        Generation::start(session, engine_->vocabulary(), tokenize(text), options);
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    return *std::move(generation);
  }

  // Runs it to its end; every step keeps the budget and the invariants.
  void finish(Session& session, Generation& generation) {
    Generation* const running = &generation;
    while (!generation.finished()) {
      const Status status = engine_->step({&running, 1});
      ASSERT_TRUE(status.ok()) << status.message();
      session.check_invariants();
      engine_->pool().check_invariants();
      ASSERT_LE(session.n_hot_blocks(), session.budget_blocks());
    }
  }

  void say(Session& session, std::string_view text, const GenerationOptions& options = {.max_tokens = 4}) {
    const auto generation = start(session, text, options);
    finish(session, *generation);
    last_ = generation->turn_stats();
  }

  void resume(Session& session, std::span<const Token> history) {
    const PromptPart part = {.tokens = history};
    Result<std::unique_ptr<Generation>> generation = Generation::resume(
        session, engine_->vocabulary(), {&part, 1}, {.sampling = {.temperature = 0.0F}, .max_tokens = 4});
    ASSERT_TRUE(generation.ok()) << generation.status().message();
    finish(session, **generation);
    last_ = (*generation)->turn_stats();
  }

  // What its full blocks held.
  std::vector<std::vector<std::byte>> evict_all(Session& session) {
    EXPECT_TRUE(engine_->store()->flush().ok());
    std::vector<std::vector<std::byte>> bytes;
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
      blocks.emplace_back(b);
      bytes.push_back(engine_->read_block(session, blocks.back()));
    }
    Turn turn(session, std::span<const Token>());
    turn.evict(blocks);
    turn.settle();
    return bytes;
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Engine> engine_;
  TurnStats last_;
};

const std::string kLongText(150, 'x');

TEST_F(Sessions, hot_blocks_never_exceed_the_budget_and_old_ones_are_saved) {
  const auto session = new_session(96);
  for (int turn = 0; turn < 3; ++turn) say(*session, "zebra " + kLongText);
  EXPECT_GT(session->stats().n_evicted_blocks, 10);
  EXPECT_EQ(session->stats().n_saved_blocks, session->stats().n_evicted_blocks);
  EXPECT_EQ(session->stats().peak_hot_blocks, 6);
  EXPECT_GE(engine_->store()->stats().ram.n_records, session->stats().n_saved_blocks);
  engine_->store()->check_invariants();
}

TEST_F(Sessions, every_token_from_before_a_turn_is_counted_once) {
  const auto session = new_session(96);
  say(*session, "the quagga sleeps here " + kLongText);
  const std::int32_t before = session->end().value();
  say(*session, "where is the quagga", {.max_tokens = 4, .recall_question = "where is the quagga"});
  EXPECT_EQ(last_.n_hot_already + last_.n_recalled_exact + last_.n_recomputed + last_.n_holes, before);
  EXPECT_GT(last_.n_recalled_exact, 0);
  EXPECT_GT(last_.n_holes, 0);
}

TEST_F(Sessions, the_block_with_the_asked_words_is_recalled_as_it_was) {
  const auto session = new_session(96);
  say(*session, "quagga " + kLongText);
  const std::string name = session->exact_name(BlockIndex(0)).hex();
  ASSERT_FALSE(session->residency().is_hot(BlockIndex(0)));
  say(*session, "quagga", {.max_tokens = 1, .recall_question = "quagga", .max_recalled_blocks = 1});
  ASSERT_EQ(last_.recalled.size(), 1U);
  EXPECT_EQ(last_.recalled.front(), BlockIndex(0));
  EXPECT_EQ(session->exact_name(BlockIndex(0)).hex(), name);
}

TEST_F(Sessions, a_damaged_record_is_refused_counted_and_computed_again) {
  const TemporaryFolder folder;
  open({.store = {.ram_bytes = 0, .disk = DiskOptions{.folder = folder.path()}}});
  const auto session = new_session(96);
  say(*session, "quagga " + kLongText);
  ASSERT_TRUE(engine_->store()->flush().ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) flip_bits(entry.path());
  say(*session, "quagga", {.max_tokens = 1, .recall_question = "quagga", .max_recalled_blocks = 1});
  EXPECT_TRUE(last_.recalled.empty());
  EXPECT_THAT(last_.recomputed, ::testing::ElementsAre(BlockIndex(0)));
  EXPECT_EQ(last_.n_recomputed, 16);
  EXPECT_EQ(session->stats().n_missed_recalls, 1);
  EXPECT_EQ(engine_->store()->stats().disk.n_refused, 1);
}

TEST_F(Sessions, where_nothing_remains_evicted_blocks_are_lost_and_work_goes_on) {
  const auto session = new_session(96, Remains::kNothing);
  say(*session, "quagga " + kLongText);
  say(*session, "quagga", {.max_tokens = 3, .recall_question = "quagga"});
  EXPECT_TRUE(last_.recalled.empty());
  EXPECT_GT(last_.n_holes, 0);
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

TEST_F(Sessions, past_the_trained_context_hot_blocks_close_up_and_the_session_goes_on) {
  const auto session = new_session(320);
  say(*session, "quagga " + kLongText);
  for (int turn = 0; turn < 12; ++turn) {
    say(*session, kLongText, {.max_tokens = 4});
    ASSERT_LE(session->next_anchor().value(), 640);
  }
  say(*session, "where", {.max_tokens = 4, .recall_question = "quagga"});
  EXPECT_GT(session->end().value(), 2 * 640);
  EXPECT_GT(session->stats().n_rebases, 1);
  EXPECT_GT(session->stats().n_moved_blocks, 10);
  EXPECT_GT(last_.n_recalled_approximate, 0) << "they come back to anchors that are not theirs";
}

TEST_F(Sessions, what_was_evicted_after_a_rebase_comes_back_as_it_was_moved) {
  const auto session = new_session(320);
  while (session->stats().n_rebases == 0) say(*session, kLongText, {.max_tokens = 1});
  BlockIndex moved(0);
  while (!session->residency().is_hot(moved) || session->anchor(moved) == session->residency().span(moved).begin) {
    moved = BlockIndex(moved.value() + 1);
    ASSERT_LT(moved.value(), session->n_blocks());
  }
  const auto frames = [&] { return engine_->read_block(*session, moved); };
  const std::vector<std::byte> before = frames();
  Turn evicting(*session, std::span<const Token>());
  evicting.evict(std::vector{moved});
  evicting.settle();
  ASSERT_FALSE(session->residency().is_hot(moved));
  Turn recalling(*session, std::span<const Token>());
  recalling.recall(std::vector{moved});
  recalling.settle();
  ASSERT_TRUE(session->residency().is_hot(moved));
  EXPECT_EQ(frames(), before);
}

TEST_F(Sessions, compacting_survivors_close_up_at_each_eviction_and_count_as_moved) {
  const auto session = open_session({.budget_tokens = 96, .removal = Removal::kCompact});
  say(*session, kLongText + kLongText, {.max_tokens = 4});
  EXPECT_GT(session->stats().n_moved_blocks, 0);
  EXPECT_EQ(session->next_anchor().value(), session->n_hot_tokens());
}

TEST_F(Sessions, what_is_recalled_to_the_tail_lies_right_before_what_comes_next) {
  const auto session = open_session({.budget_tokens = 160, .recall_place = RecallPlace::kTail});
  say(*session, "quagga " + kLongText + kLongText, {.max_tokens = 1});
  ASSERT_FALSE(session->residency().is_hot(BlockIndex(0)));
  const Position tail = session->next_anchor();
  say(*session, "where", {.max_tokens = 1, .recall_question = "quagga", .max_recalled_blocks = 1});
  ASSERT_EQ(last_.recalled, std::vector{BlockIndex(0)});
  EXPECT_EQ(session->anchor(BlockIndex(0)), tail);
  EXPECT_EQ(last_.n_recalled_approximate, 16);
  EXPECT_EQ(last_.n_recalled_exact, 0);
}

TEST_F(Sessions, after_a_cut_new_tokens_go_behind_what_was_recalled_to_the_tail) {
  const auto session = open_session({.budget_tokens = 160, .recall_place = RecallPlace::kTail});
  say(*session, "quagga " + kLongText + kLongText, {.max_tokens = 1});
  say(*session, "where", {.max_tokens = 1, .recall_question = "quagga", .max_recalled_blocks = 1});
  ASSERT_EQ(last_.recalled, std::vector{BlockIndex(0)});
  const Position recalled_end = session->anchor(BlockIndex(0)) + 16;
  Turn cutting(*session, std::span<const PromptPart>());
  cutting.cut(Position(session->n_blocks() * 16 - 32));
  cutting.settle();
  ASSERT_TRUE(session->residency().is_hot(BlockIndex(0)));
  EXPECT_GE(session->next_anchor(), recalled_end);
  say(*session, "and on", {.max_tokens = 4});
}

TEST_F(Sessions, a_word_that_a_border_cuts_is_found_with_both_its_blocks) {
  const auto session = open_session({.budget_tokens = 160});
  const std::string start = "one two thre ";
  say(*session, start + "quagga " + kLongText + kLongText, {.max_tokens = 1});
  const BlockIndex first(0);
  const BlockIndex second(1);
  ASSERT_FALSE(session->residency().is_hot(first) || session->residency().is_hot(second));
  ASSERT_EQ(session->block_text(first)->find("quagga"), std::string::npos);
  ASSERT_EQ(session->block_text(second)->find("quagga"), std::string::npos);
  say(*session, "where", {.max_tokens = 1, .recall_question = "quagga", .max_recalled_blocks = 2});
  EXPECT_THAT(last_.recalled, ::testing::UnorderedElementsAre(first, second));
}

TEST_F(Sessions, what_is_recalled_compacted_lies_in_its_order_among_hot_blocks_without_gaps) {
  const auto session = open_session({.budget_tokens = 160, .recall_place = RecallPlace::kCompacted});
  say(*session, "quagga " + kLongText + kLongText, {.max_tokens = 1});
  ASSERT_FALSE(session->residency().is_hot(BlockIndex(0)));
  say(*session, "where", {.max_tokens = 1, .recall_question = "quagga", .max_recalled_blocks = 1});
  ASSERT_EQ(last_.recalled, std::vector{BlockIndex(0)});
  Position next(0);
  for (std::int32_t b = 0; b < session->n_blocks(); ++b) {
    if (!session->residency().is_hot(BlockIndex(b))) continue;
    EXPECT_EQ(session->anchor(BlockIndex(b)), next) << b;
    next = next + session->residency().span(BlockIndex(b)).n_tokens();
  }
  EXPECT_EQ(session->next_anchor(), next);
  EXPECT_GT(session->stats().n_moved_blocks, 0);
}

TEST_F(Sessions, a_prompt_that_another_session_computed_comes_from_the_cold_store) {
  const auto first = open_session({.budget_tokens = 320});
  say(*first, "quagga " + kLongText);
  const std::vector<std::vector<std::byte>> bytes = evict_all(*first);
  const auto second = open_session({.budget_tokens = 320});
  say(*second, "quagga " + kLongText);
  EXPECT_TRUE(std::ranges::equal(second->tokens(), first->tokens()));
  ASSERT_GE(last_.adopted.size(), 2U);
  EXPECT_EQ(last_.n_adopted, 16 * static_cast<std::int32_t>(last_.adopted.size()));
  EXPECT_EQ(last_.n_recalled_exact, last_.n_adopted);
  EXPECT_EQ(last_.n_recalled_exact + last_.n_new, static_cast<std::int32_t>(tokenize("quagga " + kLongText).size()));
  for (const BlockIndex block : last_.adopted) {
    EXPECT_EQ(engine_->read_block(*second, block), bytes[block.index()]) << block.value();
  }
  // What differs from its begin on has nothing in common.
  const auto third = open_session({.budget_tokens = 320});
  say(*third, "zebra, " + kLongText);
  EXPECT_TRUE(last_.adopted.empty());
}

TEST_F(Sessions, sealed_blocks_that_another_session_computed_come_from_the_cold_store_too) {
  open({.kv_type = RowType::kKivi4});
  const auto first = open_session({.budget_tokens = 320});
  say(*first, "quagga " + kLongText);
  const std::vector<std::vector<std::byte>> bytes = evict_all(*first);
  const auto second = open_session({.budget_tokens = 320});
  say(*second, "quagga " + kLongText);
  EXPECT_TRUE(std::ranges::equal(second->tokens(), first->tokens()));
  ASSERT_GE(last_.adopted.size(), 2U);
  for (const BlockIndex block : last_.adopted) {
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
  EXPECT_GE(last_.n_shared, 9 * 16);
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
  EXPECT_EQ(last_.n_hot_already, before);
  EXPECT_EQ(last_.n_new, static_cast<std::int32_t>(history.size()) - before);
  resume(*session, history);
  EXPECT_EQ(last_.n_new, 1);
}

TEST_F(Sessions, an_edited_history_ends_as_if_it_had_never_been_another) {
  const auto edited = open_session({.budget_tokens = 320, .adopts = false});
  resume(*edited, tokenize(kLongText + "one two three four five"));
  const std::vector<Token> history = tokenize(kLongText + "one two zebra four five six");
  resume(*edited, history);
  EXPECT_GE(last_.n_hot_already, 150);
  const auto fresh = open_session({.budget_tokens = 320, .adopts = false});
  resume(*fresh, history);
  EXPECT_TRUE(std::ranges::equal(edited->tokens(), fresh->tokens()));
}

TEST_F(Sessions, a_lower_budget_evicts_at_once_and_gives_the_frames_to_others) {
  const auto session = open_session({.budget_tokens = 640});
  const auto generation = start(*session, kLongText + kLongText + kLongText, {.max_tokens = 4});
  Generation* const running = generation.get();
  while (generation->stats().n_generated < 2) ASSERT_TRUE(engine_->step({&running, 1}).ok());
  const std::int32_t n_free = engine_->pool().n_free();
  EXPECT_EQ(generation->set_budget(160), 160);
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
      Generation::start(*session, engine_->vocabulary(), tokenize(std::string(640, 'y')), {});
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
