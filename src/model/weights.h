// Weights: the tensors of one model, ready for graphs, and the memory they lie in.
//
// Names and shapes are checked against the hparams before any tensor exists. On the CPU a tensor stays where the file
// is mapped, unless products are faster from another layout: ours (model/product.h), else one of ggml's. Then it is copied there and its
// mapped pages dropped. On another backend all tensors are copied to its memory. Thread rule: immutable after load().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ggml.h"

#include "base/status.h"
#include "model/product.h"

namespace ebb {

class Backend;
class GgufFile;
struct Architecture;
struct Hparams;

// Null: this model has none. Matrices are [n_in, n_out] in ggml's order, quantised or float; all others f32.
struct LayerWeights {
  ggml_tensor* attn_norm = nullptr;  // [n_embd]
  ggml_tensor* wq = nullptr;         // [n_embd, n_heads * head_dim_k]
  ggml_tensor* wk = nullptr;         // [n_embd, n_kv_heads * head_dim_k]
  ggml_tensor* wv = nullptr;         // [n_embd, n_kv_heads * head_dim_v]
  ggml_tensor* wo = nullptr;         // [n_heads * head_dim_v, n_embd]
  ggml_tensor* bq = nullptr;         // biases: [n_out] of their matrix
  ggml_tensor* bk = nullptr;
  ggml_tensor* bv = nullptr;
  ggml_tensor* bo = nullptr;
  ggml_tensor* q_norm = nullptr;          // [head_dim_k]
  ggml_tensor* k_norm = nullptr;          // [head_dim_k]
  ggml_tensor* post_attn_norm = nullptr;  // [n_embd]
  ggml_tensor* ffn_norm = nullptr;        // [n_embd]
  ggml_tensor* ffn_gate = nullptr;        // [n_embd, n_ff]
  ggml_tensor* ffn_up = nullptr;          // [n_embd, n_ff]
  ggml_tensor* ffn_down = nullptr;        // [n_ff, n_embd]
  ggml_tensor* post_ffn_norm = nullptr;   // [n_embd]
  ggml_tensor* rope_factors = nullptr;    // [n_rot / 2]; one tensor, named by every layer
};

struct WeightBytes {
  std::size_t mapped = 0;  // used where the file is mapped
  std::size_t copied = 0;  // in memory of their own: packed, or on another device
};

struct LoadOptions {
  // Pack matrices for products of our own, or copy them to ggml's repacked CPU layouts, for the types that are faster so (weights.cc has
  // the figures). Without, all products are ggml's, of the files' layout.
  bool use_repacked = true;
  // Called with the share done, 0..1, for every few MB read, from the loading thread. False cancels the load.
  std::function<bool(float)> progress = nullptr;
};

struct WeightTensors {
  ggml_tensor* token_embd = nullptr;   // [n_embd, n_vocab]; rows are only looked up
  ggml_tensor* output_norm = nullptr;  // [n_embd]
  ggml_tensor* output = nullptr;       // [n_embd, n_vocab]; with tied embeddings token_embd's values, maybe repacked
  std::vector<LayerWeights> layers;
};

class Weights : public WeightTensors {
 public:
  // The tensors point into the file's mapping, which must outlive them. kCancelled when progress says so; kOutOfBudget
  // when the copies find no memory.
  static Result<std::unique_ptr<Weights>> load(const GgufFile& file, const Hparams& hparams,
                                               const Architecture& architecture, Backend& backend,
                                               const LoadOptions& options);

  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  [[nodiscard]] WeightBytes bytes() const { return bytes_; }
  [[nodiscard]] const PackedMatrices& packed() const { return packed_; }

 private:
  struct Memory;
  Weights();

  std::unique_ptr<Memory> memory_;
  PackedMatrices packed_;
  WeightBytes bytes_;
};

// Whole rows of `type` as f16, for devices that cannot look up rows of that type.
[[nodiscard]] std::vector<std::byte> expand_to_f16(ggml_type type, std::span<const std::byte> rows);

}  // namespace ebb
