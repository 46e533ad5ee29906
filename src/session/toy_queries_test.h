// ToyQueries: sessions over a toy model whose matrices of queries and of keys are the same, so that what its queries were, before they
// are rotated, can be read from its frames.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/frame_rows.h"
#include "model/runner.h"
#include "model/toy_gguf.h"
#include "session/turn.h"

namespace ebb {

class ToyQueries {
 public:
  struct Options {
    // With as many KV heads as query heads.
    RandomModelSpec spec;
    RowType kv_type = RowType::kF32;
    std::int32_t block_size = 1;
    bool composed = false;
    std::int32_t n_threads = 2;
  };

  explicit ToyQueries(const Options& options) : file_(options.spec) {
    const std::filesystem::path path = file_.write_with_same(keys_as_queries(options.spec));
    backend_ = *Backend::open("cpu", options.n_threads);
    model_ = *Model::load(path, *backend_, {});
    vocabulary_ = *Vocabulary::load(path);
    const FrameLayout layout =
        Runner::layout_for(*model_, *backend_, options.kv_type, options.block_size, options.composed);
    shape_ = {.n_layers = model_->hparams().n_layers,
              .n_kv_heads = model_->hparams().n_kv_heads,
              .block_size = options.block_size};
    for (std::int32_t l = 0; l < shape_.n_layers; ++l) {
      shape_.windows.push_back(model_->hparams().window(LayerIndex(l)));
    }
    constexpr std::int32_t kBlocks = 500;
    const std::int32_t n_frames = kBlocks * shape_.frames_per_block();
    const std::int32_t n_open = layout.seals() ? 4 * shape_.frames_per_block() : 0;
    memory_ = *FrameMemory::open(*backend_, layout, n_frames, n_open);
    pool_ = std::make_unique<FramePool>(n_frames);
    if (n_open > 0) open_pool_ = std::make_unique<FramePool>(n_open);
    runner_ = *Runner::create(*model_, *backend_, *memory_, {.max_rows = 64});
    mover_ = std::make_unique<BlockMover>(*model_, layout);
    forecaster_ = std::make_unique<Forecaster>(*model_, options.n_threads);
  }

  SessionDeps deps(const std::string& policy) {
    return {.pool = *pool_,
            .memory = *memory_,
            .vocabulary = *vocabulary_,
            .policy = *make_policy(policy),
            .mover = mover_.get(),
            .forecaster = forecaster_.get(),
            .open_pool = open_pool_.get(),
            .shape = shape_,
            .model = {1, 2},
            .n_ctx_train = model_->hparams().n_ctx_train,
            .gives_sums_only = runner_->is_composed()};
  }
  static SessionOptions options() { return {.budget_tokens = 400, .recent_tokens = 0}; }
  std::unique_ptr<Session> make_session(const std::string& policy) {
    return std::make_unique<Session>(deps(policy), options());
  }

  [[nodiscard]] static std::vector<Token> tokens(std::int32_t n, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < n; ++i) tokens.emplace_back(static_cast<std::int32_t>(random() % 256));
    return tokens;
  }

  // A turn of each session, computed together, at most n_rows of each at once.
  void say(std::vector<std::pair<Session*, std::vector<Token>>> said, std::int32_t n_rows) {
    std::vector<std::unique_ptr<Turn>> turns;
    for (auto& [session, tokens] : said) turns.push_back(std::make_unique<Turn>(*session, Prompt(std::move(tokens))));
    while (true) {
      std::vector<SequenceInput> inputs;
      std::vector<Turn*> at_work;
      for (const auto& turn : turns) {
        if (turn->n_pending() == 0) continue;
        Result<SequenceInput> input = turn->begin_step(n_rows);
        ASSERT_TRUE(input.ok()) << input.status().message();
        inputs.push_back(*std::move(input));
        at_work.push_back(turn.get());
      }
      if (inputs.empty()) break;
      ASSERT_TRUE(runner_->run(inputs).ok());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        at_work[i]->end_step(runner_->mass(static_cast<std::int32_t>(i)));
      }
    }
    for (const auto& turn : turns) turn->settle();
  }

  struct Rows {
    FrameRows keys;
    FrameRows values;
  };
  // Of a full block that is hot there.
  [[nodiscard]] Rows rows(const Session& session, BlockIndex block, std::size_t head) const {
    HeadSet one(shape_.n_heads());
    one.add(head);
    std::vector<std::byte> frame(memory_->layout().frame_bytes());
    session.read_frames(block, one, frame);
    return {.keys = FrameRows::keys_of(memory_->layout(), frame, shape_.block_size),
            .values = FrameRows::values_of(memory_->layout(), frame, shape_.block_size)};
  }

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const BlockShape& shape() const { return shape_; }
  [[nodiscard]] Runner& runner() { return *runner_; }

 private:
  static std::vector<std::pair<std::string, std::string>> keys_as_queries(const RandomModelSpec& spec) {
    std::vector<std::pair<std::string, std::string>> same;
    const bool has_norm = spec.architecture == "qwen3" || spec.architecture == "gemma3";
    const bool has_bias = spec.architecture == "qwen2";
    for (std::int32_t layer = 0; layer < spec.n_layers; ++layer) {
      const auto add = [&](const char* kind) {
        same.emplace_back(fmt::format("blk.{}.attn_k{}", layer, kind), fmt::format("blk.{}.attn_q{}", layer, kind));
      };
      add(".weight");
      if (has_norm) add("_norm.weight");
      if (has_bias) add(".bias");
    }
    return same;
  }

  ToyGguf file_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Vocabulary> vocabulary_;
  BlockShape shape_;
  std::unique_ptr<FrameMemory> memory_;
  std::unique_ptr<FramePool> pool_;
  std::unique_ptr<FramePool> open_pool_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<BlockMover> mover_;
  std::unique_ptr<Forecaster> forecaster_;
};

}  // namespace ebb
