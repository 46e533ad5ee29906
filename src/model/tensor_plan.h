// TensorPlan: which tensors a model of an architecture has, under which names, in which shapes, and for what.
//
// It does not know memory: it says where in Weights each one belongs. check_tensors() holds a file against it, so that
// nothing behind it meets a tensor of an unexpected shape or type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/weights.h"

namespace ebb {

enum class TensorUse : std::uint8_t {
  kLookup,  // rows are looked up
  kMatrix,  // multiplied with activations
  kVector,  // added to or multiplied with activations, element by element
};

struct PlannedTensor {
  std::string name;
  TensorUse use = TensorUse::kMatrix;
  Presence presence = Presence::kRequired;
  std::int64_t n_in = 0;
  std::int64_t n_out = 1;
  // Where the tensor goes; more than one for the rope factors, which all layers share.
  std::vector<ggml_tensor**> places;
};

// Gives weights.layers its size; the planned_tensors point into `weights`.
[[nodiscard]] std::vector<PlannedTensor> plan_tensors(const Hparams& hparams, const Architecture& architecture,
                                                      WeightTensors& weights);

// kDamaged for missing or misshapen tensors, kUnsupported for types that cannot serve and for tensors that are not in
// the plan: they would change what the model computes.
Status check_tensors(const GgufFile& file, const std::vector<PlannedTensor>& plan, const Architecture& architecture);

// Whether ggml can look up and multiply rows of this type.
[[nodiscard]] bool is_matrix_type(ggml_type type);

}  // namespace ebb
