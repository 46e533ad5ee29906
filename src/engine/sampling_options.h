// SamplingOptions: how the next token is chosen from the model's logits, as values.
//
// They are llama.cpp's, with its names and defaults; what they do is libllama's (engine/sampler.h). They do not know
// JSON or flags. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace ebb {

struct LogitBias {
  Token token;
  // Added to the token's logit; -infinity forbids the token.
  float bias = 0.0F;
};

// A step between the biases and the draw.
enum class SamplingStep : std::uint8_t {
  kPenalties,
  kDry,
  kTopNSigma,
  kTopK,
  kTypicalP,
  kTopP,
  kMinP,
  kXtc,
  kTemperature,
};
// llama.cpp's name for it, and its letter.
[[nodiscard]] std::string_view name_of(SamplingStep step);
[[nodiscard]] char letter_of(SamplingStep step);
// Those that are run where nobody says otherwise, in their order; every step is one of them.
[[nodiscard]] const std::vector<SamplingStep>& default_sampling_steps();

// Lowers tokens that would go on with a repetition: by multiplier * base^(its length - allowed_length).
struct DryOptions {
  // A breaker is looked for in every token of the vocabulary. More or longer ones: a request begins later.
  static constexpr std::size_t kMaxBreakers = 16;
  static constexpr std::size_t kMaxBreakerBytes = 40;  // libllama reads no more

  float multiplier = 0.0F;  // 0: off
  float base = 1.75F;
  std::int32_t allowed_length = 2;
  // How many of the last tokens are searched; 0: off.
  std::int32_t penalty_last_n = 64;
  // No repetition goes across these.
  std::vector<std::string> sequence_breakers = {"\n", ":", "\"", "*"};
};

// With this probability, of the tokens that are at least as likely as the threshold only the least likely stays.
struct XtcOptions {
  float probability = 0.0F;  // 0: off
  float threshold = 0.1F;    // above 0.5: off
};

// Holds the surprise of the text near tau bits, in place of all steps but the temperature.
struct MirostatOptions {
  std::int32_t version = 0;  // 0: off; 1; 2
  float tau = 5.0F;
  float eta = 0.1F;
};

struct SamplingOptions {
  // The most that penalty_last_n may be; the sampler keeps that many tokens.
  static constexpr std::int32_t kMaxPenaltyTokens = 1 << 20;
  static constexpr std::size_t kMaxSteps = 32;

  float temperature = 0.8F;  // 0: greedy
  // Above 0, the temperature moves in [temperature - range, temperature + range] with the entropy.
  float dynatemp_range = 0.0F;
  float dynatemp_exponent = 1.0F;
  std::int32_t top_k = 40;    // 0: all
  float top_p = 0.95F;        // 1: off
  float min_p = 0.05F;        // 0: off
  float typical_p = 1.0F;     // 1: off
  float top_n_sigma = -1.0F;  // 0 and below: off
  // What top_p, min_p, typical_p and xtc leave at least.
  std::int32_t min_keep = 0;
  // How many of the last accepted tokens the penalties look at; 0 switches the penalties off.
  std::int32_t penalty_last_n = 64;
  float penalty_repeat = 1.0F;     // 1: off
  float penalty_frequency = 0.0F;  // 0: off
  float penalty_presence = 0.0F;   // 0: off
  DryOptions dry = {};
  XtcOptions xtc = {};
  MirostatOptions mirostat = {};
  std::vector<SamplingStep> steps = default_sampling_steps();
  std::optional<std::uint32_t> seed = std::nullopt;  // unset: a random one
  std::vector<LogitBias> logit_bias = {};
  // Forbids all tokens that end a generation.
  bool ignore_eos = false;
  // GBNF; empty: no grammar.
  std::string grammar = {};
  std::string grammar_root = "root";
  // Control tokens that the grammar may match by their text. It matches no others, but for those that it names.
  std::vector<Token> marks = {};

  // Whether nothing is drawn: the likeliest token is taken.
  [[nodiscard]] bool is_greedy() const;
  // kInvalidArgument naming the option, its value and its range. Tokens and grammar are checked by Sampler::create.
  [[nodiscard]] Status validate() const;
};

}  // namespace ebb
