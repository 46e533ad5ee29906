#include "server/messages_request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "server/api_error.h"
#include "server/passed_fields.h"
#include "text/stop_strings.h"

namespace ebb {
namespace {

// What llama.cpp's server takes where a request does not say.
constexpr int kMaxTokens = 4096;
constexpr std::int64_t kMostThinkingTokens = std::int64_t{1} << 30;

// Of what cache_control marks; 1 is normal. More: an unmarked message leaves before much older marked ones.
constexpr double kMarkedPriority = 2.0;

// Of Anthropic's, those that hold no text that could be read here.
constexpr std::array<std::string_view, 12> kOtherBlocks = {"image",
                                                           "container_upload",
                                                           "server_tool_use",
                                                           "web_search_tool_result",
                                                           "web_fetch_tool_result",
                                                           "code_execution_tool_result",
                                                           "bash_code_execution_tool_result",
                                                           "text_editor_code_execution_tool_result",
                                                           "tool_search_tool_result",
                                                           "mcp_tool_use",
                                                           "mcp_tool_result",
                                                           "compaction"};

// Claude Code's first system block says what is to be billed, with a stamp that is another one in each request: with it no
// request would begin as the one before.
void settle_stamp(std::string& text) {
  constexpr std::string_view kHeader = "x-anthropic-billing-header:";
  constexpr std::string_view kStamp = "cch=";
  if (!text.starts_with(kHeader)) return;
  const std::size_t line_end = std::min(text.find('\n'), text.size());
  const std::size_t begin = text.find(kStamp);
  if (begin == std::string::npos || begin > line_end) return;
  const std::size_t end = std::min({text.find(';', begin), text.find(' ', begin), line_end});
  text.replace(begin + kStamp.size(), end - begin - kStamp.size(), "0");
}

// Whether cache_control marks it. How long is the store's affair, but a value that Anthropic does not know is a slip.
bool is_to_be_kept(JsonFields& marked) {
  std::optional<JsonFields> control = marked.object("cache_control");
  if (!control) return false;
  if (control->text("type", "ephemeral") != "ephemeral") control->refuse("type", "must be 'ephemeral'");
  const std::string ttl = control->text("ttl", "5m");
  if (ttl != "5m" && ttl != "1h") control->refuse("ttl", "must be '5m' or '1h'");
  return true;
}

// Messages as chat has them, of blocks.
class Messages {
 public:
  void add_system(JsonFields& body) {
    const Json* system = body.find("system");
    if (system == nullptr) return;
    std::string text = read_text(body, "system");
    settle_stamp(text);
    if (!text.empty()) list_.push_back({{"role", "system"}, {"content", std::move(text)}});
    take_mark();
  }

  void add(JsonFields& message) {
    const std::string role = message.text("role");
    const std::size_t n_before = list_.size();
    if (role == "assistant") {
      add_assistant(message);
    } else if (role == "user" || role == "system") {
      add_user(message, role);
    } else {
      message.refuse("role", "must be user or assistant; the system's text stands in 'system'");
    }
    if (const Json* hints = message.find("ebb")) {
      for (std::size_t i = n_before; i < list_.size(); ++i) list_[i]["ebb"] = *hints;
    }
    take_mark();
  }

  [[nodiscard]] std::optional<std::size_t> n_marked() const { return n_marked_; }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  // All that stands so far is marked.
  void mark() { n_marked_ = list_.size(); }
  // What is marked leaves later than what is not, unless a message says otherwise.
  Json take() {
    for (std::size_t i = 0; i < n_marked_.value_or(0); ++i) {
      if (!list_[i].contains("ebb")) list_[i]["ebb"] = {{"priority", kMarkedPriority}};
    }
    return std::move(list_);
  }

 private:
  // A string, or blocks of text, joined by line breaks.
  std::string read_text(JsonFields& holder, std::string_view name) {
    const Json* content = holder.find(name);
    if (content == nullptr || content->is_string()) return holder.text(name);
    if (!content->is_array()) {
      holder.refuse_type(name, "a string or an array of blocks");
      return {};
    }
    std::string text;
    for (JsonFields& block : holder.objects(name)) {
      if (&block.json() != &content->front()) text += '\n';
      text += text_of(block);
    }
    return text;
  }

  // Of a block that is text, or holds some.
  std::string text_of(JsonFields& block) {
    note_mark(block);
    const std::string type = block.needed_text("type");
    if (type == "text") return block.needed_text("text");
    if (type == "document") return document_text(block);
    if (type == "search_result") return block.text("title") + "\n" + read_text(block, "content");
    const bool is_known = std::ranges::find(kOtherBlocks, type) != kOtherBlocks.end();
    block.refuse("type", fmt::format("is '{:.40}'; {}", type,
                                     is_known ? "this model reads text only" : "there are no such blocks"));
    return {};
  }

  std::string document_text(JsonFields& block) {
    std::optional<JsonFields> source = block.needed_object("source");
    if (!source) return {};
    const std::string type = source->needed_text("type");
    std::string text;
    for (const std::string_view name : {"title", "context"}) {
      if (std::string line = block.text(name); !line.empty()) text += line + "\n";
    }
    if (type == "text") return text + source->needed_text("data");
    if (type == "content") return text + read_text(*source, "content");
    source->refuse("type", fmt::format("is '{:.40}'; this model reads documents of plain text only", type));
    return {};
  }

  // Text and results of tools, each in its place.
  void add_user(JsonFields& message, const std::string& role) {
    const Json* content = message.find("content");
    if (content == nullptr) message.refuse("content", "is missing");
    if (content == nullptr || !content->is_array()) {
      list_.push_back({{"role", role}, {"content", read_text(message, "content")}});
      return;
    }
    bool has_text = false;
    for (JsonFields& block : message.objects("content")) {
      if (text_member(block.json(), "type") == "tool_result") {
        add_result(block);
        has_text = false;
      } else {
        add_text(role, text_of(block), std::exchange(has_text, true));
      }
    }
  }

  void add_text(const std::string& role, std::string text, bool goes_on) {
    if (!goes_on) {
      list_.push_back({{"role", role}, {"content", std::move(text)}});
    } else {
      list_.back()["content"] = list_.back()["content"].get<std::string>() + "\n" + text;
    }
  }

  // Templates know no errors of tools: the text says so.
  void add_result(JsonFields& block) {
    note_mark(block);
    std::string text = read_text(block, "content");
    if (block.boolean("is_error", false)) text = "Error: " + text;
    list_.push_back(
        {{"role", "tool"}, {"tool_call_id", block.needed_text("tool_use_id")}, {"content", std::move(text)}});
  }

  // Text comes back as it was given: without anything between its blocks.
  void add_assistant(JsonFields& message) {
    const Json* content = message.find("content");
    if (content == nullptr) message.refuse("content", "is missing");
    Json said = {{"role", "assistant"}, {"content", ""}};
    if (content == nullptr || !content->is_array()) {
      said["content"] = message.text("content");
    } else {
      for (JsonFields& block : message.objects("content")) add_said(block, said);
    }
    list_.push_back(std::move(said));
  }

  void add_said(JsonFields& block, Json& said) {
    const std::string type = text_member(block.json(), "type");
    const auto append = [&](const char* name, const std::string& text) {
      if (!text.empty()) said[name] = text_member(said, name) + text;
    };
    if (type == "thinking") return append("reasoning_content", block.needed_text("thinking"));
    if (type == "redacted_thinking") return;  // nobody here can read it
    if (type != "tool_use") return append("content", text_of(block));
    note_mark(block);
    const std::optional<JsonFields> input = block.object("input");
    const Json arguments = input ? input->json() : Json::object();
    const Json function = {{"name", block.needed_text("name")}, {"arguments", json_text(arguments)}};
    said["tool_calls"].push_back({{"id", block.needed_text("id")}, {"type", "function"}, {"function", function}});
  }

  void note_mark(JsonFields& block) { is_marked_ = is_to_be_kept(block) || is_marked_; }
  void take_mark() {
    if (std::exchange(is_marked_, false)) mark();
  }

  Json list_ = Json::array();
  std::optional<std::size_t> n_marked_;
  // A block of the message under way is marked.
  bool is_marked_ = false;
};

// Whether one of them is marked.
bool read_tools(JsonFields& body, MessagesRequest& request) {
  if (body.find("tools") == nullptr) return false;
  Json list = Json::array();
  bool is_marked = false;
  for (JsonFields& tool : body.objects("tools")) {
    is_marked = is_to_be_kept(tool) || is_marked;
    std::string name = tool.needed_text("name");
    const auto is_it = [&](const Json& one) { return one["function"]["name"] == name; };
    if (std::ranges::any_of(list, is_it)) tool.refuse("name", fmt::format("'{:.40}' is declared twice", name));
    const std::string type = tool.text("type", "custom");
    if (type != "custom" && tool.find("input_schema") == nullptr) {
      request.warnings.push_back(fmt::format(
          "tool '{:.40}' left out: type '{:.40}' is one of Anthropic's own, and has no input_schema", name, type));
      continue;
    }
    Json function = {{"name", std::move(name)}};
    if (std::string text = tool.text("description"); !text.empty()) function["description"] = std::move(text);
    if (const std::optional<JsonFields> schema = tool.needed_object("input_schema")) {
      function["parameters"] = schema->json();
    }
    if (tool.boolean("strict", false)) function["strict"] = true;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  if (!list.empty()) request.chat["tools"] = std::move(list);
  return is_marked;
}

void read_tool_choice(JsonFields& body, Json& chat) {
  std::optional<JsonFields> choice = body.object("tool_choice");
  if (!choice) return;
  const std::string type = choice->needed_text("type");
  if (choice->boolean("disable_parallel_tool_use", false)) chat["parallel_tool_calls"] = false;
  if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else if (type == "any") {
    chat["tool_choice"] = "required";
  } else if (type == "tool") {
    chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", choice->needed_text("name")}}}};
  } else {
    choice->refuse("type", "must be auto, any, tool or none");
  }
}

void read_thinking(JsonFields& body, MessagesRequest& request) {
  std::optional<JsonFields> thinking = body.object("thinking");
  if (!thinking) return;
  const std::string type = thinking->needed_text("type");
  const bool is_on = type == "enabled" || type == "adaptive" || type == "between_tools";
  if (!is_on && type != "disabled") thinking->refuse("type", "must be enabled, adaptive or disabled");
  // What chat_template_kwargs says stands.
  Json& arguments = request.chat["chat_template_kwargs"];
  if (!arguments.is_object()) arguments = Json::object();
  if (!arguments.contains("enable_thinking")) arguments["enable_thinking"] = is_on;
  if (type == "enabled") {
    if (thinking->find("budget_tokens") == nullptr) thinking->refuse("budget_tokens", "is missing");
    request.chat["reasoning_budget_tokens"] = thinking->integer("budget_tokens", 0, 0, kMostThinkingTokens);
  }
  const std::string display = thinking->text("display", "summarized");
  if (display != "summarized" && display != "omitted") thinking->refuse("display", "must be summarized or omitted");
  request.hides_thinking = display == "omitted";
}

void read_output(JsonFields& body, Json& chat) {
  std::optional<JsonFields> output = body.object("output_config");
  if (!output) return;
  if (std::string effort = output->text("effort"); !effort.empty()) chat["reasoning_effort"] = std::move(effort);
  std::optional<JsonFields> format = output->object("format");
  if (!format) return;
  if (format->needed_text("type") != "json_schema") format->refuse("type", "must be json_schema");
  if (const std::optional<JsonFields> schema = format->needed_object("schema")) {
    chat["response_format"] = {{"type", "json_schema"},
                               {"json_schema", {{"name", "answer"}, {"schema", schema->json()}}}};
  }
}

void read_messages(JsonFields& body, bool marks_tools, MessagesRequest& request) {
  Messages messages;
  messages.add_system(body);
  if (marks_tools) messages.mark();
  const std::size_t n_before = messages.size();
  std::vector<JsonFields> said = body.objects("messages");
  for (JsonFields& message : said) {
    messages.add(message);
    if (!body.status().ok()) return;
  }
  if (messages.size() == n_before) {
    body.refuse("messages", said.empty() ? "must be an array with at least one message"
                                         : "must say something: the content of each message is empty");
  }
  // The whole request is marked by itself.
  if (is_to_be_kept(body)) messages.mark();
  request.n_marked = messages.n_marked();
  request.chat["messages"] = messages.take();
}

void warn_of_ignored(JsonFields& body, std::vector<std::string>& warnings) {
  for (const std::string_view name : {"mcp_servers", "container"}) {
    const Json* given = body.find(name);
    if (given != nullptr && !given->empty()) warnings.push_back(fmt::format("{}: has no effect", name));
  }
}

}  // namespace

Result<MessagesRequest> read_messages_request(const Json& body) {
  JsonFields fields(body);
  EBB_RETURN_IF_ERROR(fields.status());
  MessagesRequest request;
  pass_fields(body, request.chat);
  const bool marks_tools = read_tools(fields, request);
  read_messages(fields, marks_tools, request);
  request.chat["max_tokens"] = fields.integer("max_tokens", kMaxTokens, 0, std::int64_t{1} << 31);
  if (fields.find("stop_sequences") != nullptr)
    request.chat["stop"] = fields.texts("stop_sequences", StopStrings::kMaxStrings);
  read_tool_choice(fields, request.chat);
  read_thinking(fields, request);
  read_output(fields, request.chat);
  request.edits = read_context_edits(fields, request.warnings);
  warn_of_ignored(fields, request.warnings);
  EBB_RETURN_IF_ERROR(fields.status());
  return request;
}

}  // namespace ebb
