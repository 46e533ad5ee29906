#include "server/generation_request.h"

#include <algorithm>
#include <limits>

#include "server/sampling_fields.h"

namespace ebb {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
// As many as the largest blocks hold.
constexpr std::int64_t kMostRecomputed = 128;
constexpr std::int64_t kMostLogprobs = 20;
constexpr std::int64_t kMostRecallBlocks = 1 << 20;
// Each is looked for among the session's parts.
constexpr std::size_t kMostRecallNames = 64;
constexpr std::size_t kMostSelectors = 16;

// What clients send and this server cannot do is refused, not ignored: an answer without what was asked for is wrong.
void refuse_unsupported(JsonFields& fields) {
  for (const std::string_view name : {"echo", "suffix"}) {
    const Json* value = fields.find(name);
    if (value == nullptr || *value == false || *value == 0 || *value == "") continue;
    fields.refuse(name, "not supported by this server");
  }
  (void)fields.integer("best_of", 1, 1, 1);
}

std::int32_t max_tokens(JsonFields& fields) {
  std::int64_t n = -1;
  for (const std::string_view name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    n = fields.integer(name, n, -1, kMost);
  }
  return static_cast<std::int32_t>(n);
}

std::vector<std::string> stop_strings(JsonFields& fields) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return {};
  if (stop->is_string()) return {fields.text("stop")};
  std::vector<std::string> strings = fields.texts("stop", StopStrings::kMaxStrings);
  std::erase(strings, "");
  return strings;
}

// Checks the types of members that others read, or that mean nothing here.
void check_types(JsonFields& fields) {
  for (const std::string_view name : {"model", "user", "reasoning_effort", "prompt_cache_key"}) (void)fields.text(name);
}

// What could be done without, and is not done, is told.
void warn_of_ignored(JsonFields& fields, std::vector<std::string>& warnings) {
  if (!fields.boolean("cache_prompt", true)) {
    warnings.push_back("cache_prompt: has no effect, what was computed for the same tokens is used");
  }
  if (fields.boolean("verbose", false)) warnings.push_back("verbose: has no effect");
  if (fields.integer("n_keep", 0, -1, kMost) != 0) {
    warnings.push_back("n_keep: has no effect, messages[].ebb.pin keeps what must stay");
  }
  for (const std::string_view name : {"n_indent", "t_max_predict_ms"}) {
    if (fields.integer(name, 0, -1, kMost) > 0) warnings.push_back(fmt::format("{}: has no effect", name));
  }
  if (fields.object("web_search_options")) {
    warnings.push_back("web_search_options: has no effect, nothing is looked for outside of this server");
  }
  if (fields.object("prediction")) warnings.push_back("prediction: has no effect, every token is computed");
  if (!fields.text("verbosity").empty()) warnings.push_back("verbosity: has no effect, say it in a message");
}

// Nothing where the server's own holds; 0: never.
std::optional<std::chrono::milliseconds> ping_after(JsonFields& fields) {
  if (fields.find("sse_ping_interval") == nullptr) return std::nullopt;
  return std::chrono::seconds(std::max(std::int64_t{0}, fields.integer("sse_ping_interval", 0, -1, kMost)));
}

ResumeOptions resume_options(JsonFields& fields, ResumeOptions options) {
  const std::string reuse = fields.text("kv_reuse");
  if (const std::optional<Reuse> named = find_reuse(reuse)) {
    options.reuse = *named;
  } else if (!reuse.empty()) {
    fields.refuse("kv_reuse", "must be \"exact\", \"fresh\" or \"approximate\"");
  }
  options.n_recomputed =
      static_cast<std::int32_t>(fields.integer("kv_reuse_recompute", options.n_recomputed, 0, kMostRecomputed));
  return options;
}

std::optional<SparsePrompt> read_sparse_prompt(JsonFields& fields, const GenerationLimits& limits) {
  constexpr const char* kName = "kv_sparse_prompt";
  const std::string text = fields.text(kName);
  if (text.empty()) return std::nullopt;
  const Result<SparsePrompt> prompt = SparsePrompt::parse(text);
  const Status status = prompt.ok() ? limits.check_sparse_prompt(*prompt) : prompt.status();
  if (status.ok()) return *prompt;
  fields.refuse(kName, status.message());
  return std::nullopt;
}

std::optional<std::int32_t> read_prompt_budget(JsonFields& fields, const GenerationLimits& limits) {
  constexpr const char* kName = "kv_prompt_budget";
  if (fields.find(kName) == nullptr) return std::nullopt;
  const auto n_tokens = static_cast<std::int32_t>(fields.integer(kName, 0, 0, 1 << 30));
  if (n_tokens > limits.prompt_budget_tokens) {
    fields.refuse(kName, limits.prompt_budget_tokens == 0
                             ? std::string("this server gives prompts no more than replies (--kv-prompt-budget)")
                             : fmt::format("this server gives prompts {} tokens at most", limits.prompt_budget_tokens));
  }
  return n_tokens;
}

// As a flag has them, or each by itself.
std::string named_selectors(JsonFields& recall) {
  const Json* const given = recall.find("selectors");
  if (given == nullptr || !given->is_array()) return recall.text("selectors");
  std::string joined;
  for (const std::string& one : recall.texts("selectors", kMostSelectors)) joined += (joined.empty() ? "" : "+") + one;
  return joined.empty() ? "none" : joined;
}

// "ebb":{"recall":{"blocks":8,"ms":2000,"names":["user1#3"],"selectors":"lexical+digest","explain":true}}
void read_recall(JsonFields& fields, const GenerationLimits& limits, GenerationRequest& request) {
  std::optional<JsonFields> own = fields.object("ebb");
  if (!own) return;
  own->refuse_others({"recall"});
  if (std::optional<JsonFields> recall = own->object("recall")) {
    if (recall->find("blocks") != nullptr) {
      request.n_recalled_blocks = static_cast<std::int32_t>(recall->integer("blocks", 0, 0, kMostRecallBlocks));
    }
    if (recall->find("ms") != nullptr) {
      const float ms = recall->number("ms", 0.0F, -1.0F, static_cast<float>(kMostRecallWait));
      if (ms < 0.0F) recall->refuse("ms", "must be 0 (as long as it takes) or more");
      request.most_recall_ms = ms;
    }
    request.options.recall.names = recall->texts("names", kMostRecallNames);
    request.explains_recall = recall->boolean("explain", false);
    recall->refuse_others({"blocks", "ms", "names", "selectors", "explain"});
    if (const std::string named = named_selectors(*recall); !named.empty()) {
      Result<SelectorList> selectors = SelectorList::parse(named);
      const Status status = selectors.ok() ? limits.check_selectors(*selectors) : selectors.status();
      if (status.ok()) {
        request.selectors = *std::move(selectors);
      } else {
        recall->refuse("selectors", status.message());
      }
    }
  }
}

}  // namespace

std::shared_ptr<const Policy> read_policy(JsonFields& fields, std::string_view name, const OfferedPolicies& policies) {
  const std::string spec = fields.text(name);
  if (spec.empty()) return nullptr;
  Result<std::shared_ptr<const Policy>> policy = policies.make(spec);
  if (policy.ok()) return *std::move(policy);
  fields.refuse(name, policy.status().message());
  return nullptr;
}

Result<GenerationRequest> parse_generation_request(const Json& body, const Vocabulary& vocabulary,
                                                   const GenerationLimits& limits, const ResumeOptions& resuming) {
  JsonFields fields(body);
  GenerationRequest request;
  refuse_unsupported(fields);
  check_types(fields);
  request.options.sampling = read_sampling_fields(fields, vocabulary, request.warnings);
  request.options.sampling.grammar = fields.text("grammar");
  request.options.tells_drawn_chances = fields.boolean("post_sampling_probs", false);
  request.options.max_tokens = max_tokens(fields);
  request.options.stop_strings = stop_strings(fields);
  request.resuming = resume_options(fields, resuming);
  request.policy = read_policy(fields, "kv_eviction", limits.policies);
  request.prompt_budget_tokens = read_prompt_budget(fields, limits);
  request.sparse_prompt = read_sparse_prompt(fields, limits);
  read_recall(fields, limits, request);
  request.n_choices = static_cast<std::int32_t>(fields.integer("n", 1, 1, limits.max_choices));
  request.stream = fields.boolean("stream", false);
  request.tells_progress = fields.boolean("return_progress", false);
  request.tells_timings = fields.boolean("timings_per_token", false);
  request.returns_tokens = fields.boolean("return_tokens", false);
  request.ping_after = ping_after(fields);
  if (auto options = fields.object("stream_options")) request.include_usage = options->boolean("include_usage", false);
  warn_of_ignored(fields, request.warnings);
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_RETURN_IF_ERROR(request.options.sampling.validate());
  return request;
}

void warn_of_tokens(const GenerationRequest& request, std::vector<std::string>& warnings) {
  if (request.returns_tokens) warnings.push_back("return_tokens: has no effect on this route, logprobs tell ids");
}

Result<std::optional<std::int32_t>> parse_chat_logprobs(const Json& body) {
  JsonFields fields(body);
  const bool is_asked = fields.boolean("logprobs", false);
  const auto n = static_cast<std::int32_t>(fields.integer("top_logprobs", 0, 0, kMostLogprobs));
  if (!is_asked && fields.find("top_logprobs") != nullptr && n > 0) {
    fields.refuse("top_logprobs", "needs 'logprobs' to be true");
  }
  EBB_RETURN_IF_ERROR(fields.status());
  return is_asked ? std::optional(n) : std::nullopt;
}

Result<std::optional<std::int32_t>> parse_text_logprobs(const Json& body) {
  JsonFields fields(body);
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
