// Embedder: texts to vectors, by an embedding model (bge, MiniLM and the like) on libllama.
//
// It knows no sessions, no KV budget and no HTTP. It promises: a vector of embed() depends on its own text alone, since each is
// computed by itself, and has length 1; a text longer than the model takes is refused, never cut. Texts that are embedded together have
// the same vectors but for rounding.
//
// Thread rule: embed() and embed_together() one thread at a time; everything else any thread. Two that stand on one model
// (open_beside) are two.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"

namespace ebb {

struct EmbedderOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 1;
  // The most tokens of a pass, texts that are embedded together in all; 0: as many as the model was trained for.
  std::int32_t most_tokens = 0;
  // Texts that may be embedded together.
  std::int32_t n_together = 1;
};

class Embedder {
 public:
  // kNotFound, kDamaged; kUnsupported for a model that makes no vector of a whole text.
  static Result<std::unique_ptr<Embedder>> open(const EmbedderOptions& options);
  // Another one on the same model, which is in memory once; options.model is not looked at.
  [[nodiscard]] Result<std::unique_ptr<Embedder>> open_beside(const EmbedderOptions& options) const;
  ~Embedder();
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  // With the marks that the model wants around a text.
  [[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text) const;
  // The vector of a whole text, which has 1 to max_tokens() tokens of this vocabulary: kInvalidArgument otherwise.
  // kCancelled when `is_cancelled`, which is asked now and then, says so.
  Result<std::vector<float>> embed(std::span<const Token> tokens, const std::function<bool()>& is_cancelled = {});
  // Those of several texts, in one pass: n_together of them and max_tokens() tokens in all at most.
  Result<std::vector<std::vector<float>>> embed_together(std::span<const std::vector<Token>> texts,
                                                         const std::function<bool()>& is_cancelled = {});

  // Of the model's file, whole: vectors of files that differ in anything are never compared.
  [[nodiscard]] Hash128 fingerprint() const;
  [[nodiscard]] std::int32_t n_dimensions() const;
  [[nodiscard]] std::int32_t max_tokens() const;
  [[nodiscard]] std::int32_t n_vocab() const;

 private:
  struct State;
  explicit Embedder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ebb
