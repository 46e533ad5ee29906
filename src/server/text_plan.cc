#include "server/text_plan.h"

#include "grammar/json_schema_grammar.h"
#include "server/format_fields.h"

namespace ebb {
namespace {

// A string, also as llama.cpp's {"prompt_string": ...}, or token ids and strings mixed. A beginning-of-text token comes before text that begins the prompt.
Result<TextPrompt> read_prompt(const Json& given, const Vocabulary& vocabulary) {
  if (given.is_object() && given.contains("multimodal_data") && !given["multimodal_data"].empty()) {
    return error(Code::kInvalidArgument,
                 "Field 'prompt.multimodal_data': images and sound are not read; send text alone");
  }
  const Json* const text_of = given.is_object() && given.contains("prompt_string") ? &given["prompt_string"] : &given;
  const Json list = text_of->is_string() ? Json::array({*text_of}) : *text_of;
  std::vector<Token> tokens;
  if (!list.is_array() || list.empty()) {
    return error(Code::kInvalidArgument, "Field 'prompt': must be a string or an array of token ids and strings");
  }
  for (const Json& part : list) {
    if (part.is_string()) {
      const auto& text = part.get_ref<const std::string&>();
      EBB_ASSIGN_OR_RETURN(const std::vector<Token> more,
                           vocabulary.tokenize(text, {.add_bos = tokens.empty(), .parse_special = true}));
      tokens.insert(tokens.end(), more.begin(), more.end());
    } else if (const auto id = integer_between(part, 0, vocabulary.n_tokens() - 1)) {
      tokens.emplace_back(static_cast<std::int32_t>(*id));
    } else {
      return error(Code::kInvalidArgument, "Field 'prompt': holds neither a string nor a token id of this model");
    }
  }
  if (tokens.empty()) return error(Code::kInvalidArgument, "Field 'prompt': is empty");
  // A long prompt is its own question; its ends say what it is about, and lines that ask between them.
  const Result<std::string> text = vocabulary.detokenize(tokens, SpecialTokens::kHide);
  std::vector<Cue> cues = find_cues(text.ok() ? std::string_view(*text) : std::string_view());
  return TextPrompt{.said = Prompt(std::move(tokens)), .cues = std::move(cues)};
}

// One prompt, or several: an array of strings, or one that holds arrays.
bool holds_prompts(const Json& given) {
  if (!given.is_array() || given.empty()) return false;
  const auto is_string = [](const Json& part) { return part.is_string(); };
  const auto is_whole = [](const Json& part) { return part.is_array() || part.is_object(); };
  return std::ranges::all_of(given, is_string) || std::ranges::any_of(given, is_whole);
}

}  // namespace

Result<TextPlan> plan_text(const ApiState& state, const Json& body) {
  const Vocabulary& vocabulary = state.engine.vocabulary();
  const SchedulerOptions& limits = state.scheduler.options();
  TextPlan plan;
  EBB_ASSIGN_OR_RETURN(plan.generation,
                       parse_generation_request(body, vocabulary, state.limits(), state.options.resuming));
  EBB_ASSIGN_OR_RETURN(plan.generation.options.n_chances, parse_text_logprobs(body));
  EBB_ASSIGN_OR_RETURN(const FormatFields format, read_format_fields(body));
  if (!format.schema.is_null()) {
    EBB_ASSIGN_OR_RETURN(const JsonGrammar grammar, json_schema_grammar(format.schema));
    plan.generation.options.sampling.grammar = grammar.grammar;
    add_warnings(grammar.unsupported, plan.warnings);
  }
  const Json given = body.contains("prompt") ? body["prompt"] : Json();
  const Json prompts = holds_prompts(given) ? given : Json::array({given});
  const std::size_t most = limits.max_queued / static_cast<std::size_t>(plan.generation.n_choices);
  if (prompts.size() > most) {
    return error(Code::kInvalidArgument, "Field 'prompt': {} prompts at once; at most {} are taken", prompts.size(),
                 most);
  }
  for (const Json& prompt : prompts) {
    EBB_ASSIGN_OR_RETURN(plan.prompts.emplace_back(), read_prompt(prompt, vocabulary));
  }
  return plan;
}

}  // namespace ebb
