#include "server/request_defaults.h"

#include "json/parse_json.h"

namespace ebb {

Result<Json> default_members(const RequestDefaults& defaults) {
  const SamplingOptions& sampling = defaults.sampling;
  Json members = {{"temperature", sampling.temperature},
                  {"top_k", sampling.top_k},
                  {"top_p", sampling.top_p},
                  {"min_p", sampling.min_p},
                  {"typical_p", sampling.typical_p},
                  {"repeat_last_n", sampling.penalty_last_n},
                  {"repeat_penalty", sampling.penalty_repeat},
                  {"presence_penalty", sampling.penalty_presence},
                  {"frequency_penalty", sampling.penalty_frequency},
                  {"seed", sampling.seed ? Json(*sampling.seed) : Json(-1)},
                  // The weakest of its names: whichever the client says wins.
                  {"max_tokens", defaults.max_tokens},
                  {"reasoning_format", defaults.reasoning_format},
                  {"reasoning_budget_tokens", defaults.max_thinking_tokens}};
  if (!defaults.chat_template_kwargs.empty()) {
    Result<Json> arguments = parse_json(defaults.chat_template_kwargs);
    if (!arguments.ok() || !arguments->is_object()) {
      return error(Code::kInvalidArgument, "--chat-template-kwargs must be a JSON object, such as {}",
                   R"({"enable_thinking":false})");
    }
    members["chat_template_kwargs"] = *std::move(arguments);
  }
  Json more = defaults.members;
  add_missing(more, members);
  return more;
}

void add_missing(Json& body, const Json& defaults) {
  for (const auto& [name, value] : defaults.items()) {
    if (!body.contains(name) || body[name].is_null()) {
      body[name] = value;
    } else if (body[name].is_object() && value.is_object()) {
      add_missing(body[name], value);
    }
  }
}

}  // namespace ebb
