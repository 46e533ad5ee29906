// EbbSubject: ebb's own model path as a subject of the speed bench: one sequence, nothing ever evicted.
//
// It drives Runner over frames directly, below sessions, names and the cold store, because libllama's decode, which it
// is held against, has none of these either. Thread rule: as Subject's.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>

#include "bench/multiply_rate.h"
#include "bench/subject.h"
#include "cache/frame_layout.h"
#include "model/model.h"

namespace ebb {

struct EbbSubjectOptions {
  std::int32_t n_threads = 1;
  // Tokens that fit.
  std::int32_t n_ctx = 2048;
  RowType kv_type = RowType::kF16;
  std::int32_t block_size = 64;
  // Rows of one step.
  std::int32_t chunk = 512;
  bool use_repacked = true;
};

// What one pass through the model reads, whatever runs it.
struct ModelTraffic {
  // All matrices that a decoded token multiplies; of the embedding only a row is read.
  std::size_t weight_bytes = 0;
  // Parameters in them: two floating-point operations each per token; the output matrix only where logits are wanted.
  std::int64_t n_layer_weights = 0;
  std::int64_t n_output_weights = 0;
  // K and V of one token in all layers, without padding.
  double kv_bytes_per_token = 0.0;
  // Floating-point operations of attention for one query and one key, all layers and heads.
  double attention_flop = 0.0;
  // What most multiply-adds of the matrices can be done in.
  MultiplyType multiply_type = MultiplyType::kF32;
};

[[nodiscard]] ModelTraffic traffic_of(const Model& model, const FrameLayout& layout);

class EbbSubject final : public Subject {
 public:
  static Result<std::unique_ptr<EbbSubject>> load(const std::filesystem::path& gguf, const EbbSubjectOptions& options);
  ~EbbSubject() override;

  [[nodiscard]] std::string name() const override { return "ebb"; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::int32_t n_resident() const override;
  Status append(std::span<const Token> tokens) override;
  [[nodiscard]] std::span<const float> last_logits() const override;
  Status truncate(std::int32_t n_tokens) override;

  [[nodiscard]] std::int32_t n_vocab() const;
  [[nodiscard]] ModelTraffic traffic() const;

 private:
  struct State;
  explicit EbbSubject(std::unique_ptr<State> state);
  Status step(std::span<const Token> tokens, bool wants_logits);

  std::unique_ptr<State> state_;
};

}  // namespace ebb
