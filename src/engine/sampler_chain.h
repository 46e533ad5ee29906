// The chains of libllama's samplers that a Sampler runs: what adjusts logits, and what draws from those that are left.
//
//   biases -> penalties, dry       adjustments: of greedy choice too; in front of the grammar
//   -> the other steps -> draw     from what the grammar allows
//
// Penalties that the client put behind another step stand there, among the other steps. Mirostat takes the place of all
// of them but the temperature. It does not know grammars. Thread rule: as its Sampler's.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

#include "engine/sampling_options.h"
#include "text/vocabulary.h"

struct llama_sampler;

namespace ebb {

// The logit of a token that must not come.
inline constexpr float kForbidden = -std::numeric_limits<float>::infinity();

struct FreeSampler {
  void operator()(llama_sampler* sampler) const;
};
using SamplerPtr = std::unique_ptr<llama_sampler, FreeSampler>;

struct SamplerChains {
  SamplerPtr adjustments;
  // Ends with the draw. Null for greedy choice.
  SamplerPtr draw;
  // The draw looks at so many of the likeliest allowed candidates at most.
  std::size_t n_wanted = 0;
  // Whether a bias or a penalty changes any logit.
  bool adjusts = false;
};

// The options are valid. kInvalidArgument for sequence breakers that libllama cannot read.
[[nodiscard]] Result<SamplerChains> make_sampler_chains(const Vocabulary& vocabulary, const SamplingOptions& options);

}  // namespace ebb
