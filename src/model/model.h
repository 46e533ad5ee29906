// Model: a GGUF file opened, understood and loaded.
//
// It does not compute: graphs read its hparams, architecture and weights. Whatever the file holds, load() ends with a
// model or with one line that names the file, what is wrong and what to do. Thread rule: immutable after load().
#pragma once

#include <filesystem>
#include <memory>

#include "base/hash.h"
#include "base/status.h"
#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/hparams.h"
#include "model/weights.h"

namespace ebb {

class Backend;

class Model {
 public:
  // The backend must outlive the model.
  static Result<std::unique_ptr<Model>> load(const std::filesystem::path& path, Backend& backend,
                                             const LoadOptions& options);

  [[nodiscard]] const GgufFile& file() const { return file_; }
  [[nodiscard]] const Hparams& hparams() const { return hparams_; }
  [[nodiscard]] const Architecture& architecture() const { return *architecture_; }
  [[nodiscard]] const Weights& weights() const { return *weights_; }
  [[nodiscard]] WeightBytes bytes() const { return weights_->bytes(); }

  // Names what the model computes, for saved K/V: see model_fingerprint().
  [[nodiscard]] Hash128 fingerprint() const { return fingerprint_; }

 private:
  Model(GgufFile file, Hparams hparams, const Architecture& architecture);

  GgufFile file_;
  Hparams hparams_;
  const Architecture* architecture_;
  std::unique_ptr<Weights> weights_;
  Hash128 fingerprint_;
};

// Hashes the hparams (but for the model's name), each tensor's name, type and shape, and of its bytes: all of them up
// to 4 KiB, else 8 pieces of 512 bytes spread from the first to the last. So another quantisation, another fine-tune or
// another conversion differs; a single altered weight in the middle of a matrix may not. kIo when the disk fails.
Result<Hash128> model_fingerprint(const GgufFile& file, const Hparams& hparams);

}  // namespace ebb
