// Sessions: one engine on a small random model, for whole-session tests: blocks of 16 tokens, a trained context of 640.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/generation.h"
#include "model/random_model.h"
#include "tests/files.h"

namespace ebb {

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
        Generation::start(session, engine_->vocabulary(), Prompt(tokenize(text)), options);
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
      ASSERT_LE(session.hot().n_hot_frames(), session.budget().n_frames);
    }
  }

  void say(Session& session, std::string_view text, const GenerationOptions& options = {.max_tokens = 4}) {
    const auto generation = start(session, text, options);
    finish(session, *generation);
    last_ = generation->turn_stats();
  }

  void resume(Session& session, std::vector<Token> history) {
    Result<std::unique_ptr<Generation>> generation =
        Generation::resume(session, engine_->vocabulary(), Prompt(std::move(history)),
                           {.sampling = {.temperature = 0.0F}, .max_tokens = 4});
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
    session.evict(blocks);
    return bytes;
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Engine> engine_;
  TurnStats last_;
};

inline const std::string kLongText(150, 'x');

}  // namespace ebb
