// LlamaPeer: libllama, through its public llama.h, as the peer of our benchmarks and the oracle of our tests.
//
// It runs on the CPU with libllama's own defaults but for what the options say, and knows nothing of ebb's rooms but
// the names of row types. Thread rule: one thread at a time; several peers may live side by side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "bench/subject.h"
#include "cache/frame_layout.h"

namespace ebb {

// "libllama 0.5.0, ggml 0.25.3": what this program is linked with.
[[nodiscard]] std::string llama_version_text();

enum class FlashAttention : std::uint8_t {
  kAuto,  // libllama's default; description() says what came of it
  kOff,
  kOn,
};

struct LlamaPeerOptions {
  std::int32_t n_threads = 1;
  // Tokens of one sequence that fit; libllama rounds up to 256.
  std::int32_t n_ctx = 2048;
  // Those beside the first are reached by append_to() and decode_together() only.
  std::int32_t n_sequences = 1;
  // libllama's choice for several sequences: one buffer that all of them look through, or one for each.
  bool unified_kv = false;
  RowType kv_type = RowType::kF16;
  FlashAttention flash_attention = FlashAttention::kAuto;
  // Rows of one pass through the model.
  std::int32_t n_ubatch = 512;
  // ggml's repacked weight layouts. Off: weights stay as they lie in the file, and sums have the file's order.
  bool use_repacked = true;
};

// Logits of several tokens in a row.
struct LogitMatrix {
  std::int32_t n_rows = 0;
  std::int32_t n_vocab = 0;
  std::vector<float> values;  // [n_rows, n_vocab]

  [[nodiscard]] std::span<const float> row(std::int32_t index) const {
    const auto width = static_cast<std::size_t>(n_vocab);
    return {values.data() + static_cast<std::size_t>(index) * width, width};
  }
};

class LlamaPeer final : public Subject {
 public:
  static Result<std::unique_ptr<LlamaPeer>> load(const std::filesystem::path& gguf, const LlamaPeerOptions& options);
  ~LlamaPeer() override;

  [[nodiscard]] std::string name() const override { return "libllama"; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::int32_t n_resident() const override;
  Status append(std::span<const Token> tokens) override;
  [[nodiscard]] std::span<const float> last_logits() const override;
  Status truncate(std::int32_t n_tokens) override;

  [[nodiscard]] std::int32_t n_vocab() const;
  [[nodiscard]] std::int32_t n_ctx() const;

  // Several sequences: the tokens behind what sequence `index` holds; K and V of the first n_tokens of sequence 0 for
  // all others, which must be empty; one token each for the first sequences, in one batch; all back to n_tokens.
  Status append_to(std::int32_t index, std::span<const Token> tokens);
  Status copy_to_all(std::int32_t n_tokens);
  Status decode_together(std::span<const Token> tokens);
  Status truncate_all(std::int32_t n_tokens);
  // The logits of the index-th sequence of the last decode_together().
  [[nodiscard]] std::span<const float> logits_of(std::int32_t index) const;

  // Forgets everything, then computes the tokens from position 0 on: row i holds what follows tokens[0..i].
  Result<LogitMatrix> logits(std::span<const Token> tokens);
  // The logits of tokens behind the resident ones, row by row as above; nothing is forgotten.
  Result<LogitMatrix> append_logits(std::span<const Token> tokens);
  // Forgets everything; then the n_tokens most likely tokens after the prompt, one by one, end-of-text not minded.
  Result<std::vector<Token>> greedy(std::span<const Token> prompt, std::int32_t n_tokens);

 private:
  struct State;
  explicit LlamaPeer(std::unique_ptr<State> state);
  // Logits of all tokens, or of the last one only.
  Status decode(std::span<const Token> tokens, bool all_logits);
  Status decode_at(std::span<const Token> tokens, std::span<const std::int32_t> sequences,
                   std::span<const std::int32_t> positions);

  std::unique_ptr<State> state_;
};

// The most likely token; ties to the lowest id.
[[nodiscard]] Token argmax(std::span<const float> logits);

}  // namespace ebb
