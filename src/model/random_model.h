// Writes GGUF files with random weights: toys for tests, and the large model that the benchmark measures.
//
// One spec always gives the same bytes. Weights are scaled so that activations keep their size from layer to layer and
// logits spread by about one standard deviation times logit_scale; norm weights lie near 1. The file loads in ebb and
// in libllama: it carries a byte-level BPE vocabulary (256 bytes, ChatML's two marks, dummies up to n_vocab) and a
// ChatML template.
//
// A matrix does not hold independent numbers: its quantised blocks are drawn from a pool of 2^17 values of its scale,
// because drawing and quantising a billion numbers takes minutes. Rows of several blocks are different from each other
// all the same, and the speed of a product does not depend on the values. f32 bytes are the same on every machine;
// quantised ones as far as ggml's quantisation is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ggml.h"

#include "base/status.h"
#include "model/hparams.h"

namespace ebb {

struct TensorType {
  std::string tensor;
  ggml_type type = GGML_TYPE_F32;
};

struct RandomModelSpec {
  std::string architecture = "llama";
  std::int32_t n_layers = 2;
  std::int32_t n_embd = 64;
  std::int32_t n_heads = 4;
  std::int32_t n_kv_heads = 2;
  std::int32_t head_dim = 16;
  std::int32_t n_ff = 128;
  std::int32_t n_vocab = 320;  // at least 264: bytes, marks and a few pairs of letters
  std::int32_t n_ctx_train = 2048;

  float rope_freq_base = 10000.0F;
  RopeScaling rope_scaling = RopeScaling::kNone;
  float rope_factor = 1.0F;        // of linear and YaRN scaling
  std::int32_t rope_orig_ctx = 0;  // YaRN; 0: n_ctx_train
  bool llama3_factors = false;     // writes rope_freqs.weight as Llama 3.1 has it (llama only)

  bool tied = false;                // no output matrix
  bool biases = false;              // of q, k, v and o (llama); qwen2 always has those of q, k and v
  std::int32_t sliding_window = 0;  // gemma3
  std::int32_t sliding_period = 6;  // of so many layers the last sees everything; 0: all slide

  // The type of all matrices; rows that its blocks do not divide are written as f16. Norms and biases are f32.
  ggml_type weight_type = GGML_TYPE_F32;
  // Matrices of another type, by the tensor's name ("blk.0.attn_v.weight"), as published mixes have some.
  std::vector<TensorType> tensor_types;
  float logit_scale = 4.0F;
  std::uint64_t seed = 1;

  // A GGUF file whose vocabulary and template it has, n_vocab tokens; empty: bytes and marks, as above.
  std::string vocabulary_of;
};

// Uses a few MB of memory whatever the size. kInvalidArgument when the spec contradicts itself; kIo when the file
// cannot be written, and then it is removed.
Status write_random_model(const RandomModelSpec& spec, const std::filesystem::path& path);

}  // namespace ebb
