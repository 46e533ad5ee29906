// Sampling fields: how tokens are chosen, under llama.cpp's names, from JSON to options and back (docs/http_api.md).
//
// Thread rule: functions of their arguments.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/sampling_options.h"
#include "json/json_fields.h"
#include "text/vocabulary.h"

namespace ebb {

inline constexpr std::array kSamplingFields = {"temperature",
                                               "dynatemp_range",
                                               "dynatemp_exponent",
                                               "top_k",
                                               "top_p",
                                               "min_p",
                                               "typical_p",
                                               "top_n_sigma",
                                               "min_keep",
                                               "repeat_last_n",
                                               "repeat_penalty",
                                               "presence_penalty",
                                               "frequency_penalty",
                                               "dry_multiplier",
                                               "dry_base",
                                               "dry_allowed_length",
                                               "dry_penalty_last_n",
                                               "dry_sequence_breakers",
                                               "xtc_probability",
                                               "xtc_threshold",
                                               "mirostat",
                                               "mirostat_tau",
                                               "mirostat_eta",
                                               "samplers",
                                               "seed",
                                               "ignore_eos",
                                               "logit_bias"};

// Without grammars. Counts outside their range are refused, continuous parameters are clamped; what is left out is told in
// `warnings`.
[[nodiscard]] SamplingOptions read_sampling_fields(JsonFields& fields, const Vocabulary& vocabulary,
                                                   std::vector<std::string>& warnings);
// kSamplingFields and the grammar; a seed of -1: a random one.
[[nodiscard]] Json sampling_json(const SamplingOptions& options);

}  // namespace ebb
