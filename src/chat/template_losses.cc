#include "chat/template_losses.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "chat/call_ids.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFirstCall = "ebbfirstcall";
constexpr const char* kSecondCall = "ebbsecondcall";
constexpr const char* kFirstResult = "ebbfirstresult";
constexpr const char* kSecondResult = "ebbsecondresult";
constexpr const char* kFirstSystem = "ebbfirstsystem";
constexpr const char* kSecondSystem = "ebbsecondsystem";

unsigned bit(bool applies, Mending mending) { return applies ? static_cast<unsigned>(mending) : 0U; }

bool holds(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

// Without tools; some templates go through a list of them in any case.
Result<ChatPrompt> render_probe(const ChatTemplate& chat_template, TemplateInputs& probe) {
  probe.tools = nullptr;
  Result<ChatPrompt> prompt = chat_template.render(probe);
  if (prompt.ok() || prompt.status().code() == Code::kOutOfBudget) return prompt;
  probe.tools = Json::array();
  return chat_template.render(probe);
}

// A history of two calls that the template takes, and what it makes of it.
struct CallProbe {
  TemplateInputs inputs;
  std::string text;
  bool has_results = false;
};

Json call(const char* name, const char* id, bool as_text) {
  const Json arguments = as_text ? Json("{}") : Json::object();
  return Json{{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

std::optional<CallProbe> find_call_probe(const ChatTemplate& chat_template, const TemplateInputs& inputs) {
  // Templates that know no tools may refuse their results.
  for (const auto& [as_text, has_results] :
       {std::pair(false, true), std::pair(true, true), std::pair(false, false), std::pair(true, false)}) {
    CallProbe probe{.inputs = inputs, .text = {}, .has_results = has_results};
    probe.inputs.messages = Json::array({{{"role", "user"}, {"content", "Hello"}}});
    const Json calls = Json::array({call(kFirstCall, "ebbcall01", as_text), call(kSecondCall, "ebbcall02", as_text)});
    probe.inputs.messages.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}});
    if (has_results) {
      probe.inputs.messages.push_back({{"role", "tool"}, {"tool_call_id", "ebbcall01"}, {"content", kFirstResult}});
      probe.inputs.messages.push_back({{"role", "tool"}, {"tool_call_id", "ebbcall02"}, {"content", kSecondResult}});
    }
    const Result<ChatPrompt> prompt = render_probe(chat_template, probe.inputs);
    if (!prompt.ok()) continue;
    probe.text = prompt->text();
    return probe;
  }
  return std::nullopt;
}

// Templates that ask whether content is none write "" where there is no text: an empty turn more.
bool tests_for_none(const ChatTemplate& chat_template, CallProbe probe) {
  probe.inputs.messages[1]["content"] = nullptr;
  const Result<ChatPrompt> with_none = chat_template.render(probe.inputs);
  if (!with_none.ok()) return false;
  const std::string none = with_none->text();
  // What prints it as a word takes it for text, too.
  return none.size() < probe.text.size() && none.find("None") == std::string::npos;
}

unsigned lost_calls(const ChatTemplate& chat_template, const CallProbe& probe) {
  const bool first = holds(probe.text, kFirstCall);
  const bool second = holds(probe.text, kSecondCall);
  const unsigned as_none = bit(tests_for_none(chat_template, probe), Mending::kContentAsNone);
  if (first && second) return as_none;
  return as_none | static_cast<unsigned>(first || second ? Mending::kSplitCalls : Mending::kCallsAsText);
}

// Some write results only where there are tools: what is lost is so with and without them.
bool loses_results(const ChatTemplate& chat_template, const TemplateInputs& inputs, CallProbe probe) {
  const auto is_lost = [](const std::string& text) {
    return !holds(text, kFirstResult) && !holds(text, kSecondResult);
  };
  if (!probe.has_results || !is_lost(probe.text)) return false;
  if (inputs.tools.is_null()) return true;
  probe.inputs.tools = inputs.tools;
  const Result<ChatPrompt> prompt = chat_template.render(probe.inputs);
  return !prompt.ok() || is_lost(prompt->text());
}

bool loses_calls_beside_text(const ChatTemplate& chat_template, CallProbe probe) {
  if (!holds(probe.text, kFirstCall)) return false;
  probe.inputs.messages[1]["content"] = "Hello";
  const Result<ChatPrompt> prompt = chat_template.render(probe.inputs);
  return prompt.ok() && !holds(prompt->text(), kFirstCall);
}

// As other servers give them, or none.
bool refuses_other_ids(const ChatTemplate& chat_template, CallProbe probe) {
  Json& messages = probe.inputs.messages;
  messages[1]["tool_calls"][0]["id"] = "call_ebb-01";
  if (probe.has_results) messages[2]["tool_call_id"] = "call_ebb-01";
  if (!chat_template.render(probe.inputs).ok()) return true;
  messages[1]["tool_calls"][0].erase("id");
  if (probe.has_results) messages[2].erase("tool_call_id");
  return !chat_template.render(probe.inputs).ok();
}

bool has_other_id(const Json& of, const char* name) {
  const auto id = of.find(name);
  return id == of.end() || !id->is_string() || !CallIds::is_id(id->get_ref<const std::string&>());
}

bool has_other_ids(const Json& message) {
  if (message["role"] == "tool" && has_other_id(message, "tool_call_id")) return true;
  if (!message.contains("tool_calls")) return false;
  return std::ranges::any_of(message["tool_calls"], [](const Json& one) { return has_other_id(one, "id"); });
}

// `has_later`: also of what is said behind the first message. Where a template raises at that, too: joined to the first it would change the
// beginning of the prompt.
unsigned lost_system(const ChatTemplate& chat_template, const TemplateInputs& inputs, bool has_later) {
  const unsigned later = bit(has_later, Mending::kOneSystem);
  TemplateInputs probe = inputs;
  probe.messages =
      Json::array({{{"role", "system"}, {"content", kFirstSystem}}, {{"role", "user"}, {"content", "Hello"}}});
  const Result<ChatPrompt> first = render_probe(chat_template, probe);
  if (!first.ok()) return later;
  if (!holds(first->text(), kFirstSystem)) return later | static_cast<unsigned>(Mending::kJoinSystem);
  if (!has_later) return 0;
  probe.messages.push_back({{"role", "assistant"}, {"content", "Hello"}});
  probe.messages.push_back({{"role", "system"}, {"content", kSecondSystem}});
  probe.messages.push_back({{"role", "user"}, {"content", "Well?"}});
  const Result<ChatPrompt> both = chat_template.render(probe);
  const std::string text = both.ok() ? both->text() : std::string();
  return holds(text, kFirstSystem) && holds(text, kSecondSystem) ? 0 : later;
}

}  // namespace

unsigned mendings_for_lost_calls(const ChatTemplate& chat_template, const TemplateInputs& inputs) {
  const std::optional<CallProbe> probe = find_call_probe(chat_template, inputs);
  return probe ? lost_calls(chat_template, *probe) : 0;
}

unsigned mendings_for_losses(const ChatTemplate& chat_template, const TemplateInputs& inputs,
                             const SourcedMessages& messages) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(messages, [&](const SourcedMessage& entry) { return is(entry.message); });
  };
  const auto is_system = [](const SourcedMessage& entry) { return entry.message["role"] == "system"; };
  unsigned mendings = 0;
  const bool has_results = any([](const Json& message) { return message["role"] == "tool"; });
  const bool has_calls = any([](const Json& message) { return message.contains("tool_calls"); });
  const bool has_text = any([](const Json& m) { return m.contains("tool_calls") && m["content"] != ""; });
  if (has_results || has_calls) {
    if (const std::optional<CallProbe> probe = find_call_probe(chat_template, inputs)) {
      if (has_calls) mendings |= lost_calls(chat_template, *probe);
      mendings |= bit(has_results && loses_results(chat_template, inputs, *probe), Mending::kResultsAsUser);
      mendings |= bit(has_text && loses_calls_beside_text(chat_template, *probe), Mending::kCallsApart);
      mendings |= bit(any(has_other_ids) && refuses_other_ids(chat_template, *probe), Mending::kShortIds);
    }
  }
  const auto n_system = std::ranges::count_if(messages, is_system);
  if (n_system > 0) mendings |= lost_system(chat_template, inputs, n_system > 1 || !is_system(messages.front()));
  return mendings;
}

}  // namespace ebb
