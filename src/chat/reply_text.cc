#include "chat/reply_text.h"

#include "chat/model_template.h"
#include "chat/reply_parser.h"
#include "chat/taught_calls.h"
#include "json/json_fields.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Rules point into what was found of the template.
struct ReplyReading {
  TaughtCalls taught;
  ReplyRules rules;
};

Result<std::vector<Tool>> read_reply_tools(const std::string& text) {
  std::vector<Tool> tools;
  if (text.empty()) return tools;
  Result<Json> json = parse_json(text);
  if (!json.ok()) return error(Code::kInvalidArgument, "the tools: {}", json.status().message());
  const Json list = json->is_object() && json->contains("tools") ? (*json)["tools"] : *json;
  if (!list.is_array()) return error(Code::kInvalidArgument, "the tools: give a JSON array, or a request that has one");
  for (const Json& one : list) {
    const Json& function = one.is_object() && one.contains("function") ? one["function"] : one;
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string()) {
      return error(Code::kInvalidArgument, "the tools: each needs a function with a name");
    }
    tools.push_back({.name = function["name"].get<std::string>(), .parameters = function.value("parameters", Json())});
  }
  return tools;
}

Result<ReplyReading> read_rules(const ReplyTextRules& given) {
  EBB_CHECK(given.source.chat_template || given.source.vocabulary != nullptr, "a reply needs a template");
  std::string source =
      given.source.chat_template ? *given.source.chat_template : template_source(*given.source.vocabulary, true);
  EBB_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::compile(std::move(source)));
  TemplateTokens tokens;
  if (given.source.vocabulary != nullptr) {
    tokens = {bos_text(*given.source.vocabulary), eos_text(*given.source.vocabulary)};
  }
  ReplyReading reading{.taught = TaughtCalls::find(chat_template, tokens), .rules = {}};
  reading.rules.think = find_think_tags(chat_template.source());
  reading.rules.dress = find_dress(chat_template.source());
  reading.rules.begun = find_begun_mark(chat_template.source());
  reading.rules.thinking_open = given.thinking_open;
  EBB_ASSIGN_OR_RETURN(reading.rules.tools, read_reply_tools(given.tools));
  return reading;
}

std::string as_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json delta_json(const ReplyDelta& delta) {
  switch (delta.kind) {
    case ReplyDelta::Kind::kReasoning: return {{"reasoning_content", delta.text}};
    case ReplyDelta::Kind::kContent: return {{"content", delta.text}};
    case ReplyDelta::Kind::kCallBegin: return {{"call", delta.call}, {"id", delta.id}, {"name", delta.text}};
    case ReplyDelta::Kind::kCallArguments: return {{"call", delta.call}, {"arguments", delta.text}};
    case ReplyDelta::Kind::kCallEnd: break;
  }
  return {{"call", delta.call}, {"complete", true}};
}

}  // namespace

Result<std::string> message_of_reply_text(std::string_view text, const ReplyTextRules& rules) {
  EBB_ASSIGN_OR_RETURN(ReplyReading reading, read_rules(rules));
  reading.rules.calls = &reading.taught.format();
  const ParsedReply reply = parse_reply(std::move(reading.rules), text);
  Json message = {{"role", "assistant"}, {"content", reply.content}};
  if (!reply.reasoning.empty()) message["reasoning_content"] = reply.reasoning;
  for (const ReplyCall& call : reply.calls) {
    message["tool_calls"].push_back({{"id", call.id},
                                     {"type", "function"},
                                     {"function", {{"name", call.name}, {"arguments", call.arguments}}},
                                     {"complete", call.complete}});
  }
  return as_text({{"calls", reading.taught.format().name()}, {"message", std::move(message)}}, 2);
}

Result<std::string> deltas_of_reply_text(std::string_view text, const ReplyTextRules& rules, std::size_t n_bytes) {
  EBB_CHECK(n_bytes > 0, "pieces hold bytes");
  EBB_ASSIGN_OR_RETURN(ReplyReading reading, read_rules(rules));
  reading.rules.calls = &reading.taught.format();
  ReplyParser parser(std::move(reading.rules));
  std::string lines;
  const auto add = [&](const std::vector<ReplyDelta>& deltas) {
    for (const ReplyDelta& delta : deltas) lines += as_text(delta_json(delta), -1);
  };
  while (!text.empty()) {
    std::size_t n = std::min(n_bytes, text.size());
    // Characters are whole.
    while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) ++n;
    add(parser.push(text.substr(0, n)));
    text.remove_prefix(n);
  }
  add(parser.finish());
  return lines;
}

}  // namespace ebb
