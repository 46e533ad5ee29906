// Solo: one model and one sequence on ebb's runner, as the tests of the model path drive it. No engine, no sessions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "bench/llama_peer.h"
#include "cache/frame_pool.h"
#include "cache/hot_set.h"
#include "model/runner.h"

namespace ebb {

struct SoloOptions {
  std::int32_t n_threads = 2;
  RowType kv_type = RowType::kF32;
  std::int32_t block_size = 64;
  std::int32_t n_ctx = 1024;
  bool use_repacked = true;
  bool composed = false;
  // Not 0: the pool hands its frames out in another order.
  std::uint64_t shuffle_seed = 0;
};

// Of a random model's vocabulary.
[[nodiscard]] std::vector<Token> some_tokens(std::int32_t n_tokens, std::uint64_t seed);

class Solo {
 public:
  static Result<std::unique_ptr<Solo>> open(const std::filesystem::path& gguf, const SoloOptions& options);

  // Forgets everything, then computes the tokens in chunks of at most `chunk`: row i holds what follows tokens[0..i].
  Result<LogitMatrix> logits(std::span<const Token> tokens, std::int32_t chunk);
  Result<std::vector<Token>> greedy(std::span<const Token> prompt, std::int32_t n_tokens);

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] Runner& runner() { return *runner_; }
  [[nodiscard]] FramePool& pool() { return *pool_; }
  [[nodiscard]] FrameMemory& memory() { return *memory_; }
  [[nodiscard]] Backend& backend() { return *backend_; }
  // Null of row types that do not seal.
  [[nodiscard]] FramePool* open_pool() { return open_pool_.get(); }
  [[nodiscard]] BlockShape shape() const;
  // Empty; it must not outlive this.
  [[nodiscard]] std::unique_ptr<HotSet> make_hot();

  // The input of a step whose tokens stand behind what `hot` holds: they have their rows there now.
  static Result<SequenceInput> place(HotSet& hot, std::span<const Token> tokens);
  // Runs the steps together, each behind what its hot set holds, which holds them then.
  Status compute(std::span<HotSet* const> hot, std::span<const SequenceInput> inputs);
  // One step of one hot set.
  Status compute(HotSet& hot, std::span<const Token> tokens, std::int32_t n_outputs = 1, std::int32_t n_mass_rows = 0);

 private:
  Solo() = default;

  std::int32_t block_size_ = 0;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<FrameMemory> memory_;
  std::unique_ptr<FramePool> pool_;
  std::unique_ptr<FramePool> open_pool_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<HotSet> hot_;
};

}  // namespace ebb
