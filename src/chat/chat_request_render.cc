// render_chat_request: the forms of a request that a template is offered, simplest first.
#include <algorithm>
#include <array>
#include <bit>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "chat/calls/call_format.h"
#include "chat/chat_request.h"
#include "chat/message_mending.h"
#include "chat/prompt_thinking.h"
#include "chat/reply_parser.h"
#include "chat/template_losses.h"
#include "chat/tool_text.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Sets of mendings by size, so that no more is changed than must be.
std::vector<unsigned> attempts(unsigned applicable) {
  std::vector<unsigned> sets;
  for (unsigned set = 0; set <= applicable; ++set) {
    if ((set & ~applicable) == 0) sets.push_back(set);
  }
  std::ranges::stable_sort(sets, {}, [](unsigned set) { return std::popcount(set); });
  return sets;
}

Result<ChatPrompt> render(const ChatTemplate& chat_template, TemplateInputs inputs, const SourcedMessages& messages) {
  inputs.messages = nlohmann::ordered_json::array();
  for (const SourcedMessage& entry : messages) inputs.messages.push_back(entry.message);
  Result<ChatPrompt> prompt = chat_template.render(inputs);
  if (!prompt.ok()) return prompt;
  for (PromptPiece& piece : prompt->pieces) {
    if (piece.message) piece.message = messages[*piece.message].source;
  }
  return prompt;
}

// What templates of before strftime_now take for today: Llama 3's and Functionary's.
void add_dates(const std::tm& now, nlohmann::ordered_json& arguments) {
  const auto add = [&](const char* name, const char* format) {
    if (arguments.contains(name)) return;
    std::array<char, 64> text{};
    const std::size_t n = std::strftime(text.data(), text.size(), format, &now);
    arguments[name] = std::string(text.data(), n);
  };
  add("date_string", "%d %b %Y");
  add("datetime", "%b %d %Y");
}

// As Firefunction wants its tools, and llama.cpp gives them.
void add_functions(const ChatTemplate& chat_template, const Json& tools, Json& arguments) {
  if (arguments.contains("functions") || chat_template.source().find("functions") == std::string::npos) return;
  arguments["functions"] = tools.empty() ? "" : tools.dump(2, ' ', false, Json::error_handler_t::replace);
}

TemplateInputs inputs_of(const ChatTemplate& chat_template, const ChatRequest& request, const TemplateTokens& tokens,
                         const std::tm& now) {
  Json arguments = request.arguments;
  add_dates(now, arguments);
  add_functions(chat_template, request.tools, arguments);
  // As llama-server has it: some templates take one that says nothing for one that wants none (QwQ, R1's distillates, Command-R7B).
  if (!arguments.contains("enable_thinking")) arguments["enable_thinking"] = true;
  return {.messages = nullptr,
          .tools = request.tools,
          .add_generation_prompt = request.add_generation_prompt || request.continues_last_message,
          .bos_token = tokens.bos,
          .eos_token = tokens.eos,
          .arguments = std::move(arguments),
          .now = now};
}

// Other tools than those of the request, where it is they at which the template raises: none, or a list of none.
std::optional<Json> find_other_tools(const ChatTemplate& chat_template, TemplateInputs probe) {
  probe.messages = Json::array({{{"role", "user"}, {"content", "Hello"}}});
  const bool has_none = probe.tools.is_null();
  if (chat_template.render(probe).ok()) return std::nullopt;
  for (const Json& other : {Json(nullptr), Json::array()}) {
    if (has_none && other.is_null()) continue;
    probe.tools = other;
    if (chat_template.render(probe).ok()) return other;
  }
  return std::nullopt;
}

SourcedMessages with_described_tools(const SourcedMessages& messages, const Json& tools, const CallFormat& calls) {
  ChatRequest described;
  for (const SourcedMessage& entry : messages) described.messages.push_back(entry.message);
  described.tools = tools;
  describe_tools(described, calls);
  SourcedMessages result(described.n_put_in_front);
  result.insert(result.end(), messages.begin(), messages.end());
  for (std::size_t i = 0; i < result.size(); ++i) result[i].message = std::move(described.messages[i]);
  return result;
}

unsigned mendings_always(const ChatTemplate& chat_template, const TemplateInputs& inputs,
                         const SourcedMessages& messages, const ChatRequest& request) {
  constexpr auto kAsText = static_cast<unsigned>(Mending::kCallsAsText);
  unsigned always = mendings_for_losses(chat_template, inputs, messages);
  if (request.writes_calls) always |= kAsText;
  // Written as text, calls stand beside what is said.
  if ((always & kAsText) != 0) always &= ~static_cast<unsigned>(Mending::kCallsApart);
  return always;
}

Result<ChatPrompt> render_mended(const ChatTemplate& chat_template, TemplateInputs inputs, SourcedMessages messages,
                                 const ChatRequest& request) {
  const CallFormat& calls = request.calls != nullptr ? *request.calls : hermes_calls();
  unsigned always = mendings_always(chat_template, inputs, messages, request);
  const auto is_over = [](const Result<ChatPrompt>& prompt) {
    return prompt.ok() || prompt.status().code() == Code::kOutOfBudget;
  };
  Result<ChatPrompt> first = render(chat_template, inputs, mend(messages, always, calls));
  if (is_over(first)) return first;
  if (const unsigned broken = mendings_of_broken(messages); broken != 0) {
    always |= broken;
    Result<ChatPrompt> prompt = render(chat_template, inputs, mend(messages, always, calls));
    if (is_over(prompt)) return prompt;
  }
  const std::optional<Json> tools = find_other_tools(chat_template, inputs);
  if (tools) {
    if (request.may_describe_tools && !inputs.tools.empty() && !messages.empty()) {
      messages = with_described_tools(messages, inputs.tools, calls);
    }
    inputs.tools = *tools;
    always = mendings_always(chat_template, inputs, messages, request) | mendings_of_broken(messages);
  }
  for (const unsigned set : attempts(applicable_mendings(messages))) {
    if (set == 0 && !tools) continue;
    Result<ChatPrompt> prompt = render(chat_template, inputs, mend(messages, set | always, calls));
    if (is_over(prompt)) return prompt;
  }
  return first;
}

// Templates of models that always think open it themselves, whatever is asked for. Closed at once, as templates that listen
// write it, the answer begins behind it.
void close_unasked_thinking(const ChatTemplate& chat_template, const ChatRequest& request, ChatPrompt& prompt) {
  const auto asked = request.arguments.find("enable_thinking");
  if (asked == request.arguments.end() || *asked != false || request.continues_last_message) return;
  const std::optional<ThinkTags> tags = find_think_tags(chat_template.source());
  if (!tags || find_prompt_thinking(prompt, *tags, false) != PromptThinking::kOpen) return;
  const std::string_view line_end = prompt.pieces.back().text.ends_with('\n') ? "\n" : "\n\n";
  prompt.pieces.push_back({.text = fmt::format("{}{}\n\n", line_end, tags->close)});
}

}  // namespace

Result<ChatPrompt> render_chat_request(const ChatTemplate& chat_template, const ChatRequest& request,
                                       const TemplateTokens& tokens, const std::tm& now) {
  SourcedMessages messages;
  for (const auto& message : request.messages) messages.push_back({message, messages.size()});
  if (request.continues_last_message) messages.pop_back();
  const TemplateInputs inputs = inputs_of(chat_template, request, tokens, now);
  Result<ChatPrompt> prompt = render_mended(chat_template, inputs, std::move(messages), request);
  if (prompt.ok() && request.continues_last_message) {
    prompt->pieces.push_back({.text = request.messages.back()["content"].get<std::string>(),
                              .from_user = true,
                              .message = request.messages.size() - 1});
  }
  if (prompt.ok()) close_unasked_thinking(chat_template, request, *prompt);
  return prompt;
}

bool raises_without_tools(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  return find_other_tools(chat_template, inputs_of(chat_template, {}, tokens, local_time())).has_value();
}

}  // namespace ebb
