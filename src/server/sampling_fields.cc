#include "server/sampling_fields.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <span>

namespace ebb {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
// The most that is taken of most continuous parameters that have no end of their own (SamplingOptions::validate).
constexpr float kLarge = 100.0F;

std::int32_t count(JsonFields& fields, std::string_view name, std::int32_t otherwise, std::int64_t most = kMost) {
  return static_cast<std::int32_t>(fields.integer(name, otherwise, 0, most));
}

void add_bias(JsonFields& fields, const Vocabulary& vocabulary, const std::string& key, const Json& value,
              std::vector<LogitBias>& biases) {
  float bias = 0.0F;
  if (value.is_number()) {
    bias = value.get<float>();
  } else if (value == false) {
    bias = -std::numeric_limits<float>::infinity();
  } else {
    return fields.refuse("logit_bias", "values are numbers, or false for never");
  }
  const auto most = static_cast<std::size_t>(vocabulary.n_tokens());
  if (biases.size() >= most) {
    return fields.refuse("logit_bias", fmt::format("more entries than the vocabulary's {} tokens", most));
  }
  if (!key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos) {
    const Token token(std::stoi(key));
    if (!vocabulary.contains(token)) return fields.refuse("logit_bias", fmt::format("no token {}", key));
    biases.push_back({.token = token, .bias = bias});
    return;
  }
  const Result<std::vector<Token>> tokens = vocabulary.tokenize(key, {.add_bos = false});
  if (!tokens.ok()) return fields.refuse("logit_bias", "a key that is neither a token nor a text");
  for (const Token token : std::span(*tokens).first(std::min(tokens->size(), most))) {
    biases.push_back({.token = token, .bias = bias});
  }
}

std::vector<LogitBias> logit_biases(JsonFields& fields, const Vocabulary& vocabulary) {
  std::vector<LogitBias> biases;
  const Json* given = fields.find("logit_bias");
  if (given == nullptr) return biases;
  if (given->is_object()) {
    for (const auto& [key, value] : given->items()) add_bias(fields, vocabulary, key, value, biases);
  } else if (given->is_array()) {
    for (const Json& pair : *given) {
      if (!pair.is_array() || pair.size() != 2 || !(pair[0].is_string() || pair[0].is_number_unsigned())) {
        fields.refuse("logit_bias", "pairs are [token or text, bias]");
        break;
      }
      add_bias(fields, vocabulary, pair[0].is_string() ? pair[0].get<std::string>() : pair[0].dump(), pair[1], biases);
    }
  } else {
    fields.refuse("logit_bias", "must be an object or an array of pairs");
  }
  return biases;
}

// Small ones stay as they are.
std::optional<std::uint32_t> seed(JsonFields& fields) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t given = fields.integer("seed", -1, Limits::min(), Limits::max());
  if (given == -1) return std::nullopt;
  const auto bits = static_cast<std::uint64_t>(given);
  return static_cast<std::uint32_t>(bits ^ (bits >> 32U));
}

// As llama.cpp takes them: in capitals too, with '-' or nothing for '_', and some short.
std::optional<SamplingStep> find_step(std::string_view name) {
  const auto plain = [](std::string_view text) {
    std::string letters;
    for (const char c : text) {
      if (c != '_' && c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return letters;
  };
  const std::string wanted = plain(name);
  if (wanted == "nucleus") return SamplingStep::kTopP;
  if (wanted == "temp") return SamplingStep::kTemperature;
  if (wanted == "typ" || wanted == "typicalp") return SamplingStep::kTypicalP;
  for (const SamplingStep step : default_sampling_steps()) {
    if (plain(name_of(step)) == wanted) return step;
  }
  return std::nullopt;
}

std::optional<SamplingStep> find_step(char letter) {
  for (const SamplingStep step : default_sampling_steps()) {
    if (letter_of(step) == letter) return step;
  }
  return std::nullopt;
}

// An array of names, or a text of letters. Clients list all that some server has.
std::vector<SamplingStep> steps(JsonFields& fields, std::vector<std::string>& warnings) {
  const Json* given = fields.find("samplers");
  if (given == nullptr) return default_sampling_steps();
  std::vector<SamplingStep> steps;
  const auto take = [&](std::optional<SamplingStep> step, std::string_view name) {
    if (step) return steps.push_back(*step);
    warnings.push_back(fmt::format("samplers: left out '{:.20}', which is none of this server's", name));
  };
  if (given->is_string()) {
    const std::string letters = fields.text("samplers").substr(0, SamplingOptions::kMaxSteps + 1);
    for (const char letter : letters) take(find_step(letter), {&letter, 1});
  } else {
    for (const std::string& name : fields.texts("samplers", SamplingOptions::kMaxSteps)) take(find_step(name), name);
  }
  return steps;
}

DryOptions dry(JsonFields& fields) {
  const DryOptions defaults;
  DryOptions dry;
  dry.multiplier = fields.number("dry_multiplier", defaults.multiplier, 0.0F, kLarge);
  // llama.cpp's rule for what cannot be a base.
  dry.base = fields.number("dry_base", defaults.base, 0.0F, kLarge);
  if (dry.base < 1.0F) dry.base = defaults.base;
  dry.allowed_length = count(fields, "dry_allowed_length", defaults.allowed_length);
  dry.penalty_last_n = count(fields, "dry_penalty_last_n", defaults.penalty_last_n, SamplingOptions::kMaxPenaltyTokens);
  if (fields.find("dry_sequence_breakers") == nullptr) return dry;
  dry.sequence_breakers = fields.texts("dry_sequence_breakers", DryOptions::kMaxBreakers);
  if (dry.sequence_breakers.empty()) fields.refuse("dry_sequence_breakers", "must not be empty");
  return dry;
}

}  // namespace

SamplingOptions read_sampling_fields(JsonFields& fields, const Vocabulary& vocabulary,
                                     std::vector<std::string>& warnings) {
  SamplingOptions options;
  options.temperature = fields.number("temperature", options.temperature, 0.0F, kLarge);
  options.dynatemp_range = fields.number("dynatemp_range", options.dynatemp_range, 0.0F, kLarge);
  options.dynatemp_exponent = fields.number("dynatemp_exponent", options.dynatemp_exponent, 0.0F, kLarge);
  options.top_k =
      static_cast<std::int32_t>(std::max(std::int64_t{0}, fields.integer("top_k", options.top_k, -1, kMost)));
  options.top_p = fields.number("top_p", options.top_p, 0.0F, 1.0F);
  options.min_p = fields.number("min_p", options.min_p, 0.0F, 1.0F);
  options.typical_p = fields.number("typical_p", options.typical_p, 0.0F, 1.0F);
  options.top_n_sigma = fields.number("top_n_sigma", options.top_n_sigma, -1.0F, kLarge);
  options.min_keep = count(fields, "min_keep", options.min_keep);
  options.penalty_last_n = count(fields, "repeat_last_n", options.penalty_last_n, SamplingOptions::kMaxPenaltyTokens);
  options.penalty_repeat = fields.number("repeat_penalty", options.penalty_repeat, 0.0F, kLarge);
  options.penalty_frequency = fields.number("frequency_penalty", 0.0F, -kLarge, kLarge);
  options.penalty_presence = fields.number("presence_penalty", 0.0F, -kLarge, kLarge);
  options.dry = dry(fields);
  options.xtc.probability = fields.number("xtc_probability", options.xtc.probability, 0.0F, 1.0F);
  options.xtc.threshold = fields.number("xtc_threshold", options.xtc.threshold, 0.0F, 1.0F);
  options.mirostat.version = static_cast<std::int32_t>(fields.number("mirostat", 0.0F, 0.0F, 2.0F));
  options.mirostat.tau = fields.number("mirostat_tau", options.mirostat.tau, 0.0F, kLarge);
  options.mirostat.eta = fields.number("mirostat_eta", options.mirostat.eta, 0.0F, 1.0F);
  options.steps = steps(fields, warnings);
  options.seed = seed(fields);
  options.ignore_eos = fields.boolean("ignore_eos", false);
  options.logit_bias = logit_biases(fields, vocabulary);
  return options;
}

Json sampling_json(const SamplingOptions& options) {
  Json biases = Json::array();
  for (const LogitBias& bias : options.logit_bias) {
    // JSON has no infinity; false is how it was asked for.
    biases.push_back({{"token", bias.token.value()}, {"bias", std::isinf(bias.bias) ? Json(false) : Json(bias.bias)}});
  }
  Json samplers = Json::array();
  for (const SamplingStep step : options.steps) samplers.push_back(name_of(step));
  return {{"seed", options.seed ? Json(*options.seed) : Json(-1)},
          {"temperature", options.temperature},
          {"dynatemp_range", options.dynatemp_range},
          {"dynatemp_exponent", options.dynatemp_exponent},
          {"top_k", options.top_k},
          {"top_p", options.top_p},
          {"min_p", options.min_p},
          {"top_n_sigma", options.top_n_sigma},
          {"xtc_probability", options.xtc.probability},
          {"xtc_threshold", options.xtc.threshold},
          {"typical_p", options.typical_p},
          {"repeat_last_n", options.penalty_last_n},
          {"repeat_penalty", options.penalty_repeat},
          {"presence_penalty", options.penalty_presence},
          {"frequency_penalty", options.penalty_frequency},
          {"dry_multiplier", options.dry.multiplier},
          {"dry_base", options.dry.base},
          {"dry_allowed_length", options.dry.allowed_length},
          {"dry_penalty_last_n", options.dry.penalty_last_n},
          {"dry_sequence_breakers", options.dry.sequence_breakers},
          {"mirostat", options.mirostat.version},
          {"mirostat_tau", options.mirostat.tau},
          {"mirostat_eta", options.mirostat.eta},
          {"min_keep", options.min_keep},
          {"ignore_eos", options.ignore_eos},
          {"samplers", std::move(samplers)},
          {"logit_bias", std::move(biases)},
          {"grammar", options.grammar}};
}

}  // namespace ebb
