#include "engine/sampler_chain.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <random>
#include <span>

#include "llama.h"

namespace ebb {
namespace {

// libllama reads this seed as "draw one"; the user who asks for it gets the seed below.
constexpr std::uint32_t kSeedMeansRandom = LLAMA_DEFAULT_SEED;
// Tokens that cannot reach a probability of e^-80 do not change what typical-p keeps, but their p rounds to zero and
// its logarithm makes libllama sort NaN.
constexpr float kNegligibleLogit = -80.0F;
// No model says more. libllama sorts by integers of 6.4 times a logit: larger ones come out of order.
constexpr float kMostLogit = 1e8F;
// libllama's own for mirostat 1: how many of the likeliest tokens it measures.
constexpr std::int32_t kMirostatTokens = 100;

SamplerPtr make_chain() {
  llama_sampler_chain_params params = llama_sampler_chain_default_params();
  params.no_perf = true;
  return SamplerPtr(llama_sampler_chain_init(params));
}

void add(const SamplerPtr& chain, llama_sampler* sampler) { llama_sampler_chain_add(chain.get(), sampler); }

// Steps of ours between those of libllama, which trip over what stands in the candidates then.

float largest_logit(const llama_token_data_array& candidates) {
  float largest = kForbidden;
  for (const llama_token_data& c : std::span(candidates.data, candidates.size)) largest = std::max(largest, c.logit);
  return largest;
}

void drop_below(llama_token_data_array& candidates, float least) {
  const auto end = std::remove_if(candidates.data, candidates.data + candidates.size,
                                  [&](const llama_token_data& c) { return c.logit < least; });
  candidates.size = static_cast<std::size_t>(end - candidates.data);
}

void drop_negligible(llama_sampler* /*self*/, llama_token_data_array* candidates) {
  drop_below(*candidates, largest_logit(*candidates) + kNegligibleLogit);
}

void drop_forbidden(llama_sampler* /*self*/, llama_token_data_array* candidates) {
  drop_below(*candidates, std::numeric_limits<float>::lowest());
}

void keep_in_range(llama_sampler* /*self*/, llama_token_data_array* candidates) {
  for (llama_token_data& c : std::span(candidates->data, candidates->size)) {
    c.logit = std::clamp(c.logit, -kMostLogit, kMostLogit);
  }
}

// Softmax does not care about an offset; with the largest at 0 no temperature can make an infinity.
void shift_to_zero(llama_sampler* /*self*/, llama_token_data_array* candidates) {
  const float largest = largest_logit(*candidates);
  for (llama_token_data& c : std::span(candidates->data, candidates->size)) c.logit -= largest;
}

template <void (*apply)(llama_sampler*, llama_token_data_array*)>
llama_sampler* make_own() {
  static llama_sampler_i interface = [] {
    llama_sampler_i empty{};
    empty.apply = apply;
    return empty;
  }();
  return llama_sampler_init(&interface, nullptr);
}

std::uint32_t pick_seed(std::optional<std::uint32_t> wish) {
  const std::uint32_t seed = wish ? *wish : std::random_device{}();
  return seed == kSeedMeansRandom ? seed - 1 : seed;
}

bool is_adjustment(SamplingStep step) { return step == SamplingStep::kPenalties || step == SamplingStep::kDry; }

bool is_off(SamplingStep step, const SamplingOptions& options) {
  switch (step) {
    case SamplingStep::kPenalties:
      return options.penalty_last_n == 0 ||
             (options.penalty_repeat == 1.0F && options.penalty_frequency == 0.0F && options.penalty_presence == 0.0F);
    case SamplingStep::kDry: return options.dry.multiplier == 0.0F || options.dry.penalty_last_n == 0;
    case SamplingStep::kTopNSigma: return options.top_n_sigma <= 0.0F;
    case SamplingStep::kTopK: return options.top_k == 0;
    case SamplingStep::kTypicalP: return options.typical_p >= 1.0F;
    case SamplingStep::kTopP: return options.top_p >= 1.0F;
    case SamplingStep::kMinP: return options.min_p <= 0.0F;
    case SamplingStep::kXtc: return options.xtc.probability <= 0.0F || options.xtc.threshold > 0.5F;
    case SamplingStep::kTemperature: return options.temperature == 1.0F && options.dynatemp_range == 0.0F;
  }
  return true;
}

std::vector<SamplingStep> active_steps(const SamplingOptions& options) {
  std::vector<SamplingStep> steps;
  if (options.mirostat.version != 0) return steps;
  std::ranges::copy_if(options.steps, std::back_inserter(steps),
                       [&](SamplingStep step) { return !is_off(step, options); });
  // What cuts leaves the likeliest, so that only what moves logits is left of them.
  if (options.is_greedy()) std::erase_if(steps, [](SamplingStep step) { return !is_adjustment(step); });
  return steps;
}

void add_biases(const SamplerPtr& chain, const Vocabulary& vocabulary, const SamplingOptions& options) {
  std::vector<llama_logit_bias> biases;
  for (const LogitBias& bias : options.logit_bias) biases.push_back({bias.token.value(), bias.bias});
  for (std::int32_t id = 0; options.ignore_eos && id < vocabulary.n_tokens(); ++id) {
    if (vocabulary.is_end_of_generation(Token(id))) biases.push_back({id, kForbidden});
  }
  add(chain,
      llama_sampler_init_logit_bias(vocabulary.n_tokens(), static_cast<std::int32_t>(biases.size()), biases.data()));
  add(chain, make_own<drop_forbidden>());
  add(chain, make_own<keep_in_range>());
}

llama_sampler* make_dry(const Vocabulary& vocabulary, const DryOptions& dry) {
  std::vector<const char*> breakers;
  for (const std::string& breaker : dry.sequence_breakers) breakers.push_back(breaker.c_str());
  return llama_sampler_init_dry(vocabulary.llama(), dry.multiplier, dry.base, dry.allowed_length, dry.penalty_last_n,
                                breakers.data(), breakers.size());
}

void add_temperature(const SamplerPtr& chain, const SamplingOptions& options) {
  add(chain, make_own<shift_to_zero>());
  add(chain, llama_sampler_init_temp_ext(options.temperature, options.dynatemp_range, options.dynatemp_exponent));
  add(chain, make_own<drop_forbidden>());
}

void add_step(const SamplerPtr& chain, SamplingStep step, const Vocabulary& vocabulary, const SamplingOptions& options,
              std::uint32_t seed) {
  // An empty choice is none.
  const auto min_keep = static_cast<std::size_t>(std::max(1, options.min_keep));
  switch (step) {
    case SamplingStep::kPenalties:
      add(chain, llama_sampler_init_penalties(vocabulary.n_tokens(), options.penalty_last_n, options.penalty_repeat,
                                              options.penalty_frequency, options.penalty_presence));
      return add(chain, make_own<keep_in_range>());
    case SamplingStep::kDry:
      add(chain, make_dry(vocabulary, options.dry));
      return add(chain, make_own<keep_in_range>());
    case SamplingStep::kTopNSigma:
      add(chain, llama_sampler_init_top_n_sigma(options.top_n_sigma));
      return add(chain, make_own<drop_forbidden>());
    case SamplingStep::kTopK: return add(chain, llama_sampler_init_top_k(options.top_k));
    case SamplingStep::kTypicalP:
      add(chain, make_own<drop_negligible>());
      return add(chain, llama_sampler_init_typical(options.typical_p, min_keep));
    case SamplingStep::kTopP: return add(chain, llama_sampler_init_top_p(options.top_p, min_keep));
    case SamplingStep::kMinP: return add(chain, llama_sampler_init_min_p(options.min_p, min_keep));
    case SamplingStep::kXtc:
      return add(chain, llama_sampler_init_xtc(options.xtc.probability, options.xtc.threshold, min_keep, seed));
    case SamplingStep::kTemperature: return add_temperature(chain, options);
  }
}

void add_mirostat(const SamplerPtr& chain, const Vocabulary& vocabulary, const SamplingOptions& options,
                  std::uint32_t seed) {
  const MirostatOptions& mirostat = options.mirostat;
  add(chain, make_own<shift_to_zero>());
  add(chain, llama_sampler_init_temp(options.temperature));
  add(chain, make_own<drop_negligible>());
  add(chain, mirostat.version == 2 ? llama_sampler_init_mirostat_v2(seed, mirostat.tau, mirostat.eta)
                                   : llama_sampler_init_mirostat(vocabulary.n_tokens(), seed, mirostat.tau,
                                                                 mirostat.eta, kMirostatTokens));
}

// What the draw looks at: `steps` are those behind the adjustments. Only of what top-k is the first to cut the rest is
// certain not to matter.
std::size_t wanted(std::span<const SamplingStep> steps, const SamplingOptions& options) {
  if (options.is_greedy()) return 1;
  if (!steps.empty() && steps.front() == SamplingStep::kTopK) return static_cast<std::size_t>(options.top_k);
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace

void FreeSampler::operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }

Result<SamplerChains> make_sampler_chains(const Vocabulary& vocabulary, const SamplingOptions& options) {
  const std::uint32_t seed = pick_seed(options.seed);
  const std::vector<SamplingStep> steps = active_steps(options);
  const auto first_cut = std::ranges::find_if_not(steps, is_adjustment);
  const std::span<const SamplingStep> adjusting(steps.begin(), first_cut);
  const std::span<const SamplingStep> drawing(first_cut, steps.end());
  SamplerChains chains{.adjustments = make_chain(), .draw = nullptr, .n_wanted = wanted(drawing, options)};
  chains.adjusts = !options.logit_bias.empty() || options.ignore_eos || !adjusting.empty();
  try {
    add_biases(chains.adjustments, vocabulary, options);
    for (const SamplingStep step : adjusting) add_step(chains.adjustments, step, vocabulary, options, seed);
    if (options.is_greedy()) return chains;
    chains.draw = make_chain();
    for (const SamplingStep step : drawing) add_step(chains.draw, step, vocabulary, options, seed);
  } catch (const std::exception& failure) {
    return error(Code::kInvalidArgument, "dry_sequence_breakers cannot be read as tokens: {}", failure.what());
  }
  if (options.mirostat.version != 0) {
    add_mirostat(chains.draw, vocabulary, options, seed);
  } else {
    add(chains.draw, llama_sampler_init_dist(seed));
  }
  return chains;
}

}  // namespace ebb
