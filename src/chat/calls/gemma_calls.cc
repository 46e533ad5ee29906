// Gemma 4:
//
//   <|tool_call>call:read{n:2,path:<|"|>a.c<|"|>}<tool_call|>
//
// Texts stand between marks of their own, keys as they are; lists and objects as in JSON but for that.
#include "chat/calls/call_format.h"
#include "chat/calls/call_rules.h"
#include "chat/calls/listed_calls.h"
#include "chat/calls/xml_value.h"
#include "grammar/value_syntax.h"
#include "json/json_string.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

constexpr std::string_view kGemmaOpen = "<|tool_call>";
constexpr std::string_view kGemmaClose = "<tool_call|>";
constexpr std::string_view kGemmaText = "<|\"|>";

class GemmaValues {
 public:
  GemmaValues(std::string_view text, bool nests) : text_(text), nests_(nests) {}

  // Of the inside of an object; empty: it is none.
  std::string read_object() {
    std::string json;
    if (!read_members(0, '\0', json) || !text_.empty()) return {};
    return json;
  }

 private:
  static constexpr int kMaxDepth = 64;

  bool take(std::string_view what) {
    if (!text_.starts_with(what)) return false;
    text_.remove_prefix(what.size());
    return true;
  }
  void skip_space() {
    while (!text_.empty() && is_call_space(text_.front())) text_.remove_prefix(1);
  }

  // Up to the closing bracket; '\0': up to the end.
  bool read_members(int depth, char end, std::string& json) {
    json += '{';
    for (bool is_first = true;; is_first = false) {
      skip_space();
      if (end == '\0' ? text_.empty() : take({&end, 1})) break;
      if (!is_first && !take(",")) return false;
      skip_space();
      const bool is_quoted = take(kGemmaText);
      const std::size_t n = is_quoted ? text_end() : text_.find(':');
      if (n == std::string_view::npos || n == 0) return false;
      if (!is_quoted && text_.substr(0, n).find_first_of(",[]{}") != std::string_view::npos) return false;
      json += (is_first ? "" : ",") + to_json_string(text_.substr(0, n)) + ":";
      text_.remove_prefix(n + (is_quoted ? kGemmaText.size() : 0));
      if (!take(":") || !read_value(depth + 1, json)) return false;
    }
    json += '}';
    return true;
  }

  bool read_list(int depth, std::string& json) {
    json += '[';
    for (bool is_first = true;; is_first = false) {
      skip_space();
      if (take("]")) break;
      if (!is_first && !take(",")) return false;
      json += is_first ? "" : ",";
      if (!read_value(depth + 1, json)) return false;
    }
    json += ']';
    return true;
  }

  bool read_value(int depth, std::string& json) {
    skip_space();
    if (depth > kMaxDepth) return false;
    if (take("{")) return read_members(depth, '}', json);
    if (take("[")) return read_list(depth, json);
    if (take(kGemmaText)) {
      const std::size_t n = text_end();
      if (n == std::string_view::npos) return false;
      json += to_json_string(text_.substr(0, n));
      text_.remove_prefix(n + kGemmaText.size());
      return true;
    }
    const std::string_view word = text_.substr(0, text_.find_first_of(",]}"));
    text_.remove_prefix(word.size());
    const std::string read = parse_json(word).ok() ? std::string(word) : python_to_json(word);
    json += read;
    return !read.empty();
  }

  [[nodiscard]] std::size_t text_end() const { return find_marked_end(text_, kGemmaText, nests_); }

  std::string_view text_;
  bool nests_;
};

std::string gemma_list_to_json(std::string_view list) {
  const std::string json = GemmaValues(list, true).read_object();
  return json.empty() ? GemmaValues(list, false).read_object() : json;
}

constexpr ListedSyntax kGemma = {.close = kGemmaClose,
                                 .before_name = "call:",
                                 .begin = '{',
                                 .end = '}',
                                 .quotes = {},
                                 .text_mark = kGemmaText,
                                 .to_json = gemma_list_to_json};

constexpr ValueSyntax kGemmaValues = {.name = "gemma-",
                                      .open = kGemmaText,
                                      .close = kGemmaText,
                                      .is_raw = true,
                                      .barred = kGemmaText,
                                      .has_bare_keys = true};

class GemmaCalls : public CallFormat {
 public:
  std::string_view name() const override { return "gemma"; }
  bool is_taught_by(std::string_view source) const override {
    return source.find(kGemmaOpen) != source.npos && source.find(kGemmaClose) != source.npos;
  }
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = kGemmaOpen}};
    return kOpeners;
  }
  std::vector<std::string_view> marks() const override { return {kGemmaOpen, kGemmaClose, kGemmaText}; }
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& /*tools*/) const override {
    return std::make_unique<ListedReader>(kGemma);
  }
  Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools, bool parallel) const override {
    const auto write_call = [&](const Tool& tool) -> Result<std::string> {
      const auto write_value = [&](const auto& root, const std::string& key, const auto& schema) {
        return rules.add_part(root, schema, tool_title(tool) + "/properties/" + key, kGemmaValues);
      };
      EBB_ASSIGN_OR_RETURN(const std::string arguments,
                           add_listed_arguments(rules, tool, ":", ",", ",:[]{}<", write_value));
      return fmt::format("{} {} {}", grammar_literal(fmt::format("{}call:{}{{", kGemmaOpen, tool.name)), arguments,
                         grammar_literal(fmt::format("}}{}", kGemmaClose)));
    };
    return add_calls(rules, tools, "", parallel, write_call);
  }
};

}  // namespace

const CallFormat& gemma_calls() {
  static const GemmaCalls kFormat;
  return kFormat;
}

}  // namespace ebb
