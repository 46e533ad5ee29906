// A prompt's own budget on an engine: alone, of several requests on one pool, beside idle sessions, cancelled; and lists of
// budgets on real attention.
#include <atomic>
#include <fstream>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/scheduler.h"
#include "json/parse_json.h"
#include "model/random_model.h"
#include "tests/files.h"

namespace ebb::prompt_budget_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kBudget = 256;
constexpr std::int32_t kPromptBudget = 1024;

class PromptBudgets : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_random_model({.n_layers = 3, .n_ctx_train = 4096}, file_.path()).ok()); }

  EngineOptions options(std::int32_t n_prompt_tokens) const {
    return {.model = file_.path(),
            .n_threads = 1,
            .block_size = kBlockSize,
            .kv_budget_tokens = kBudget,
            .chunk = 64,
            .session = {.prompt_budget_tokens = n_prompt_tokens}};
  }

  void open(const EngineOptions& options) {
    Result<std::unique_ptr<Engine>> engine = Engine::open(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
  }

  void start(std::int32_t n_prompt_tokens, std::int32_t n_parallel) {
    open(options(n_prompt_tokens));
    Result<std::unique_ptr<Scheduler>> scheduler =
        Scheduler::start(*engine_, {.n_parallel = n_parallel, .session = engine_->session_options()});
    ASSERT_TRUE(scheduler.ok()) << scheduler.status().message();
    scheduler_ = *std::move(scheduler);
  }

  [[nodiscard]] std::vector<Token> tokens(std::size_t n, char letter) const {
    std::vector<Token> all = engine_->vocabulary().tokenize(std::string(2 * n, letter)).value();
    while (all.size() < n) all.push_back(all.back());
    all.resize(n);
    return all;
  }

  Request request(std::size_t n_tokens, char letter, std::string lane) {
    return {.owner = "",
            .lane_id = std::move(lane),
            .history = Prompt(tokens(n_tokens, letter)),
            .options = {.sampling = {.temperature = 0.0F}, .max_tokens = 12}};
  }

  // Law 1 of all sessions, looked at behind every step of each.
  std::future<RequestEnd> submit(Request request, RequestId* id = nullptr) {
    auto promise = std::make_shared<std::promise<RequestEnd>>();
    request.on_progress = [this](const RequestProgress&) {
      const FramePool& pool = engine_->pool();
      if (pool.n_hot() > pool.n_in_force()) ++n_over_;
      n_most_in_force_ = std::max(n_most_in_force_.load(), pool.n_in_force());
    };
    request.on_end = [promise](const RequestEnd& end) { promise->set_value(end); };
    std::future<RequestEnd> future = promise->get_future();
    const Result<RequestId> submitted = scheduler_->submit(std::move(request));
    EXPECT_TRUE(submitted.ok()) << submitted.status().message();
    if (id != nullptr) *id = *submitted;
    return future;
  }

  [[nodiscard]] std::int32_t frames(std::int32_t n_tokens) const {
    return FrameBudget::of_tokens(n_tokens, engine_->shape()).n_frames;
  }

  // In force and hot, between two steps.
  [[nodiscard]] std::pair<std::int32_t, std::int32_t> pool_now() {
    std::pair<std::int32_t, std::int32_t> now;
    scheduler_->inspect([&](const Lanes&) { now = {engine_->pool().n_in_force(), engine_->pool().n_hot()}; });
    return now;
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::atomic<int> n_over_ = 0;
  std::atomic<std::int32_t> n_most_in_force_ = 0;
};

TEST_F(PromptBudgets, a_request_alone_has_all_of_it_for_its_prompt_and_the_budget_for_its_reply) {
  start(kPromptBudget, 4);
  for (int turn = 0; turn < 3; ++turn) {
    const RequestEnd end = submit(request(900 + 300 * turn, 'a', "one")).get();
    ASSERT_TRUE(end.status.ok()) << end.status.message();
    EXPECT_EQ(end.prompt.budget, kPromptBudget);
    EXPECT_GT(end.prompt.peak, kPromptBudget - 8 * kBlockSize);
    EXPECT_LE(end.prompt.peak, kPromptBudget);
    EXPECT_EQ(end.reply.budget, kBudget);
    EXPECT_LE(end.reply.peak, kBudget);
    EXPECT_EQ(end.budget_tokens, kBudget);
    EXPECT_EQ(pool_now().first, frames(kBudget));
    EXPECT_LE(pool_now().second, frames(kBudget));
  }
  EXPECT_EQ(n_over_, 0);
  EXPECT_EQ(n_most_in_force_, frames(kPromptBudget));
}

TEST_F(PromptBudgets, several_prompts_share_what_is_beyond_the_budget) {
  start(kPromptBudget, 4);
  std::vector<std::future<RequestEnd>> ends;
  for (int i = 0; i < 4; ++i) ends.push_back(submit(request(700, static_cast<char>('a' + i), std::to_string(i))));
  for (std::future<RequestEnd>& told : ends) {
    const RequestEnd end = told.get();
    ASSERT_TRUE(end.status.ok()) << end.status.message();
    EXPECT_LE(end.prompt.peak, end.prompt.budget);
    EXPECT_GE(end.prompt.budget, kPromptBudget / 4);
    EXPECT_LE(end.reply.peak, end.reply.budget);
    EXPECT_LE(end.reply.budget, kBudget);
  }
  EXPECT_EQ(n_over_, 0);
  EXPECT_LE(n_most_in_force_, frames(kPromptBudget));
  EXPECT_EQ(pool_now().first, frames(kBudget));
  EXPECT_LE(pool_now().second, frames(kBudget));
}

TEST_F(PromptBudgets, idle_sessions_give_up_what_the_one_at_work_keeps_behind_its_prompt) {
  start(kPromptBudget, 2);
  ASSERT_TRUE(submit(request(400, 'a', "idle")).get().status.ok());
  EXPECT_GT(pool_now().second, frames(kBudget - 3 * kBlockSize));
  const RequestEnd end = submit(request(900, 'b', "busy")).get();
  ASSERT_TRUE(end.status.ok()) << end.status.message();
  EXPECT_GT(end.n_hot_tokens, kBudget - 3 * kBlockSize);
  EXPECT_EQ(n_over_, 0);
  scheduler_->inspect([](const Lanes& lanes) {
    for (const Lane& lane : lanes.all()) EXPECT_EQ(lane.session == nullptr, lane.id == "idle") << lane.id;
  });
}

TEST_F(PromptBudgets, a_request_that_is_cancelled_in_its_prompt_gives_back_what_it_had) {
  start(kPromptBudget, 2);
  RequestId id = 0;
  Request long_one = request(3000, 'a', "one");
  auto future = submit(std::move(long_one), &id);
  while (pool_now().second < frames(kBudget)) {}
  scheduler_->cancel(id);
  (void)future.get();
  EXPECT_EQ(pool_now().first, frames(kBudget));
  EXPECT_LE(pool_now().second, frames(kBudget));
  const RequestEnd next = submit(request(900, 'a', "one")).get();
  EXPECT_TRUE(next.status.ok()) << next.status.message();
  EXPECT_EQ(n_over_, 0);
}

TEST_F(PromptBudgets, a_budget_that_is_lowered_leaves_the_prompts_as_it_is) {
  start(kPromptBudget, 2);
  ASSERT_TRUE(scheduler_->set_budget(kBudget / 2).ok());
  const RequestEnd end = submit(request(1200, 'a', "one")).get();
  EXPECT_EQ(end.prompt.budget, kPromptBudget);
  EXPECT_EQ(end.reply.budget, kBudget / 2);
  EXPECT_LE(end.reply.peak, kBudget / 2);
  EXPECT_FALSE(scheduler_->set_budget(kPromptBudget).ok()) << "what is reserved for prompts is theirs";
  EXPECT_EQ(n_over_, 0);
}

TEST_F(PromptBudgets, without_one_prompts_have_their_share_of_the_budget_and_no_more) {
  start(0, 2);
  ASSERT_TRUE(scheduler_->set_budget(kBudget / 2).ok());
  const RequestEnd end = submit(request(600, 'a', "one")).get();
  EXPECT_EQ(end.prompt.budget, kBudget / 2);
  EXPECT_EQ(end.reply.budget, kBudget / 2);
  EXPECT_EQ(n_most_in_force_, frames(kBudget / 2));
}

TEST_F(PromptBudgets, a_budget_that_is_more_than_the_prompts_or_frames_that_there_are_not_is_refused) {
  const auto refused = Engine::open(options(kBudget - 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("a prompt budget of 255 tokens is less than the KV budget of 256"));
  EXPECT_FALSE(Engine::open(options(-1)).ok());
  open(options(kPromptBudget));
  EXPECT_EQ(engine_->budget_tokens(), kBudget);
  EXPECT_EQ(engine_->prompt_budget_tokens(), kPromptBudget);
  EXPECT_TRUE(engine_->new_session({.budget_tokens = 128, .prompt_budget_tokens = 512}).ok());
  const auto session = engine_->new_session({.budget_tokens = 128, .prompt_budget_tokens = 2 * kPromptBudget});
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.status().message(), HasSubstr("give 128, its KV budget, to 1024"));
}

// Law 3: what left behind the first prompt comes back for the second, whose logits are those of a session that never evicts.
TEST_F(PromptBudgets, a_second_prompt_that_sees_all_again_has_the_logits_of_one_that_never_evicts) {
  open(options(kPromptBudget));
  const std::vector<Token> said = tokens(900, 'a');
  std::vector<double> chances;
  for (const std::int32_t budget : {kBudget, kPromptBudget}) {
    if (budget == kPromptBudget) {
      EngineOptions whole = options(0);
      whole.kv_budget_tokens = kPromptBudget;
      open(whole);
    }
    const std::unique_ptr<Session> session = *engine_->new_session();
    std::int64_t n_evicted = 0;
    for (const std::size_t n_tokens : {std::size_t{880}, said.size()}) {
      const Prompt history(std::vector<Token>(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(n_tokens)));
      const GenerationOptions greedy = {.sampling = {.temperature = 0.0F}, .max_tokens = 1, .n_chances = 1};
      const auto generation = *Generation::resume(*session, engine_->vocabulary(), history, greedy);
      Generation* const running = generation.get();
      while (!running->finished()) ASSERT_TRUE(engine_->step({&running, 1}).ok());
      EXPECT_EQ(running->turn_stats().from[Origin::kHole], 0);
      n_evicted += std::ssize(running->turn_stats().acts.evicted);
      if (n_tokens == said.size()) chances.push_back(running->take_chances().at(0).kept.logprob);
    }
    EXPECT_EQ(n_evicted > 0, budget == kBudget);
  }
  EXPECT_EQ(chances.at(0), chances.at(1));
}

TEST_F(PromptBudgets, where_nothing_leaves_a_prompt_has_what_the_session_has) {
  EngineOptions nothing = options(kPromptBudget);
  nothing.policy = "none";
  open(nothing);
  const auto session = *engine_->new_session();
  const GenerationOptions greedy = {.sampling = {.temperature = 0.0F}, .max_tokens = 4};
  const auto generation = *Generation::start(*session, engine_->vocabulary(), Prompt(tokens(600, 'a')), greedy);
  Generation* const running = generation.get();
  while (!running->finished()) {
    ASSERT_TRUE(engine_->step({&running, 1}).ok());
    EXPECT_LE(session->budget_tokens(), kBudget);
    EXPECT_LE(session->n_hot_tokens(), kBudget);
  }
  EXPECT_EQ(running->status().code(), Code::kOutOfBudget);
}

// --- lists ---

class BudgetLists : public PromptBudgets {
 protected:
  [[nodiscard]] static std::vector<std::int32_t> frames_in_use(const Session& session) {
    std::vector<std::int32_t> n_frames(session.shape().n_heads(), 0);
    for (const BlockIndex block : session.hot().hot_blocks()) {
      session.hot().hot_heads(block).for_each([&](std::size_t head) { ++n_frames[head]; });
    }
    return n_frames;
  }

  void generate(Session& session, std::size_t n_tokens, std::int32_t n_reply) {
    const GenerationOptions greedy = {.sampling = {.temperature = 0.0F}, .max_tokens = n_reply};
    const auto generation = *Generation::start(session, engine_->vocabulary(), Prompt(tokens(n_tokens, 'a')), greedy);
    Generation* const running = generation.get();
    while (!running->finished()) {
      ASSERT_TRUE(engine_->step({&running, 1}).ok());
      session.check_invariants();
    }
    ASSERT_TRUE(running->status().ok()) << running->status().message();
  }
};

TEST_F(BudgetLists, frames_in_use_are_the_lists_under_every_policy) {
  EngineOptions listed = options(0);
  listed.shares.by_layer = {3, 2, 1};
  listed.kv_budget_tokens = 24 * kBlockSize;
  for (const PolicyEntry& entry : policies()) {
    if (entry.name == "none") continue;
    listed.policy = entry.name;
    open(listed);
    const auto session = *engine_->new_session(
        {.budget_list = engine_->session_options().budget_list, .sink_tokens = 0, .recent_tokens = 0});
    generate(*session, 1200, 40);
    const std::vector<std::int32_t> in_use = frames_in_use(*session);
    // Where the heads of a layer win from each other, the layer has what the list says.
    const FrameSharing sharing = (*make_policy(entry.name))->shares().sharing;
    const bool is_won = sharing == FrameSharing::kAcrossHeads || sharing == FrameSharing::kAcrossLayers;
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const double wanted = std::vector<double>{36, 24, 12}[layer];
      EXPECT_NEAR(in_use[2 * layer] + in_use[2 * layer + 1], 2 * wanted, 2.0) << entry.name << ", layer " << layer;
      if (is_won) continue;
      for (const std::size_t head : {2 * layer, 2 * layer + 1}) EXPECT_NEAR(in_use[head], wanted, 1.0) << entry.name;
    }
  }
}

TEST_F(BudgetLists, a_file_is_taken_for_its_model_only) {
  open(options(0));
  const std::string own = engine_->model().fingerprint().hex();
  const TemporaryFile budgets(".json");
  const auto write = [&](const std::string& model) {
    const Json json = {
        {"format", "ebb-kv-budgets"},       {"version", 1}, {"model", model}, {"n_layers", 3}, {"n_kv_heads", 2},
        {"heads", {{4, 1}, {2, 2}, {1, 2}}}};
    std::ofstream(budgets.path()) << json.dump();
  };
  EngineOptions listed = options(0);
  listed.shares.file = budgets.path();
  const std::string other(32, '0');
  write(other);
  const auto refused = Engine::open(listed);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr(budgets.path().string()), HasSubstr(own), HasSubstr(other)));
  write(own);
  open(listed);
  const auto session = *engine_->new_session();
  generate(*session, 900, 20);
  const std::vector<std::int32_t> in_use = frames_in_use(*session);
  EXPECT_GT(in_use[0], 2 * in_use[1]);
  listed.shares.by_layer = {1, 1, 1};
  EXPECT_THAT(Engine::open(listed).status().message(), HasSubstr("both given"));
  listed.shares = {.file = {}, .by_layer = {1, 1}};
  EXPECT_THAT(Engine::open(listed).status().message(), HasSubstr("2 shares by layer, and the model has 3 layers"));
}

}  // namespace
}  // namespace ebb::prompt_budget_test
