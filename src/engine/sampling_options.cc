#include "engine/sampling_options.h"

#include <algorithm>
#include <array>
#include <limits>

namespace ebb {
namespace {

struct StepNames {
  std::string_view name;
  char letter;
};

// By SamplingStep.
constexpr std::array kStepNames = {StepNames{"penalties", 'e'}, StepNames{"dry", 'd'},   StepNames{"top_n_sigma", 's'},
                                   StepNames{"top_k", 'k'},     StepNames{"typ_p", 'y'}, StepNames{"top_p", 'p'},
                                   StepNames{"min_p", 'm'},     StepNames{"xtc", 'x'},   StepNames{"temperature", 't'}};

constexpr std::int32_t kMostTokens = std::numeric_limits<std::int32_t>::max();

template <class T>
Status check_range(std::string_view name, T value, T least, T most) {
  if (value >= least && value <= most) return {};  // false for NaN
  return error(Code::kInvalidArgument, "{} is {}; it must lie in {} to {}", name, value, least, most);
}

Status check(const DryOptions& dry) {
  EBB_RETURN_IF_ERROR(check_range("dry_multiplier", dry.multiplier, 0.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("dry_base", dry.base, 1.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("dry_allowed_length", dry.allowed_length, 0, kMostTokens));
  EBB_RETURN_IF_ERROR(check_range("dry_penalty_last_n", dry.penalty_last_n, 0, SamplingOptions::kMaxPenaltyTokens));
  EBB_RETURN_IF_ERROR(check_range("the number of dry_sequence_breakers", dry.sequence_breakers.size(), std::size_t{0},
                                  DryOptions::kMaxBreakers));
  for (const std::string& breaker : dry.sequence_breakers) {
    EBB_RETURN_IF_ERROR(check_range("the bytes of one of dry_sequence_breakers", breaker.size(), std::size_t{1},
                                    DryOptions::kMaxBreakerBytes));
    if (breaker.find('\0') == std::string::npos) continue;
    return error(Code::kInvalidArgument, "one of dry_sequence_breakers holds a NUL byte; libllama would end it there");
  }
  return {};
}

}  // namespace

std::string_view name_of(SamplingStep step) { return kStepNames.at(static_cast<std::size_t>(step)).name; }

char letter_of(SamplingStep step) { return kStepNames.at(static_cast<std::size_t>(step)).letter; }

const std::vector<SamplingStep>& default_sampling_steps() {
  using enum SamplingStep;
  static const std::vector<SamplingStep> kSteps = {kPenalties, kDry,  kTopNSigma, kTopK,       kTypicalP,
                                                   kTopP,      kMinP, kXtc,       kTemperature};
  return kSteps;
}

bool SamplingOptions::is_greedy() const {
  if (temperature != 0.0F) return false;
  if (mirostat.version != 0) return true;
  return dynatemp_range == 0.0F && std::ranges::find(steps, SamplingStep::kTemperature) != steps.end();
}

Status SamplingOptions::validate() const {
  EBB_RETURN_IF_ERROR(check_range("temperature", temperature, 0.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("dynatemp_range", dynatemp_range, 0.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("dynatemp_exponent", dynatemp_exponent, 0.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("top_k", top_k, 0, kMostTokens));
  EBB_RETURN_IF_ERROR(check_range("top_p", top_p, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("min_p", min_p, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("typical_p", typical_p, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("top_n_sigma", top_n_sigma, -1.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("min_keep", min_keep, 0, kMostTokens));
  EBB_RETURN_IF_ERROR(check_range("penalty_last_n", penalty_last_n, 0, kMaxPenaltyTokens));
  EBB_RETURN_IF_ERROR(check_range("penalty_repeat", penalty_repeat, 0.01F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("penalty_frequency", penalty_frequency, -100.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("penalty_presence", penalty_presence, -100.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check(dry));
  EBB_RETURN_IF_ERROR(check_range("xtc_probability", xtc.probability, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("xtc_threshold", xtc.threshold, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("mirostat", mirostat.version, 0, 2));
  EBB_RETURN_IF_ERROR(check_range("mirostat_tau", mirostat.tau, 0.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("mirostat_eta", mirostat.eta, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("the number of samplers", steps.size(), std::size_t{0}, kMaxSteps));
  for (const LogitBias& bias : logit_bias) {
    if (bias.bias == -std::numeric_limits<float>::infinity()) continue;
    EBB_RETURN_IF_ERROR(check_range("logit bias", bias.bias, -1e6F, 1e6F));
  }
  return {};
}

}  // namespace ebb
