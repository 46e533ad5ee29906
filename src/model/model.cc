#include "model/model.h"

#include <array>
#include <bit>
#include <span>
#include <string>
#include <utility>

namespace ebb {

namespace {

void add_hparams(Hasher& hasher, const Hparams& h) {
  hasher.add_text(h.architecture);
  for (const std::int32_t value : {h.n_vocab, h.n_embd, h.n_layers, h.n_heads, h.n_kv_heads, h.head_dim_k, h.head_dim_v,
                                   h.n_ff, h.n_rot, h.rope_orig_ctx, h.sliding_window}) {
    hasher.add(static_cast<std::uint64_t>(value));
  }
  hasher.add(static_cast<std::uint64_t>(h.rope_scaling));
  for (const float value : {h.norm_eps, h.rope_freq_base, h.rope_freq_scale, h.yarn_ext_factor, h.yarn_attn_factor,
                            h.yarn_beta_fast, h.yarn_beta_slow, h.rope_freq_base_sliding, h.rope_freq_scale_sliding,
                            h.attention_scale, h.embedding_scale, h.final_logit_softcap}) {
    hasher.add(std::bit_cast<std::uint32_t>(value));
  }
  for (const bool sliding : h.layer_is_sliding) hasher.add(sliding ? 1 : 0);
}

Status add_sample(Hasher& hasher, const MappedFile& file, const TensorInfo& tensor) {
  constexpr std::size_t kWhole = 4096;
  constexpr std::size_t kPieces = 8;
  constexpr std::size_t kPiece = 512;
  std::array<std::byte, kWhole> bytes;
  if (tensor.n_bytes <= kWhole) {
    const std::span<std::byte> all = std::span(bytes).first(tensor.n_bytes);
    EBB_RETURN_IF_ERROR(file.read(tensor.file_offset, all));
    hasher.add_bytes(all);
    return {};
  }
  const std::span<std::byte> piece = std::span(bytes).first(kPiece);
  for (std::size_t i = 0; i < kPieces; ++i) {
    const std::size_t at = (tensor.n_bytes - kPiece) * i / (kPieces - 1);
    EBB_RETURN_IF_ERROR(file.read(tensor.file_offset + at, piece));
    hasher.add_bytes(piece);
  }
  return {};
}

}  // namespace

Result<Hash128> model_fingerprint(const GgufFile& file, const Hparams& hparams) {
  Hasher hasher;
  add_hparams(hasher, hparams);
  for (const TensorInfo& tensor : file.tensors()) {
    hasher.add_text(tensor.name).add(static_cast<std::uint64_t>(tensor.type));
    for (const std::int64_t size : tensor.shape) hasher.add(static_cast<std::uint64_t>(size));
    EBB_RETURN_IF_ERROR(add_sample(hasher, file.mapping(), tensor));
  }
  return hasher.finish();
}

Model::Model(GgufFile file, Hparams hparams, const Architecture& architecture)
    : file_(std::move(file)), hparams_(std::move(hparams)), architecture_(&architecture) {}

Result<std::unique_ptr<Model>> Model::load(const std::filesystem::path& path, Backend& backend,
                                           const LoadOptions& options) {
  EBB_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(path));
  EBB_ASSIGN_OR_RETURN(const Architecture* architecture, get_architecture(file));
  EBB_ASSIGN_OR_RETURN(Hparams hparams, read_hparams(file, *architecture));
  std::unique_ptr<Model> model(new Model(std::move(file), std::move(hparams), *architecture));
  EBB_ASSIGN_OR_RETURN(model->weights_, Weights::load(model->file_, model->hparams_, *architecture, backend, options));
  EBB_ASSIGN_OR_RETURN(model->fingerprint_, model_fingerprint(model->file_, model->hparams_));
  return model;
}

}  // namespace ebb
