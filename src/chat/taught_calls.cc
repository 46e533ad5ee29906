#include "chat/taught_calls.h"

#include "base/split_text.h"
#include "chat/derive_call_form.h"
#include "chat/message_mending.h"
#include "chat/reply_parser.h"
#include "chat/template_losses.h"
#include "chat/tool_text.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLooking = "I look into it.";

// Steps of all renderings that find out how a template writes calls, as many as one rendering may take by itself. Fewer: a longer
// template would be taken for one that writes none. More: a server whose template is slow starts later; so many take about a second.
constexpr std::size_t kStepsToFind = 10'000'000;

Tool probe_tool(const char* name) {
  return {.name = name,
          .parameters = {{"type", "object"},
                         {"properties",
                          {{"text", {{"type", "string"}}},
                           {"count", {{"type", "number"}}},
                           {"deep", {{"type", "object"}}},
                           {"list", {{"type", "array"}}},
                           {"sure", {{"type", "boolean"}}}}}}};
}

std::vector<ProbeReply> probes(const CallFormat& format) {
  std::vector<Json> arguments = {
      Json::object(),
      {{"text", "a.c"}},
      {{"text", "say \"it's\" {so}, [2] <b>&amp;</b> \\n C:\\dir"}, {"count", -2.5}, {"sure", true}},
      {{"text", "one\n\n  two\n\tthree"}},
      {{"text", "ends in a line\n"}},
      {{"text", "\nbegins with one"}},
      {{"text", ""}, {"count", 0}},
      {{"count", 12}, {"list", {1, "x \"y\"", false}}},
      {{"deep", {{"k", {{"l", "m\nn"}}}, {"e", Json::array()}}}, {"text", "h\u00e9 \u6f22"}},
  };
  for (const std::string_view mark : format.marks()) {
    arguments.push_back({{"text", fmt::format("see {} and so", mark)}, {"count", 1}});
  }
  std::vector<ProbeReply> replies;
  for (const Json& one : arguments) {
    for (const char* said : {"", kLooking}) {
      replies.push_back({.content = said, .calls = {{.name = "read_file", .id = "zqcall001", .arguments = one}}});
    }
  }
  if (format.allows_parallel()) {
    replies.push_back({.content = "",
                       .calls = {{.name = "read_file", .id = "zqcall001", .arguments = arguments[2]},
                                 {.name = "list-all.v2", .id = "zqcall002", .arguments = arguments[7]},
                                 {.name = "read_file", .id = "zqcall003", .arguments = arguments[0]}}});
  }
  return replies;
}

bool is_as_sent(const ProbeReply& sent, const ParsedReply& read) {
  if (read.calls.size() != sent.calls.size() || !read.reasoning.empty()) return false;
  for (std::size_t i = 0; i < sent.calls.size(); ++i) {
    const Result<Json> arguments = parse_json(read.calls[i].arguments);
    // As JSON, in which the order of keys says nothing.
    if (!arguments.ok() || nlohmann::json(*arguments) != nlohmann::json(sent.calls[i].arguments)) return false;
    if (read.calls[i].name != sent.calls[i].name || !read.calls[i].complete) return false;
  }
  // A template may leave what was said out beside calls.
  const std::string_view content = trimmed(read.content);
  return content.empty() || content == sent.content;
}

// Whether the text is one turn that says its content and then calls; otherwise nobody reads it.
bool is_one_reply(const ProbeReply& sent, std::string_view text, std::string_view turn_end) {
  const std::size_t call = text.find(sent.calls.front().name);
  if (call == text.npos) return false;
  const std::string_view in_front = text.substr(0, call);
  if (sent.content.empty()) return true;
  const std::size_t said = text.find(sent.content);
  if (said != text.npos && said > call) return false;
  return turn_end.empty() || in_front.find(turn_end) == in_front.npos;
}

}  // namespace

bool reads_back(const ChatTemplate& chat_template, const TemplateTokens& tokens, const CallFormat& format) {
  const ReplyRules rules{.think = find_think_tags(chat_template.source()),
                         .dress = find_dress(chat_template.source()),
                         .begun = find_begun_mark(chat_template.source()),
                         .calls = &format,
                         .tools = {probe_tool("read_file"), probe_tool("list-all.v2")}};
  const ReplyProber prober(chat_template, tokens);
  bool has_read = false;
  for (const ProbeReply& sent : probes(format)) {
    const std::optional<std::string> text = prober.render(sent);
    if (!text || !is_one_reply(sent, *text, prober.turn_end())) continue;
    if (!is_as_sent(sent, parse_reply(rules, *text)) || !is_as_sent(sent, parse_reply_by_bytes(rules, *text))) {
      return false;
    }
    has_read = true;
  }
  return has_read;
}

TaughtCalls TaughtCalls::find(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  TaughtCalls taught;
  const auto allowance = std::make_shared<RenderAllowance>(RenderAllowance{.n_steps = kStepsToFind});
  const ChatTemplate bounded = chat_template.within(allowance);
  taught.find_format(bounded, tokens);
  const bool is_known = taught.derived_ || taught.format_ != nullptr;
  taught.shows_tools_ = is_known && ebb::shows_tools(bounded, tokens);
  if (allowance->is_spent) {
    taught.shows_tools_ = false;
    taught.doubt_ = fmt::format(
        "to find out how the chat template writes calls of tools takes more than {} steps; tools are described, and "
        "calls written, in Hermes's form",
        kStepsToFind);
  } else {
    const bool is_written = is_known && !taught.format().write({{.name = "f", .arguments = "{}"}}).empty();
    if (taught.shows_tools_ || is_written) return taught;
    taught.needs_tools_ = raises_without_tools(bounded, tokens);
  }
  taught.derived_.reset();
  taught.format_ = &hermes_calls();
  taught.writes_calls_ = true;
  return taught;
}

void TaughtCalls::find_format(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  format_ = find_call_format(chat_template.source());
  // What shows no calls is written as this server writes it, and says nothing of the model.
  const unsigned lost = mendings_for_lost_calls(chat_template, {.bos_token = tokens.bos, .eos_token = tokens.eos});
  if ((lost & static_cast<unsigned>(Mending::kCallsAsText)) != 0) return;
  if (format_ != nullptr && reads_back(chat_template, tokens, *format_)) return;
  for (CallForm& form : derive_call_forms(chat_template, tokens)) {
    auto derived = std::make_unique<const FormCalls>(std::move(form));
    if (!reads_back(chat_template, tokens, *derived)) continue;
    derived_ = std::move(derived);
    return;
  }
}

void TaughtCalls::prepare(ChatRequest& request) const {
  request.calls = &format();
  request.writes_calls = writes_calls_;
  request.may_describe_tools = shows_tools_;
  if (request.tools.is_null() || shows_tools_) return;
  const Json tools = request.tools;
  describe_tools(request, format());
  if (needs_tools_) request.tools = tools;
}

}  // namespace ebb
