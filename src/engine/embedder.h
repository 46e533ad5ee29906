// Embedder: texts to vectors, by an embedding model (bge, MiniLM and the like) on libllama.
//
// It knows no sessions, no KV budget and no HTTP. It promises: a vector depends on its own text alone, since each is
// computed by itself, and has length 1; a text longer than the model takes is refused, never cut.
//
// Thread rule: embed() one thread at a time; everything else any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace ebb {

struct EmbedderOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 1;
};

class Embedder {
 public:
  // kNotFound, kDamaged; kUnsupported for a model that makes no vector of a whole text.
  static Result<std::unique_ptr<Embedder>> open(const EmbedderOptions& options);
  ~Embedder();
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  // With the marks that the model wants around a text.
  [[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text) const;
  // The vector of a whole text, which has 1 to max_tokens() tokens of this vocabulary: kInvalidArgument otherwise.
  // kCancelled when `is_cancelled`, which is asked now and then, says so.
  Result<std::vector<float>> embed(std::span<const Token> tokens, const std::function<bool()>& is_cancelled = {});

  [[nodiscard]] std::int32_t n_dimensions() const;
  [[nodiscard]] std::int32_t max_tokens() const;
  [[nodiscard]] std::int32_t n_vocab() const;

 private:
  struct State;
  explicit Embedder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ebb
