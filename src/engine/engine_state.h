// Engine::State: what an engine owns, and what its sources share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/embedder.h"
#include "engine/engine.h"
#include "engine/meaning_thread.h"
#include "engine/pace.h"
#include "model/output_lengths.h"

namespace ebb {

struct Engine::State {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<Model> model;
  std::unique_ptr<FrameMemory> memory;
  std::unique_ptr<FramePool> pool;
  std::unique_ptr<FramePool> open_pool;
  HotBlocks hot;
  BlockStarts starts;
  std::unique_ptr<Runner> runner;
  Pace pace{0.0};
  // Steps whose prompts took turns.
  std::size_t n_taken_turns = 0;
  std::shared_ptr<const Policy> policy;
  std::unique_ptr<ColdStore> store;
  std::unique_ptr<BlockMover> mover;
  // Made for the first session whose policy asks for them.
  std::unique_ptr<OutputLengths> output_lengths;
  std::unique_ptr<Forecaster> forecaster;
  std::unique_ptr<KeyScorer> scorer;
  std::unique_ptr<ByteRoom> digest_room;
  // Behind what its thread uses.
  std::unique_ptr<Embedder> embedder;
  std::unique_ptr<MeaningThread> meanings;
  BlockShape shape;
  FrameBudget budget;
  FrameBudget prompt_budget;
  std::function<void()> when_fetched;
  SessionOptions session_options;

  Status open_frames(const EngineOptions& options);
  [[nodiscard]] Result<std::int32_t> count_frames(const EngineOptions& options, std::int64_t n_blocks);
  [[nodiscard]] Result<std::shared_ptr<const BudgetList>> read_shares(const GivenShares& shares) const;
  [[nodiscard]] Result<SessionOptions> checked(SessionOptions options) const;
  Status make_ready(const Policy& asking);
  [[nodiscard]] Status check_sparse_prompt(const SparsePrompt& prompt) const;
  [[nodiscard]] Result<SessionDeps> deps_for(const SessionOptions& options);
  [[nodiscard]] std::int32_t rows_of_all_prompts(std::span<Generation* const> generations) const;
  Status step(std::span<Generation* const> generations, std::int32_t n_rows_of_prompts);
  Status run(std::span<const SequenceInput> inputs);
  // A generation's rows in a step.
  struct Part;
  void gather(std::span<Generation* const> generations, std::int32_t n_rows_of_prompts, std::vector<Part>& parts,
              std::vector<SequenceInput>& inputs);
};

}  // namespace ebb
