// SoloSessions: what sessions of a test stand on, over one Solo: a vocabulary, a policy, a mover; and the two things
// that such tests look at, a block's bytes and a step's logits. No engine, no cold store: those are the test's affair.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/output_lengths.h"
#include "session/turn.h"
#include "tests/solo.h"

namespace ebb {

// What the bundled model reads where tests look at its attention: more than 90 tokens.
inline constexpr const char* kFactsAndQuestions =
    "The code of the north gate is 4711. Anna likes the red lamp in the garden. The price of the old horse is 83 "
    "coins. "
    "Every morning the baker opens the shop before the sun is up, and the smell of bread fills the whole street. "
    "The owner of the blue boat is Peter. What is the code of the north gate? It is 4711. And who owns the blue boat?";

class SoloSessions {
 public:
  static Result<std::unique_ptr<SoloSessions>> open(const std::filesystem::path& gguf, const SoloOptions& options,
                                                    const std::string& policy);
  static Result<std::unique_ptr<SoloSessions>> open(const std::filesystem::path& gguf, const SoloOptions& options,
                                                    std::unique_ptr<Policy> policy);

  // What sessions stand on that keep their bytes in `store`, or that never evict.
  [[nodiscard]] SessionDeps deps(ColdStore* store);
  // What sessions stand on that use one another's frames, too.
  [[nodiscard]] SessionDeps sharing_deps(ColdStore* store);
  // The bytes of a hot block, frame by frame.
  [[nodiscard]] static std::vector<std::byte> bytes_of(const Session& session, BlockIndex block);
  // One row of the turn: its logits, none if it was not the last token's. Nothing where the turn finds no room. Steps
  // of one row make a token's bits the same whoever computes it, and when.
  std::optional<std::vector<float>> step(Turn& turn);
  // Up to n_rows rows of each turn, computed together. False, and nothing is computed, where one finds no room.
  bool step(std::span<Turn* const> turns, std::int32_t n_rows);
  // Session::recall; what is lost is computed again, n_rows at a time.
  Acts recall(Session& session, std::span<const BlockIndex> blocks, std::int32_t n_rows = 1);

  [[nodiscard]] Solo& solo() { return *solo_; }
  [[nodiscard]] const HotBlocks& hot() const { return hot_; }

 private:
  SoloSessions() = default;

  std::unique_ptr<Solo> solo_;
  std::unique_ptr<Vocabulary> vocabulary_;
  std::shared_ptr<const Policy> policy_;
  std::unique_ptr<BlockMover> mover_;
  std::unique_ptr<OutputLengths> output_lengths_;
  std::unique_ptr<Forecaster> forecaster_;
  HotBlocks hot_;
  BlockStarts starts_;
};

}  // namespace ebb
