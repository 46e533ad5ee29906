#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "llama.h"

#include "engine/sampler_chain.h"
#include "grammar/gbnf_match.h"

namespace ebb {
namespace {

// How many of the likeliest tokens are shown to the grammar first. Fewer: more rounds when it refuses many; more: work
// for nothing when it refuses few.
constexpr std::size_t kFirstGrammarBatch = 64;

using Candidates = std::vector<llama_token_data>;

bool likelier(const llama_token_data& a, const llama_token_data& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The first of the largest logits; nothing where one of them is none or no token can be. In 16 at once, since a maximum
// whose order is fixed is not one that compilers take apart.
std::optional<Token> find_likeliest(std::span<const float> logits) {
  constexpr std::size_t kVectorFloats = 16;
  std::array<float, kVectorFloats> largest;
  std::array<std::uint32_t, kVectorFloats> is_sick{};
  largest.fill(kForbidden);
  const auto look = [&](std::size_t e, float logit) {
    largest[e] = logit > largest[e] ? logit : largest[e];
    is_sick[e] |= logit < std::numeric_limits<float>::infinity() ? 0U : 1U;  // false for NaN
  };
  std::size_t i = 0;
  for (; i + kVectorFloats <= logits.size(); i += kVectorFloats) {
    for (std::size_t e = 0; e < kVectorFloats; ++e) look(e, logits[i + e]);
  }
  for (; i < logits.size(); ++i) look(0, logits[i]);
  const float top = std::ranges::max(largest);
  if (top == kForbidden || std::ranges::find(is_sick, 1U) != is_sick.end()) return std::nullopt;
  return Token(static_cast<std::int32_t>(std::ranges::find(logits, top) - logits.begin()));
}

}  // namespace

struct Sampler::State {
  const Vocabulary* vocabulary = nullptr;
  SamplerChains chains;
  std::optional<GbnfMatch> grammar;
  // Control tokens that the grammar may match; it would take any by its text, also inside a string of JSON.
  std::vector<Token> spoken;
  Candidates candidates;
  // The candidates that the last draw was left with; none for greedy choice.
  std::span<const llama_token_data> drawn;

  Status load(std::span<const float> logits);
  Result<bool> grammar_accepts(Token token);
  std::string grammar_bytes(Token token) const;
  Result<Candidates> ask_grammar(std::span<const llama_token_data> asked);
  Status keep_allowed();
  llama_token draw_token();
  // Shows a token to the penalties and to the draw, which may remember it.
  void see(llama_token id);
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
  llama_sampler_apply(chains.adjustments.get(), &array);
  candidates.resize(array.size);
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

// Keeps the candidates that the grammar allows; of these only the likeliest, where no others can be drawn.
// Asking about all tokens of a large vocabulary takes longer than a step of a small model, so the likeliest are asked
// first, in batches that grow.
Status Sampler::State::keep_allowed() {
  const std::size_t n_wanted = std::min(chains.n_wanted, candidates.size());
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
  if (chains.draw == nullptr) return std::min_element(candidates.begin(), candidates.end(), likelier)->id;
  llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(chains.draw.get(), &array);
  EBB_CHECK(array.selected >= 0 && array.selected < static_cast<std::int64_t>(array.size), "{} of {}", array.selected,
            array.size);
  drawn = {array.data, array.size};
  return array.data[array.selected].id;
}

void Sampler::State::see(llama_token id) {
  llama_sampler_accept(chains.adjustments.get(), id);
  if (chains.draw != nullptr) llama_sampler_accept(chains.draw.get(), id);
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
  EBB_ASSIGN_OR_RETURN(state->chains, make_sampler_chains(vocabulary, options));
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
  state.drawn = {};
  // Where nothing changes or forbids a logit: many sessions of a small model spend an eighth of a step on candidates.
  const bool is_plain = state.chains.draw == nullptr && !state.chains.adjusts && !state.grammar;
  if (is_plain && logits.size() == static_cast<std::size_t>(state.vocabulary->n_tokens())) {
    if (const std::optional<Token> likeliest = find_likeliest(logits)) return likeliest;
  }
  EBB_RETURN_IF_ERROR(state.load(logits));
  if (state.grammar) EBB_RETURN_IF_ERROR(state.keep_allowed());
  if (state.candidates.empty()) return std::optional<Token>();
  return std::optional<Token>(Token(state.draw_token()));
}

TokenChances Sampler::drawn_chances(Token token, std::int32_t n_likeliest) const {
  if (state_->drawn.empty()) return certain_chances(token, n_likeliest);
  TokenChances chances{.kept = {.token = token}, .is_of_draw = true};
  Candidates all(state_->drawn.begin(), state_->drawn.end());
  std::erase_if(all, [](const llama_token_data& c) { return c.p <= 0.0F; });
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.p > b.p || (a.p == b.p && a.id < b.id); });
  for (const llama_token_data& c : all) {
    const TokenChance chance{.token = Token(c.id), .logprob = std::log(c.p)};
    if (chance.token == token) chances.kept = chance;
    if (std::ssize(chances.likeliest) < n_likeliest) chances.likeliest.push_back(chance);
  }
  return chances;
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
  state.see(token.value());
  return {};
}

Status Sampler::accept_prompt(std::span<const Token> tokens) {
  State& state = *state_;
  for (const Token token : tokens) {
    if (state.vocabulary->contains(token)) continue;
    return error(Code::kInvalidArgument, "token {} is not one of the vocabulary's {}", token.value(),
                 state.vocabulary->n_tokens());
  }
  for (const Token token : tokens) state.see(token.value());
  return {};
}

}  // namespace ebb
