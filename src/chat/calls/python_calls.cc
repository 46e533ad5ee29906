// LFM2, Llama 4: calls as Python writes them,
//
//   <|tool_call_start|>[read(path='a.c', n=2), list()]<|tool_call_end|>
#include "chat/calls/call_format.h"
#include "chat/calls/call_rules.h"
#include "chat/calls/listed_calls.h"
#include "chat/calls/xml_value.h"
#include "json/json_string.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

constexpr std::string_view kPythonOpen = "<|tool_call_start|>";
constexpr std::string_view kPythonClose = "<|tool_call_end|>";

// What no key has.
constexpr std::string_view kNoKey = "=,'\"()[]{} ";

// The length of what stands up to a comma that is in no text and no bracket.
std::size_t value_bytes(std::string_view text) {
  std::size_t depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote && ends_quoted_text(text, i)) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else if (c == ',' && depth == 0) {
      return i;
    }
  }
  return text.size();
}

std::string python_list_to_json(std::string_view list) {
  const auto skip_space = [&] {
    while (!list.empty() && is_call_space(list.front())) list.remove_prefix(1);
  };
  std::string json = "{";
  for (skip_space(); !list.empty(); skip_space()) {
    const std::size_t equals = list.find('=');
    if (equals == list.npos || equals == 0) return {};
    std::string_view key = list.substr(0, equals);
    while (!key.empty() && is_call_space(key.back())) key.remove_suffix(1);
    if (key.empty() || key.find_first_of(kNoKey) != key.npos) return {};
    list.remove_prefix(equals + 1);
    const std::string_view value = list.substr(0, value_bytes(list));
    const std::string read = parse_json(value).ok() ? std::string(value) : python_to_json(value);
    if (read.empty()) return {};
    json += (json.size() > 1 ? "," : "") + to_json_string(key) + ":" + read;
    list.remove_prefix(std::min(list.size(), value.size() + 1));
  }
  return json + "}";
}

std::string write_list(const std::string& arguments) {
  const Result<nlohmann::ordered_json> read = parse_json(arguments);
  if (!read.ok() || !read->is_object()) return "...";
  std::string text;
  for (const auto& [key, value] : read->items()) text += (text.empty() ? "" : ", ") + key + "=" + value.dump();
  return text;
}

constexpr ListedSyntax kPython = {.close = "]<|tool_call_end|>",
                                  .between = ',',
                                  .before_name = {},
                                  .quotes = "'\"",
                                  .text_mark = {},
                                  .to_json = python_list_to_json};

// Behind the bracket.
class PythonCallReader : public CallReader {
 public:
  Step take(char c, CallEvents& events) override {
    if (is_open_) return calls_.take(c, events);
    if (is_call_space(c)) return Step::kHeld;
    is_open_ = c == '[';
    return is_open_ ? Step::kHeld : Step::kRefused;
  }
  bool finish(CallEvents& events) override { return is_open_ && calls_.finish(events); }
  std::size_t n_held() const override { return calls_.n_held(); }

 private:
  bool is_open_ = false;
  ListedReader calls_{kPython};
};

class PythonCalls : public CallFormat {
 public:
  std::string_view name() const override { return "python"; }
  bool is_taught_by(std::string_view source) const override {
    return source.find(kPythonOpen) != source.npos || source.find("<|tool_list_start|>") != source.npos ||
           (source.find("List of tools: ") != source.npos && source.find("<|im_start|>") != source.npos);
  }
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = kPythonOpen}};
    return kOpeners;
  }
  std::vector<std::string_view> marks() const override { return {kPythonOpen, kPythonClose}; }
  std::string write(const std::vector<WrittenCall>& calls) const override {
    std::string text = "<|tool_call_start|>[";
    for (std::size_t i = 0; i < calls.size(); ++i) {
      text += (i > 0 ? ", " : "") + calls[i].name + "(" + write_list(calls[i].arguments) + ")";
    }
    return text.append(kPython.close);
  }
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& /*tools*/) const override {
    return std::make_unique<PythonCallReader>();
  }
  Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools, bool parallel) const override {
    const auto write_call = [&](const Tool& tool) -> Result<std::string> {
      const auto write_value = [&](const auto& root, const std::string& key, const auto& schema) {
        return rules.add_part(root, schema, tool_title(tool) + "/properties/" + key);
      };
      EBB_ASSIGN_OR_RETURN(const std::string arguments,
                           add_listed_arguments(rules, tool, "=", ", ", kNoKey, write_value));
      return fmt::format("{} {} {}", grammar_literal(tool.name + "("), arguments, grammar_literal(")"));
    };
    EBB_ASSIGN_OR_RETURN(const std::string calls, add_calls(rules, tools, ", ", parallel, write_call));
    return fmt::format("{} {} {}", grammar_literal("<|tool_call_start|>["), calls, grammar_literal(kPython.close));
  }
};

}  // namespace

const CallFormat& python_calls() {
  static const PythonCalls kFormat;
  return kFormat;
}

}  // namespace ebb
