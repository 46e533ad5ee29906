#include "tests/solo_sessions.h"

#include <utility>

#include <gtest/gtest.h>

namespace ebb {

Result<std::unique_ptr<SoloSessions>> SoloSessions::open(const std::filesystem::path& gguf, const SoloOptions& options,
                                                         const std::string& policy) {
  EBB_ASSIGN_OR_RETURN(std::unique_ptr<Policy> made, make_policy(policy));
  return open(gguf, options, std::move(made));
}

Result<std::unique_ptr<SoloSessions>> SoloSessions::open(const std::filesystem::path& gguf, const SoloOptions& options,
                                                         std::unique_ptr<Policy> policy) {
  std::unique_ptr<SoloSessions> sessions(new SoloSessions);
  EBB_ASSIGN_OR_RETURN(sessions->solo_, Solo::open(gguf, options));
  EBB_ASSIGN_OR_RETURN(sessions->vocabulary_, Vocabulary::load(gguf));
  sessions->policy_ = std::move(policy);
  EBB_ASSIGN_OR_RETURN(sessions->output_lengths_, OutputLengths::make(sessions->solo_->model(), 1));
  sessions->forecaster_ = std::make_unique<Forecaster>(sessions->solo_->model(), options.n_threads);
  sessions->mover_ = std::make_unique<BlockMover>(sessions->solo_->model(), sessions->solo_->memory().layout());
  return sessions;
}

SessionDeps SoloSessions::deps(ColdStore* store) {
  return {.pool = solo_->pool(),
          .memory = solo_->memory(),
          .vocabulary = *vocabulary_,
          .policy = policy_,
          .store = store,
          .mover = mover_.get(),
          .output_lengths = output_lengths_.get(),
          .forecaster = forecaster_.get(),
          .open_pool = solo_->open_pool(),
          .shape = solo_->shape(),
          .model = solo_->model().fingerprint(),
          .n_ctx_train = solo_->model().hparams().n_ctx_train};
}

SessionDeps SoloSessions::sharing_deps(ColdStore* store) {
  SessionDeps deps = this->deps(store);
  deps.hot = &hot_;
  deps.starts = &starts_;
  return deps;
}

std::vector<std::byte> SoloSessions::bytes_of(const Session& session, BlockIndex block) {
  std::vector<std::byte> bytes(session.block_bytes(block));
  session.read_frames(block, bytes);
  return bytes;
}

bool SoloSessions::step(std::span<Turn* const> turns, std::int32_t n_rows) {
  std::vector<SequenceInput> inputs;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Result<SequenceInput> input = turns[i]->begin_step(n_rows);
    if (input.ok()) {
      inputs.push_back(*std::move(input));
      continue;
    }
    for (Turn* turn : turns.first(i)) turn->abandon_step();
    return false;
  }
  const Status status = solo_->runner().run(inputs);
  EXPECT_TRUE(status.ok()) << status.message();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    turns[i]->end_step(solo_->runner().mass(static_cast<std::int32_t>(i)));
  }
  return true;
}

Acts SoloSessions::recall(Session& session, std::span<const BlockIndex> blocks, std::int32_t n_rows) {
  Acts acts = session.recall(blocks);
  Recompute again(session);
  again.add(std::exchange(acts.lost, {}));
  while (const std::optional<SequenceInput> input = again.begin_step(n_rows, acts)) {
    const Status status = solo_->runner().run({&*input, 1});
    EXPECT_TRUE(status.ok()) << status.message();
    again.end_step(acts);
  }
  session.settle_anchors(acts);
  return acts;
}

std::optional<std::vector<float>> SoloSessions::step(Turn& turn) {
  const Result<SequenceInput> input = turn.begin_step(1);
  if (!input.ok()) return std::nullopt;
  const Status status = solo_->runner().run({&*input, 1});
  EXPECT_TRUE(status.ok()) << status.message();
  turn.end_step(solo_->runner().mass(0));
  if (input->n_outputs == 0) return std::vector<float>();
  const auto logits = solo_->runner().logits(0);
  return std::vector<float>(logits.begin(), logits.end());
}

}  // namespace ebb
