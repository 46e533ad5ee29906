#include "server/chat_plan.h"

#include <algorithm>

#include "chat/answer_grammar.h"
#include "chat/call_grammar.h"
#include "chat/calls/call_form.h"
#include "chat/calls/call_rules.h"
#include "chat/prompt_thinking.h"
#include "chat/prompt_tokens.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema_grammar.h"
#include "server/format_fields.h"
#include "server/tool_fields.h"

namespace ebb {
namespace {

constexpr std::int64_t kMostThinkingTokens = std::int64_t{1} << 30;

// What is known of the answer before it begins.
struct AnswerFacts {
  ToolFields tools;
  FormatFields format;
  std::optional<ThinkTags> think;
  std::vector<std::string> dress;
  std::string begun;
  PromptThinking prompt_thinking = PromptThinking::kNotBegun;
  const CallFormat* calls = nullptr;
  bool continues_answer = false;

  [[nodiscard]] std::optional<AnswerThinking> thinking() const {
    if (!think || prompt_thinking == PromptThinking::kOver) return std::nullopt;
    return AnswerThinking{.tags = *think, .is_open = prompt_thinking == PromptThinking::kOpen};
  }
  // None where the client began the answer, since the mark is in front of that, nor in front of a grammar of the client's, which says itself
  // what the answer is.
  [[nodiscard]] std::vector<std::string> openers() const {
    const bool is_free = format.schema.is_null() && (begun.empty() || calls == nullptr);
    return continues_answer || is_free ? std::vector<std::string>() : answer_openers(dress, begun);
  }
};

Result<CallGrammar> call_grammar_of(const AnswerFacts& facts, const std::vector<Tool>& tools) {
  return call_grammar(*facts.calls, {.tools = tools,
                                     .only = facts.tools.only,
                                     .parallel = facts.tools.parallel,
                                     .required = facts.tools.use == ToolUse::kRequired,
                                     .content = facts.format.schema,
                                     .content_openers = facts.openers(),
                                     .begun = facts.begun,
                                     .thinking = facts.thinking()});
}

// Not ok where a grammar is too large: to be made, or written out.
Status check_size(const Vocabulary& vocabulary, const Result<CallGrammar>& grammar) {
  if (!grammar.ok()) return grammar.status().code() == Code::kUnsupported ? grammar.status() : Status();
  return grammar->grammar.empty() ? Status() : read_gbnf(vocabulary, grammar->grammar, "root").status();
}

// Names of many tools fit where their arguments do not.
std::vector<Tool> with_any_arguments(std::vector<Tool> tools) {
  for (Tool& tool : tools) tool.parameters = {{"type", "object"}, {"additionalProperties", true}};
  return tools;
}

// Schemas of strict tools were looked at as JSON; a template may write strings in a way that holds less of them.
Status check_strict(const std::vector<Tool>& tools, const std::vector<std::string>& unsupported) {
  for (const Tool& tool : tools) {
    if (!tool.is_strict) continue;
    const std::string place = fmt::format(" at {}/", tool_title(tool));
    const auto found = std::ranges::find_if(unsupported, [&](const std::string& note) {
      return note.find(place) != note.npos && !is_taken_though_strict(note);
    });
    if (found == unsupported.end()) continue;
    return error(Code::kInvalidArgument,
                 "Field 'tools': strict is set, and the schema asks for '{}', which is not enforced", *found);
  }
  return {};
}

Status set_call_grammar(const Vocabulary& vocabulary, const AnswerFacts& facts, ChatPlan& plan) {
  if (!facts.format.grammar.empty()) {
    return error(Code::kInvalidArgument, "Field 'grammar': cannot be given together with tools");
  }
  Result<CallGrammar> grammar = call_grammar_of(facts, facts.tools.tools);
  const bool is_required = facts.tools.use == ToolUse::kRequired;
  if (const Status too_large = check_size(vocabulary, grammar); !too_large.ok()) {
    if (is_required && std::ranges::any_of(facts.tools.tools, &Tool::is_strict)) return too_large;
    plan.warnings.push_back("arguments of calls not enforced: " + too_large.message());
    grammar = call_grammar_of(facts, with_any_arguments(facts.tools.tools));
    const bool may_be_none = !is_required && facts.format.schema.is_null();
    if (const Status still = check_size(vocabulary, grammar); !still.ok()) return may_be_none ? Status() : still;
  }
  EBB_RETURN_IF_ERROR(grammar.status());
  EBB_RETURN_IF_ERROR(check_strict(facts.tools.tools, grammar->unsupported));
  plan.generation.options.sampling.grammar = grammar->grammar;
  add_warnings(grammar->unsupported, plan.warnings);
  return {};
}

Status set_grammar(const Vocabulary& vocabulary, const AnswerFacts& facts, ChatPlan& plan) {
  if (facts.calls != nullptr) return set_call_grammar(vocabulary, facts, plan);
  std::string grammar = facts.format.grammar;
  if (!facts.format.schema.is_null()) {
    EBB_ASSIGN_OR_RETURN(JsonGrammar made, json_schema_grammar(facts.format.schema));
    add_warnings(made.unsupported, plan.warnings);
    grammar = std::move(made.grammar);
  }
  if (grammar.empty()) return {};
  AnswerGrammar answer = behind_thinking(std::move(grammar), facts.thinking(), facts.openers());
  plan.generation.options.sampling.grammar = std::move(answer.grammar);
  plan.generation.options.sampling.grammar_root = std::move(answer.root);
  return {};
}

// Where the vocabulary has a mark as one control token, its text would be hidden.
std::vector<Token> mark_tokens(const Vocabulary& vocabulary, const AnswerFacts& facts) {
  std::vector<std::string> texts = facts.dress;
  if (facts.calls != nullptr) {
    for (const std::string_view mark : facts.calls->marks()) texts.emplace_back(mark);
  }
  if (facts.think) texts.insert(texts.end(), {facts.think->open, facts.think->close});
  std::vector<Token> tokens;
  for (const std::string& text : texts) {
    std::vector<std::string> marks = marks_in(text);
    marks.push_back(text);
    for (const std::string& mark : marks) {
      if (const auto token = vocabulary.control_tokens().find_token(mark)) tokens.push_back(*token);
    }
  }
  return tokens;
}

ThinkingOptions thinking_options(const AnswerFacts& facts, std::int32_t max_tokens) {
  if (!facts.think) return {};
  ThinkingOptions options{.open_mark = facts.think->open,
                          .close_mark = facts.think->close,
                          .is_open = facts.prompt_thinking == PromptThinking::kOpen,
                          .max_tokens = max_tokens};
  if (facts.calls == nullptr) return options;
  for (const CallOpener& opener : facts.calls->openers()) {
    if (!opener.only_first) options.other_ends.emplace_back(opener.text);
  }
  return options;
}

// By the template's own words: a client that began the answer, or wants no beginning of one, leaves no mark open.
bool ends_with(const ChatPrompt& prompt, std::string_view mark) {
  return !prompt.pieces.empty() && !prompt.pieces.back().from_user && prompt.pieces.back().text.ends_with(mark);
}

std::vector<std::string> call_ids(const ChatRequest& request) {
  std::vector<std::string> ids;
  for (const Json& message : request.messages) {
    if (!message.contains("tool_calls")) continue;
    for (const Json& call : message["tool_calls"]) {
      if (std::string id = text_member(call, "id"); !id.empty()) ids.push_back(std::move(id));
    }
  }
  return ids;
}

Status set_reading(const Json& body, const AnswerFacts& facts, ChatPlan& plan) {
  JsonFields fields(body);
  const std::string format = fields.text("reasoning_format", "auto");
  const auto max_thinking =
      static_cast<std::int32_t>(fields.integer("reasoning_budget_tokens", -1, -1, kMostThinkingTokens));
  EBB_RETURN_IF_ERROR(fields.status());
  EBB_ASSIGN_OR_RETURN(plan.rules.reasoning, reasoning_format_named(format));
  plan.rules.think = facts.think;
  plan.rules.thinking_open = facts.prompt_thinking == PromptThinking::kOpen;
  plan.rules.dress = facts.dress;
  plan.rules.begun = facts.begun;
  plan.rules.calls = facts.calls;
  plan.rules.tools = facts.tools.tools;
  plan.rules.used_ids = call_ids(plan.request);
  plan.generation.options.thinking = thinking_options(facts, max_thinking);
  return {};
}

}  // namespace

Result<ChatRendering> render_chat(const ApiState& state, const Json& body) {
  ChatRendering rendering;
  EBB_ASSIGN_OR_RETURN(rendering.request, read_chat_request(body));
  EBB_ASSIGN_OR_RETURN(rendering.tools, read_tool_fields(body));
  const bool has_tools = rendering.tools.use != ToolUse::kNone;
  if (!has_tools) rendering.request.tools = nullptr;
  const ChatTemplate& chat_template =
      has_tools && state.tool_template != nullptr ? *state.tool_template : *state.chat_template;
  rendering.template_source = &chat_template.source();
  if (has_tools) rendering.calls = &state.taught_calls.format();
  state.taught_calls.prepare(rendering.request);
  EBB_ASSIGN_OR_RETURN(rendering.prompt, render_chat_request(chat_template, rendering.request, state.template_tokens));
  return rendering;
}

Result<ChatPlan> plan_chat(const ApiState& state, const Json& body) {
  const Vocabulary& vocabulary = state.engine.vocabulary();
  EBB_ASSIGN_OR_RETURN(ChatRendering rendering, render_chat(state, body));
  ChatPlan plan{.request = std::move(rendering.request), .prompt = std::move(rendering.prompt)};
  EBB_ASSIGN_OR_RETURN(plan.generation,
                       parse_generation_request(body, vocabulary, state.limits(), state.options.resuming));
  warn_of_tokens(plan.generation, plan.warnings);
  EBB_ASSIGN_OR_RETURN(plan.generation.options.n_chances, parse_chat_logprobs(body));
  AnswerFacts facts{.tools = std::move(rendering.tools),
                    .think = find_think_tags(*rendering.template_source),
                    .dress = find_dress(*rendering.template_source),
                    .calls = rendering.calls,
                    .continues_answer = plan.request.continues_last_message};
  if (std::string begun = find_begun_mark(*rendering.template_source); ends_with(plan.prompt, begun)) {
    facts.begun = std::move(begun);
  }
  EBB_ASSIGN_OR_RETURN(facts.format, read_format_fields(body));
  if (facts.think) {
    facts.prompt_thinking = find_prompt_thinking(plan.prompt, *facts.think, plan.request.continues_last_message);
  }
  EBB_RETURN_IF_ERROR(set_reading(body, facts, plan));
  EBB_RETURN_IF_ERROR(set_grammar(vocabulary, facts, plan));
  plan.generation.options.sampling.marks = mark_tokens(vocabulary, facts);
  EBB_ASSIGN_OR_RETURN(plan.tokens, tokenize_prompt(vocabulary, plan.prompt, true));
  return plan;
}

}  // namespace ebb
