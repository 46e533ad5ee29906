// Sharing: sessions of one small model that use one another's frames, for the tests of that.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo_sessions.h"

namespace ebb {

struct Form {
  RowType kv_type = RowType::kF32;
  // Frames by row, as other backends have them.
  bool composed = false;
};

[[nodiscard]] inline auto all_forms() {
  return ::testing::Values(Form{RowType::kF32}, Form{RowType::kF16}, Form{RowType::kQ8_0}, Form{RowType::kKivi4},
                           Form{RowType::kF16, true}, Form{RowType::kQ8_0, true});
}

[[nodiscard]] inline std::string form_name(const ::testing::TestParamInfo<Form>& form) {
  return fmt::format("{}{}", row_type_name(form.param.kv_type), form.param.composed ? "_by_row" : "");
}

class Sharing : public ::testing::TestWithParam<Form> {
 protected:
  static constexpr std::int32_t kBlockSize = 8;
  static constexpr std::int32_t kBudgetBlocks = 10;
  static constexpr RandomModelSpec kModel = {
      .n_layers = 2, .n_embd = 32, .n_heads = 2, .n_kv_heads = 1, .head_dim = 32, .n_ff = 32, .n_vocab = 272};

  void SetUp() override {
    ASSERT_TRUE(write_random_model(kModel, file_.path()).ok());
    open(60);
    store_ = *ColdStore::open({.ram_bytes = std::size_t{1} << 20});
  }

  void open(std::int32_t n_pool_blocks) { sessions_ = open_sessions(n_pool_blocks); }

  std::unique_ptr<SoloSessions> open_sessions(std::int32_t n_pool_blocks) {
    const SoloOptions options = {.n_threads = 1,
                                 .kv_type = GetParam().kv_type,
                                 .block_size = kBlockSize,
                                 .n_ctx = n_pool_blocks * kBlockSize,
                                 .composed = GetParam().composed};
    return *SoloSessions::open(file_.path(), options, "recency");
  }

  std::unique_ptr<Session> make_session(SessionOptions options = {}) {
    if (options.budget_tokens == 0) options.budget_tokens = kBudgetBlocks * kBlockSize;
    options.recent_tokens = kBlockSize;
    return std::make_unique<Session>(sessions_->sharing_deps(store_.get()), options);
  }

  // Tokens for every session of one variant: the same n behind the same n_before; all variants begin alike.
  static std::vector<Token> script(std::int32_t n_before, std::int32_t n, std::int32_t variant = 0) {
    std::vector<Token> tokens;
    for (std::int32_t p = n_before; p < n_before + n; ++p) {
      const std::int32_t shift = p < 3 * kBlockSize + 3 ? 0 : variant * 31;
      tokens.emplace_back((p * 37 + p * p % 11 + shift) % kModel.n_vocab);
    }
    return tokens;
  }

  // A turn of the next n tokens of the script, one row to a step; the logits of its last.
  std::optional<std::vector<float>> say(Session& session, std::int32_t n, std::int32_t variant = 0) {
    Turn turn(session, Prompt(script(session.end().value(), n, variant)));
    std::optional<std::vector<float>> logits;
    while (turn.n_pending() > 0) {
      logits = sessions_->step(turn);
      if (!logits) break;
    }
    last_ = turn.settle();
    if (!logits) session.cut(session.end());
    return logits;
  }

  // A turn that brings them back and says nothing.
  void recall(Session& session, std::span<const BlockIndex> blocks) {
    Turn turn(session, Prompt());
    turn.recall(blocks);
    turn.prepare_all(1);
    while (turn.n_recomputing() > 0 && sessions_->step(turn)) {}
    last_ = turn.settle();
  }

  // That no other session uses.
  static std::int32_t n_own_blocks(const Session& session) {
    std::int32_t n_frames = 0;
    for (const BlockIndex block : session.hot().hot_blocks()) n_frames += session.hot().n_own_frames(block);
    return n_frames / session.shape().frames_per_block();
  }

  [[nodiscard]] FramePool& pool() { return sessions_->solo().pool(); }
  [[nodiscard]] std::int32_t n_hot_blocks() { return pool().n_hot() / sessions_->solo().shape().frames_per_block(); }
  static std::vector<std::byte> bytes_of(const Session& session, std::int32_t block) {
    return SoloSessions::bytes_of(session, BlockIndex(block));
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  TurnStats last_;
};

}  // namespace ebb
