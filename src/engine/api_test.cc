// The public API as a user of the library sees it: public headers only, and a model file.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ebb/engine.h"
#include "model/random_model.h"
#include "policy/policy.h"

namespace {

using ::testing::HasSubstr;
using namespace ebb::api;

class Api : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    model_ = (folder_ / "toy.gguf").string();
    ASSERT_TRUE(ebb::write_random_model({.n_ctx_train = 512}, model_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] EngineOptions options() const {
    return {.model = model_, .n_threads = 1, .block_size = 16, .kv_budget_tokens = 256};
  }

  static Reply say(Session& session, std::string_view text, std::string_view name = "") {
    Result<Reply> reply = session.say(text, {.max_tokens = 4, .temperature = 0.0F}, {}, name);
    EXPECT_TRUE(reply.ok()) << reply.error().message;
    return reply.ok() ? reply.value() : Reply{};
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("ebb-api-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  std::string model_;
};

TEST_F(Api, has_the_default_policy_that_everybody_else_has) {
  EXPECT_EQ(EngineOptions().eviction, ebb::kDefaultPolicy);
}

TEST_F(Api, a_session_outgrows_its_budget_and_tells_what_became_of_its_tokens) {
  Engine engine = std::move(Engine::open(options()).value());
  Session session = std::move(engine.new_session({.kv_budget_tokens = 128}).value());
  say(session, "The quagga sleeps in the barn.", "note:quagga");
  for (int i = 0; i < 6; ++i) say(session, std::string(90, 'x'));
  EXPECT_GT(session.stats().n_evicted_blocks, 5);
  EXPECT_LE(session.stats().peak_hot_tokens, 128);
  const std::int32_t before = session.stats().n_tokens;
  const TurnStats turn = say(session, "Where does the quagga sleep?").stats;
  EXPECT_GT(turn.n_recalled_exact + turn.n_recalled_approximate, 0);
  EXPECT_EQ(turn.n_hot_already + turn.n_partly_hot + turn.n_shared + turn.n_recalled_exact +
                turn.n_recalled_approximate + turn.n_recomputed + turn.n_holes,
            before);
  ASSERT_EQ(engine.stats().tiers.size(), 1U);
  EXPECT_EQ(engine.stats().tiers.front().name, "ram");
  EXPECT_GT(engine.stats().tiers.front().bytes, 0U);
}

TEST_F(Api, a_prompt_may_have_a_larger_budget_than_the_reply_and_a_session_its_own_shares) {
  EngineOptions with_prompts = options();
  with_prompts.kv_prompt_budget_tokens = 448;
  Engine engine = std::move(Engine::open(with_prompts).value());
  {
    Session session = std::move(engine.new_session({.kv_layer_shares = {3, 1}}).value());
    const TurnStats turn = say(session, std::string(400, 'x')).stats;
    EXPECT_EQ(turn.prompt_budget_tokens, 448);
    EXPECT_GT(turn.prompt_peak_tokens, 256);
    EXPECT_EQ(turn.reply_budget_tokens, 256);
    EXPECT_LE(turn.reply_peak_tokens, 256);
    EXPECT_EQ(session.stats().budget_tokens, 256);
  }
  Session none = std::move(engine.new_session({.kv_budget_tokens = 128, .kv_prompt_budget_tokens = 128}).value());
  EXPECT_EQ(say(none, std::string(300, 'x')).stats.prompt_budget_tokens, 128);
  const auto refused = engine.new_session({.kv_layer_shares = {1, 1, 1}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("3 shares by layer, and the model has 2 layers"));
  EXPECT_THAT(engine.new_session({.kv_budgets_file = "/nowhere.json"}).error().message, HasSubstr("cannot be read"));
}

TEST_F(Api, a_session_has_its_own_policy_and_its_notes_survive_rest) {
  Engine engine = std::move(Engine::open(options()).value());
  Session session = std::move(
      engine.new_session({.kv_budget_tokens = 128, .eviction = "snapkv:window=8", .recent_tokens = 16}).value());
  for (int i = 0; i < 6; ++i) say(session, "An ox and " + std::string(80, 'x'));
  EXPECT_GT(session.stats().n_evicted_blocks, 5);
  EXPECT_LE(session.stats().peak_hot_tokens, 128);
  const std::vector<std::byte> image = session.image().value();
  const SessionOptions as_before = {.kv_budget_tokens = 128, .eviction = "snapkv:window=8", .recent_tokens = 16};
  const auto again = engine.restore(image, as_before);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(engine.restore(image, {.kv_budget_tokens = 128}).ok())
      << "a policy that asks for nothing reads over them";
  const auto refused = engine.new_session({.eviction = "snapkv:windw=8"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("window (1 to 512"));
}

TEST_F(Api, blocks_are_named_pinned_evicted_and_recalled) {
  Engine engine = std::move(Engine::open(options()).value());
  Session session = std::move(engine.new_session({.sink_tokens = 0}).value());
  say(session, std::string(60, 'f'), "file:a.py");
  ASSERT_GE(session.find("file:a.py").size(), 3U);
  EXPECT_EQ(session.find("file:a.py#1").size(), 1U);
  EXPECT_THAT(session.text(1).value(), HasSubstr("fff"));
  const std::int32_t n = session.evict("file:a.py");
  EXPECT_GE(n, 3);
  EXPECT_EQ(session.find("file:a.py").front().state, BlockState::kSaved);
  EXPECT_EQ(session.recall("file:a.py").value(), n);
  EXPECT_EQ(session.find("file:a.py").front().state, BlockState::kClean);
  EXPECT_EQ(session.pin("file:a.py"), 1);
  EXPECT_EQ(session.pin("file:b.py"), 0);
  for (int i = 0; i < 6; ++i) say(session, std::string(90, 'x'));
  EXPECT_EQ(session.find("file:a.py").front().state, BlockState::kClean) << "pinned";
  EXPECT_EQ(session.set_priority("file:a.py", -1.0).error().code, Code::kInvalidArgument);
}

TEST_F(Api, a_session_goes_on_in_another_engine_with_the_same_disk) {
  EngineOptions with_disk = options();
  with_disk.ram_bytes = 0;
  with_disk.disk_folder = (folder_ / "cold").string();
  std::vector<std::byte> image;
  std::int32_t n_tokens = 0;
  {
    Engine engine = std::move(Engine::open(with_disk).value());
    Session session = std::move(engine.new_session().value());
    say(session, "The quagga sleeps in the barn. " + std::string(60, 'x'));
    image = session.image().value();
    n_tokens = session.stats().n_tokens;
    ASSERT_TRUE(engine.flush().ok());
  }
  Engine engine = std::move(Engine::open(with_disk).value());
  Session session = std::move(engine.restore(image).value());
  EXPECT_EQ(session.stats().n_tokens, n_tokens);
  EXPECT_EQ(session.stats().n_hot_tokens, n_tokens) << "all of it fits, and none of it was computed";
  EXPECT_EQ(session.stats().n_recomputed_blocks, 0);
  const Reply reply = say(session, "Go on.");
  EXPECT_EQ(reply.stats.n_holes, 0);
  image[image.size() / 2] ^= std::byte{1};
  EXPECT_EQ(engine.restore(image).error().code, Code::kDamaged);
}

TEST_F(Api, a_listener_hears_the_text_and_can_end_it) {
  Engine engine = std::move(Engine::open(options()).value());
  Session session = std::move(engine.new_session().value());
  std::string heard;
  int n_events = 0;
  const Reply whole = session
                          .go_on("abc", {.max_tokens = 6, .temperature = 0.0F},
                                 [&](const Event& event) {
                                   heard += event.text;
                                   return true;
                                 })
                          .value();
  EXPECT_EQ(heard, whole.text);
  const Reply cut =
      session.go_on("abc", {.max_tokens = 50, .temperature = 0.0F}, [&](const Event&) { return ++n_events < 3; })
          .value();
  EXPECT_EQ(cut.finish_reason, "cancelled");
  EXPECT_EQ(n_events, 3);
}

TEST_F(Api, a_reply_names_who_chooses_what_comes_back) {
  Engine engine = std::move(Engine::open(options()).value());
  Session session = std::move(engine.new_session({.kv_budget_tokens = 128}).value());
  say(session, "The quagga sleeps in the barn.", "note:quagga");
  for (int i = 0; i < 6; ++i) say(session, std::string(90, 'x'));
  const auto ask = [&](const char* selectors) {
    return session.say("Where does the quagga sleep?", {.max_tokens = 4, .temperature = 0.0F, .selectors = selectors});
  };
  const TurnStats nobody = ask("none").value().stats;
  EXPECT_EQ(nobody.n_recalled_exact + nobody.n_recalled_approximate, 0);
  EXPECT_TRUE(ask("identity+lexical").ok());
  EXPECT_THAT(ask("psychic").error().message, HasSubstr("no selector psychic"));
  EXPECT_EQ(session.say("Where?", {.max_tokens = 4, .max_recall_ms = -1.0}).error().code, Code::kInvalidArgument);
  const Result<Reply> refused = ask("lexical+embedding");
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("EngineOptions::embedding_model"));
  EngineOptions with_file = options();
  with_file.embedding_model = "/nowhere.gguf";
  EXPECT_EQ(Engine::open(with_file).error().code, Code::kNotFound);
}

TEST_F(Api, errors_say_what_to_do) {
  EngineOptions wrong = options();
  wrong.model = "/nowhere.gguf";
  EXPECT_EQ(Engine::open(wrong).error().code, Code::kNotFound);
  wrong = options();
  wrong.eviction = "lru";
  EXPECT_THAT(Engine::open(wrong).error().message, HasSubstr("streaming"));
  wrong = options();
  wrong.kv_type = "q2";
  EXPECT_THAT(Engine::open(wrong).error().message, HasSubstr("q8_0"));
  Engine engine = std::move(Engine::open(options()).value());
  EXPECT_THAT(engine.new_session({.kv_budget_tokens = 1}).error().message, HasSubstr("give 64 to"));
}

}  // namespace
