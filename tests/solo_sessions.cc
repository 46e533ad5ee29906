#include "tests/solo_sessions.h"

#include <gtest/gtest.h>

namespace ebb {

Result<std::unique_ptr<SoloSessions>> SoloSessions::open(const std::filesystem::path& gguf, const SoloOptions& options,
                                                         const std::string& policy) {
  std::unique_ptr<SoloSessions> sessions(new SoloSessions);
  EBB_ASSIGN_OR_RETURN(sessions->solo_, Solo::open(gguf, options));
  EBB_ASSIGN_OR_RETURN(sessions->vocabulary_, Vocabulary::load(gguf));
  EBB_ASSIGN_OR_RETURN(sessions->policy_, make_policy(policy));
  sessions->mover_ = std::make_unique<BlockMover>(sessions->solo_->model(), sessions->solo_->memory().layout());
  return sessions;
}

SessionParts SoloSessions::parts(ColdStore* store) {
  return {.pool = solo_->pool(),
          .memory = solo_->memory(),
          .vocabulary = *vocabulary_,
          .policy = *policy_,
          .store = store,
          .mover = mover_.get(),
          .open_pool = solo_->open_pool(),
          .shape = solo_->shape(),
          .model = solo_->model().fingerprint(),
          .n_ctx_train = solo_->model().hparams().n_ctx_train};
}

SessionParts SoloSessions::sharing_parts(ColdStore* store) {
  SessionParts parts = this->parts(store);
  parts.hot = &hot_;
  parts.starts = &starts_;
  return parts;
}

std::vector<std::byte> SoloSessions::bytes_of(const Session& session, BlockIndex block) {
  std::vector<std::byte> bytes(session.block_bytes(block));
  session.read_frames(block, bytes);
  return bytes;
}

std::optional<std::vector<float>> SoloSessions::step(Turn& turn) {
  const Result<SequenceInput> input = turn.begin_step(1);
  if (!input.ok()) return std::nullopt;
  const Status status = solo_->runner().run({&*input, 1});
  EXPECT_TRUE(status.ok()) << status.message();
  const bool has_mass = input->n_mass_rows > 0;
  turn.end_step(has_mass ? solo_->runner().block_mass(0) : std::span<const BlockMass>());
  if (input->n_outputs == 0) return std::vector<float>();
  const auto logits = solo_->runner().logits(0);
  return std::vector<float>(logits.begin(), logits.end());
}

}  // namespace ebb
