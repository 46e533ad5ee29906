#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string_view>
#include <utility>

#include "llama.h"

#include "text/gbnf_match.h"

namespace ebb {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
// libllama reads this seed as "draw one"; the user who asks for it gets the seed below.
constexpr std::uint32_t kSeedMeansRandom = LLAMA_DEFAULT_SEED;
// Tokens that cannot reach a probability of e^-80 do not change what typical-p keeps, but their p rounds to zero and
// its logarithm makes libllama sort NaN.
constexpr float kNegligibleLogit = -80.0F;
// How many of the likeliest tokens are shown to the grammar first. Fewer: more rounds when it refuses many; more: work
// for nothing when it refuses few.
constexpr std::size_t kFirstGrammarBatch = 64;

struct FreeSampler {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using SamplerPtr = std::unique_ptr<llama_sampler, FreeSampler>;
using Candidates = std::vector<llama_token_data>;

bool likelier(const llama_token_data& a, const llama_token_data& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

template <class T>
Status check_range(std::string_view name, T value, T least, T most) {
  if (value >= least && value <= most) return {};  // false for NaN
  return error(Code::kInvalidArgument, "{} is {}; it must lie in {} to {}", name, value, least, most);
}

SamplerPtr make_chain() {
  llama_sampler_chain_params params = llama_sampler_chain_default_params();
  params.no_perf = true;
  return SamplerPtr(llama_sampler_chain_init(params));
}

// Bias and penalties: what applies to greedy choice too.
SamplerPtr make_adjustments(std::int32_t n_tokens, const SamplingOptions& options) {
  SamplerPtr chain = make_chain();
  std::vector<llama_logit_bias> biases;
  for (const LogitBias& bias : options.logit_bias) biases.push_back({bias.token.value(), bias.bias});
  llama_sampler_chain_add(
      chain.get(), llama_sampler_init_logit_bias(n_tokens, static_cast<std::int32_t>(biases.size()), biases.data()));
  llama_sampler_chain_add(chain.get(),
                          llama_sampler_init_penalties(n_tokens, options.penalty_last_n, options.penalty_repeat,
                                                       options.penalty_frequency, options.penalty_presence));
  return chain;
}

SamplerPtr make_draw(const SamplingOptions& options, std::uint32_t seed) {
  SamplerPtr chain = make_chain();
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_k(options.top_k));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_typical(options.typical_p, 1));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_p(options.top_p, 1));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_min_p(options.min_p, 1));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_temp(options.temperature));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_dist(seed));
  return chain;
}

std::uint32_t pick_seed(std::optional<std::uint32_t> wish) {
  const std::uint32_t seed = wish ? *wish : std::random_device{}();
  return seed == kSeedMeansRandom ? seed - 1 : seed;
}

}  // namespace

Status SamplingOptions::validate() const {
  EBB_RETURN_IF_ERROR(check_range("temperature", temperature, 0.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("top_k", top_k, 0, std::numeric_limits<std::int32_t>::max()));
  EBB_RETURN_IF_ERROR(check_range("top_p", top_p, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("min_p", min_p, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("typical_p", typical_p, 0.0F, 1.0F));
  EBB_RETURN_IF_ERROR(check_range("penalty_last_n", penalty_last_n, 0, kMaxPenaltyTokens));
  EBB_RETURN_IF_ERROR(check_range("penalty_repeat", penalty_repeat, 0.01F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("penalty_frequency", penalty_frequency, -100.0F, 100.0F));
  EBB_RETURN_IF_ERROR(check_range("penalty_presence", penalty_presence, -100.0F, 100.0F));
  for (const LogitBias& bias : logit_bias) {
    if (bias.bias == kForbidden) continue;
    EBB_RETURN_IF_ERROR(check_range("logit bias", bias.bias, -1e6F, 1e6F));
  }
  return {};
}

struct Sampler::State {
  const Vocabulary* vocabulary = nullptr;
  SamplingOptions options;
  SamplerPtr adjustments;
  SamplerPtr draw;
  std::optional<GbnfMatch> grammar;
  // Control tokens that the grammar may match; it would take any by its text, also inside a string of JSON.
  std::vector<Token> spoken;
  Candidates candidates;

  Status load(std::span<const float> logits);
  Result<bool> grammar_accepts(Token token);
  std::string grammar_bytes(Token token) const;
  Result<Candidates> ask_grammar(std::span<const llama_token_data> asked);
  Status keep_allowed();
  llama_token draw_token();
};

// Takes the logits as candidates, adjusts them, and keeps those that are not forbidden.
Status Sampler::State::load(std::span<const float> logits) {
  const std::int32_t n_tokens = vocabulary->n_tokens();
  if (logits.size() != static_cast<std::size_t>(n_tokens)) {
    return error(Code::kInvalidArgument, "{} logits for a vocabulary of {}", logits.size(), n_tokens);
  }
  candidates.resize(logits.size());
  bool any = false;
  for (std::int32_t id = 0; id < n_tokens; ++id) {
    const float logit = logits[static_cast<std::size_t>(id)];
    if (std::isnan(logit) || logit == std::numeric_limits<float>::infinity()) {
      return error(Code::kInvalidArgument, "the logit of token {} is {}; the model's output is not usable", id, logit);
    }
    any = any || logit != kForbidden;
    candidates[static_cast<std::size_t>(id)] = {.id = id, .logit = logit, .p = 0.0F};
  }
  if (!any) return error(Code::kInvalidArgument, "all logits are -infinity; the model's output is not usable");

  llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(adjustments.get(), &array);
  std::erase_if(candidates, [](const llama_token_data& c) { return c.logit == kForbidden; });
  // A penalty may push a huge logit over the edge.
  for (llama_token_data& c : candidates) c.logit = std::min(c.logit, std::numeric_limits<float>::max());
  return {};
}

Result<bool> Sampler::State::grammar_accepts(Token token) {
  if (vocabulary->is_end_of_generation(token)) return grammar->may_end();
  const std::string bytes = grammar_bytes(token);
  return grammar->accept({.token = token, .bytes = bytes});
}

// None for a token that the grammar may not match.
std::string Sampler::State::grammar_bytes(Token token) const {
  if (vocabulary->control_tokens().contains(token) && std::ranges::find(spoken, token) == spoken.end()) return {};
  auto piece = vocabulary->piece(token, SpecialTokens::kShow);
  return piece.ok() ? *std::move(piece) : std::string();
}

// Those that the grammar allows, in their order.
Result<Candidates> Sampler::State::ask_grammar(std::span<const llama_token_data> asked) {
  std::vector<std::string> bytes;
  std::vector<GbnfPiece> pieces;
  for (const llama_token_data& c : asked) bytes.push_back(grammar_bytes(Token(c.id)));
  for (std::size_t i = 0; i < asked.size(); ++i) pieces.push_back({.token = Token(asked[i].id), .bytes = bytes[i]});
  EBB_ASSIGN_OR_RETURN(const std::vector<bool> allowed, grammar->allows(pieces));
  Candidates kept;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const bool is_end = vocabulary->is_end_of_generation(Token(asked[i].id));
    if (is_end ? grammar->may_end() : allowed[i]) kept.push_back(asked[i]);
  }
  return kept;
}

// Keeps the candidates that the grammar allows; of these only the likeliest `top_k`, because no others can be drawn.
// Asking about all tokens of a large vocabulary takes longer than a step of a small model, so the likeliest are asked
// first, in batches that grow.
Status Sampler::State::keep_allowed() {
  std::size_t n_wanted = options.top_k > 0 ? static_cast<std::size_t>(options.top_k) : candidates.size();
  if (options.temperature == 0.0F) n_wanted = 1;
  Candidates allowed;
  std::size_t n_batch = std::max(kFirstGrammarBatch, n_wanted);
  auto first = candidates.begin();
  while (first != candidates.end() && allowed.size() < n_wanted) {
    const auto n_left = static_cast<std::size_t>(candidates.end() - first);
    const auto last = first + static_cast<std::ptrdiff_t>(std::min(n_batch, n_left));
    std::partial_sort(first, last, candidates.end(), likelier);
    EBB_ASSIGN_OR_RETURN(const Candidates kept, ask_grammar({first, last}));
    allowed.insert(allowed.end(), kept.begin(), kept.end());
    first = last;
    n_batch *= 4;
  }
  if (allowed.size() > n_wanted) allowed.resize(n_wanted);
  candidates = std::move(allowed);
  return {};
}

llama_token Sampler::State::draw_token() {
  if (options.temperature == 0.0F) return std::min_element(candidates.begin(), candidates.end(), likelier)->id;
  // Softmax does not care about an offset; with the largest at 0 no temperature can make an infinity.
  const float largest = std::min_element(candidates.begin(), candidates.end(), likelier)->logit;
  for (llama_token_data& c : candidates) c.logit -= largest;
  if (options.typical_p < 1.0F) {
    std::erase_if(candidates, [](const llama_token_data& c) { return c.logit < kNegligibleLogit; });
  }
  llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(draw.get(), &array);
  EBB_CHECK(array.selected >= 0 && array.selected < static_cast<std::int64_t>(array.size), "{} of {}", array.selected,
            array.size);
  return array.data[array.selected].id;
}

Sampler::Sampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&& other) noexcept = default;
Sampler& Sampler::operator=(Sampler&& other) noexcept = default;

Result<Sampler> Sampler::create(const Vocabulary& vocabulary, const SamplingOptions& options) {
  EBB_RETURN_IF_ERROR(options.validate());
  for (const LogitBias& bias : options.logit_bias) {
    if (!vocabulary.contains(bias.token)) {
      return error(Code::kInvalidArgument, "logit bias for token {}, which is not one of the vocabulary's {}",
                   bias.token.value(), vocabulary.n_tokens());
    }
  }
  auto state = std::make_unique<State>();
  state->vocabulary = &vocabulary;
  state->options = options;
  state->adjustments = make_adjustments(vocabulary.n_tokens(), options);
  state->draw = make_draw(options, pick_seed(options.seed));
  if (!options.grammar.empty()) {
    EBB_ASSIGN_OR_RETURN(Gbnf gbnf, read_gbnf(vocabulary, options.grammar, options.grammar_root));
    state->spoken = gbnf.named;
    state->spoken.insert(state->spoken.end(), options.marks.begin(), options.marks.end());
    EBB_ASSIGN_OR_RETURN(state->grammar, GbnfMatch::begin(std::make_shared<const Gbnf>(std::move(gbnf))));
  }
  return Sampler(std::move(state));
}

Result<std::optional<Token>> Sampler::sample(std::span<const float> logits) {
  State& state = *state_;
  EBB_RETURN_IF_ERROR(state.load(logits));
  if (state.grammar) EBB_RETURN_IF_ERROR(state.keep_allowed());
  if (state.candidates.empty()) return std::optional<Token>();
  return std::optional<Token>(Token(state.draw_token()));
}

Status Sampler::accept(Token token) {
  State& state = *state_;
  if (!state.vocabulary->contains(token)) {
    return error(Code::kInvalidArgument, "token {} is not one of the vocabulary's {}", token.value(),
                 state.vocabulary->n_tokens());
  }
  if (state.grammar) {
    EBB_ASSIGN_OR_RETURN(const bool is_allowed, state.grammar_accepts(token));
    if (!is_allowed) {
      return error(Code::kInvalidArgument, "the grammar does not allow token {} here", token.value());
    }
  }
  llama_sampler_accept(state.adjustments.get(), token.value());
  return {};
}

Status Sampler::accept_prompt(std::span<const Token> tokens) {
  State& state = *state_;
  for (const Token token : tokens) {
    if (state.vocabulary->contains(token)) continue;
    return error(Code::kInvalidArgument, "token {} is not one of the vocabulary's {}", token.value(),
                 state.vocabulary->n_tokens());
  }
  for (const Token token : tokens) llama_sampler_accept(state.adjustments.get(), token.value());
  return {};
}

}  // namespace ebb
