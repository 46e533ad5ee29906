#include "server/generation_request.h"

#include <algorithm>
#include <limits>
#include <span>

namespace ebb {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
// As many as the largest blocks hold.
constexpr std::int64_t kMostRecomputed = 128;
constexpr std::int64_t kMostLogprobs = 20;
constexpr float kMostTemperature = 100.0F;
constexpr float kMostPenalty = 100.0F;

// What clients send and this server cannot do is refused, not ignored: an answer without what was asked for is wrong.
void refuse_unsupported(Fields& fields) {
  for (const std::string_view name : {"mirostat", "echo", "suffix"}) {
    const Json* value = fields.find(name);
    if (value == nullptr || *value == false || *value == 0 || *value == "") continue;
    fields.refuse(fmt::format("Field '{}': not supported by this server", name));
  }
  (void)fields.integer("best_of", 1, 1, 1);
}

std::int32_t max_tokens(Fields& fields) {
  std::int64_t n = -1;
  for (const std::string_view name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    n = fields.integer(name, n, -1, kMost);
  }
  return static_cast<std::int32_t>(n);
}

std::vector<std::string> stop_strings(Fields& fields) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return {};
  if (stop->is_string()) return {stop->get<std::string>()};
  std::vector<std::string> strings;
  bool all_strings = stop->is_array() && stop->size() <= StopStrings::kMaxStrings;
  if (stop->is_array()) {
    for (const Json& one : *stop) {
      all_strings = all_strings && one.is_string();
      if (one.is_string()) strings.push_back(one.get<std::string>());
    }
  }
  if (!all_strings) {
    fields.refuse(fmt::format("Field 'stop': must be a string or up to {} strings", StopStrings::kMaxStrings));
  }
  std::erase(strings, "");
  return strings;
}

void add_bias(Fields& fields, const Vocabulary& vocabulary, const std::string& key, const Json& value,
              std::vector<LogitBias>& biases) {
  float bias = 0.0F;
  if (value.is_number()) {
    bias = value.get<float>();
  } else if (value == false) {
    bias = -std::numeric_limits<float>::infinity();
  } else {
    return fields.refuse("Field 'logit_bias': values are numbers, or false for never");
  }
  const auto most = static_cast<std::size_t>(vocabulary.n_tokens());
  if (biases.size() >= most) {
    return fields.refuse(fmt::format("Field 'logit_bias': more entries than the vocabulary's {} tokens", most));
  }
  if (!key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos) {
    const Token token(std::stoi(key));
    if (!vocabulary.contains(token)) return fields.refuse(fmt::format("Field 'logit_bias': no token {}", key));
    biases.push_back({.token = token, .bias = bias});
    return;
  }
  const Result<std::vector<Token>> tokens = vocabulary.tokenize(key, {.add_bos = false});
  if (!tokens.ok()) return fields.refuse("Field 'logit_bias': a key that is neither a token nor a text");
  for (const Token token : std::span(*tokens).first(std::min(tokens->size(), most)))
    biases.push_back({.token = token, .bias = bias});
}

std::vector<LogitBias> logit_biases(Fields& fields, const Vocabulary& vocabulary) {
  std::vector<LogitBias> biases;
  const Json* given = fields.find("logit_bias");
  if (given == nullptr) return biases;
  if (given->is_object()) {
    for (const auto& [key, value] : given->items()) add_bias(fields, vocabulary, key, value, biases);
  } else if (given->is_array()) {
    for (const Json& pair : *given) {
      if (!pair.is_array() || pair.size() != 2 || !(pair[0].is_string() || pair[0].is_number_unsigned())) {
        fields.refuse("Field 'logit_bias': pairs are [token or text, bias]");
        break;
      }
      add_bias(fields, vocabulary, pair[0].is_string() ? pair[0].get<std::string>() : pair[0].dump(), pair[1], biases);
    }
  } else {
    fields.refuse("Field 'logit_bias': must be an object or an array of pairs");
  }
  return biases;
}

SamplingOptions sampling(Fields& fields, const Vocabulary& vocabulary) {
  const SamplingOptions defaults;
  SamplingOptions options;
  options.temperature = fields.number("temperature", defaults.temperature, 0.0F, kMostTemperature);
  options.top_k = static_cast<std::int32_t>(fields.integer("top_k", defaults.top_k, -1, kMost));
  options.top_k = std::max(0, options.top_k);
  options.top_p = fields.number("top_p", defaults.top_p, 0.0F, 1.0F);
  options.min_p = fields.number("min_p", defaults.min_p, 0.0F, 1.0F);
  options.typical_p = fields.number("typical_p", defaults.typical_p, 0.0F, 1.0F);
  options.penalty_last_n = static_cast<std::int32_t>(
      fields.integer("repeat_last_n", defaults.penalty_last_n, 0, SamplingOptions::kMaxPenaltyTokens));
  options.penalty_repeat = fields.number("repeat_penalty", defaults.penalty_repeat, 0.0F, kMostPenalty);
  options.penalty_frequency = fields.number("frequency_penalty", 0.0F, -kMostPenalty, kMostPenalty);
  options.penalty_presence = fields.number("presence_penalty", 0.0F, -kMostPenalty, kMostPenalty);
  const std::int64_t seed = fields.integer("seed", -1, -1, std::numeric_limits<std::uint32_t>::max());
  if (seed >= 0) options.seed = static_cast<std::uint32_t>(seed);
  options.grammar = fields.text("grammar");
  options.logit_bias = logit_biases(fields, vocabulary);
  return options;
}

ResumeOptions resume_options(Fields& fields, ResumeOptions options) {
  const std::string reuse = fields.text("kv_reuse");
  if (reuse == "exact") {
    options.reuse = Reuse::kExact;
  } else if (reuse == "approximate") {
    options.reuse = Reuse::kApproximate;
  } else if (!reuse.empty()) {
    fields.refuse("Field 'kv_reuse': must be \"exact\" or \"approximate\"");
  }
  options.n_recomputed =
      static_cast<std::int32_t>(fields.integer("kv_reuse_recompute", options.n_recomputed, 0, kMostRecomputed));
  return options;
}

}  // namespace

Result<GenerationRequest> parse_generation_request(const Json& body, const Vocabulary& vocabulary,
                                                   std::int32_t max_choices, const ResumeOptions& resuming) {
  Fields fields(body);
  GenerationRequest request;
  refuse_unsupported(fields);
  request.options.sampling = sampling(fields, vocabulary);
  request.options.max_tokens = max_tokens(fields);
  request.options.stop_strings = stop_strings(fields);
  request.resuming = resume_options(fields, resuming);
  request.n_choices = static_cast<std::int32_t>(fields.integer("n", 1, 1, max_choices));
  request.stream = fields.boolean("stream", false);
  request.tells_progress = fields.boolean("return_progress", false);
  request.tells_timings = fields.boolean("timings_per_token", false);
  if (const Json* options = fields.find("stream_options"); options != nullptr) {
    Fields inner(*options);
    request.include_usage = inner.boolean("include_usage", false);
    if (!inner.status().ok()) fields.refuse("stream_options: " + inner.status().message());
  }
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_RETURN_IF_ERROR(request.options.sampling.validate());
  return request;
}

Result<std::optional<std::int32_t>> parse_chat_logprobs(const Json& body) {
  Fields fields(body);
  const bool is_asked = fields.boolean("logprobs", false);
  const auto n = static_cast<std::int32_t>(fields.integer("top_logprobs", 0, 0, kMostLogprobs));
  if (!is_asked && fields.find("top_logprobs") != nullptr && n > 0) {
    fields.refuse("Field 'top_logprobs': needs 'logprobs' to be true");
  }
  EBB_RETURN_IF_ERROR(fields.status());
  return is_asked ? std::optional(n) : std::nullopt;
}

Result<std::optional<std::int32_t>> parse_text_logprobs(const Json& body) {
  Fields fields(body);
  std::optional<std::int32_t> n;
  for (const std::string_view name : {"logprobs", "n_probs"}) {
    const Json* value = fields.find(name);
    if (value == nullptr || *value == false) continue;
    n = static_cast<std::int32_t>(fields.integer(name, 0, 0, kMostLogprobs));
    if (name == "n_probs" && *n == 0) n.reset();
  }
  EBB_RETURN_IF_ERROR(fields.status());
  return n;
}

}  // namespace ebb
