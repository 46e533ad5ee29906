#include "chat/derive_call_form.h"

#include <algorithm>
#include <utility>

#include "base/split_text.h"
#include "chat/calls/json_scanner.h"
#include "chat/calls/xml_value.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSaid = "zqsaid";
constexpr std::string_view kName = "zqname";
constexpr std::string_view kKey = "zqkey";
constexpr std::string_view kOtherKey = "zqother";
constexpr std::string_view kValue = "zqvalue";
constexpr std::string_view kOtherValue = "zqsecond";
constexpr std::string_view kId = "zqcall001";
constexpr std::string_view kOtherId = "zqcall002";

// Places in the text of a call: none of them is in a template.
constexpr char kNamePlace = '\x01';
constexpr char kIdPlace = '\x02';
constexpr char kIndexPlace = '\x03';
constexpr char kArgumentsPlace = '\x04';

// As much as both end with, from the beginning of a mark or a bracket on.
std::size_t n_common_end(std::string_view one, std::string_view other) {
  std::size_t n = 0;
  while (n < one.size() && n < other.size() && one[one.size() - 1 - n] == other[other.size() - 1 - n]) ++n;
  const std::string_view end = one.substr(one.size() - n);
  const std::size_t begin = end.find_first_of("<[{");
  if (begin == end.npos) return n == one.size() ? n : 0;
  return n - begin;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

std::size_t n_of(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

// The end of the JSON object that begins there; npos: there is none.
std::size_t object_end(std::string_view text, std::size_t begin) {
  if (begin >= text.size() || text[begin] != '{') return std::string_view::npos;
  JsonScanner scanner;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const JsonScanner::Step step = scanner.take(text[i]);
    if (step == JsonScanner::Step::kEnd) return i + 1;
    if (step != JsonScanner::Step::kMore) break;
  }
  return std::string_view::npos;
}

// The text of calls with places instead of what differs from call to call.
struct Masked {
  std::string text;
  std::optional<ArgumentTags> tags = {};
};

class Deriver {
 public:
  // `says`: behind what is said, or by themselves.
  Deriver(const ChatTemplate& chat_template, const TemplateTokens& tokens, bool says)
      : chat_template_(chat_template), tokens_(tokens), prober_(chat_template, tokens), says_(says) {}

  std::optional<CallForm> derive() {
    const std::optional<std::string> one = reply({call(kId)});
    if (!one || n_of(*one, kName) != 1) return std::nullopt;
    std::optional<Masked> masked = mask(*one);
    if (!masked) return std::nullopt;
    CallForm form{.tags = masked->tags};
    if (!split_calls(masked->text, form)) return std::nullopt;
    return form;
  }

 private:
  static Json arguments() { return {{kKey, kValue}, {kOtherKey, kOtherValue}}; }
  static ProbeCall call(std::string_view id) {
    return {.name = std::string(kName), .id = std::string(id), .arguments = arguments()};
  }

  std::optional<std::string> reply(std::vector<ProbeCall> calls) {
    const ProbeReply said{.content = says_ ? std::string(kSaid) : "", .calls = std::move(calls)};
    std::optional<std::string> text = prober_.render(said);
    if (!text) return std::nullopt;
    if (says_) {
      const std::size_t at = text->find(kSaid);
      if (at == std::string::npos || at > text->find(kName)) return std::nullopt;
      text->erase(0, at + kSaid.size());
    }
    return std::string(trimmed(*text));
  }

  // All calls of a text that repeat the arguments; nothing: it writes arguments in no form that is known.
  std::optional<Masked> mask(std::string text) {
    Masked masked;
    const std::size_t key = text.find(kKey, text.find(kName));
    if (key == std::string::npos) return std::nullopt;
    const std::size_t brace = text.rfind('{', key);
    const std::size_t end = brace == std::string::npos || brace < text.find(kName) ? brace : object_end(text, brace);
    if (brace != std::string::npos && end != std::string::npos && brace > text.find(kName)) {
      const std::string object = text.substr(brace, end - brace);
      const Result<Json> read = parse_json(object);
      if (!read.ok() || *read != arguments()) return std::nullopt;
      replace_all(text, object, {&kArgumentsPlace, 1});
    } else if (!mask_tags(text, masked)) {
      return std::nullopt;
    }
    replace_all(text, kName, {&kNamePlace, 1});
    replace_all(text, kId, {&kIdPlace, 1});
    replace_all(text, kOtherId, {&kIdPlace, 1});
    masked.text = std::move(text);
    return masked;
  }

  // name A key B value C key B value E
  bool mask_tags(std::string& text, Masked& masked) {
    const std::size_t name_end = text.find(kName) + kName.size();
    const std::size_t key = text.find(kKey, name_end);
    const std::size_t value = text.find(kValue, key);
    const std::size_t other_key = text.find(kOtherKey, value);
    const std::size_t other_value = text.find(kOtherValue, other_key);
    if (other_value == std::string::npos) return false;
    const auto between = [&](std::size_t begin, std::string_view what, std::size_t end) {
      return text.substr(begin + what.size(), end - begin - what.size());
    };
    const std::string in_front = text.substr(name_end, key - name_end);
    const std::string key_end = between(key, kKey, value);
    const std::string to_next = between(value, kValue, other_key);
    const std::string behind = text.substr(other_value + kOtherValue.size());
    if (key_end.empty() || between(other_key, kOtherKey, other_value) != key_end) return false;
    ArgumentTags tags;
    tags.before_key = in_front.substr(in_front.size() - n_common_end(in_front, to_next));
    const std::string end_and_gap = to_next.substr(0, to_next.size() - tags.before_key.size());
    tags.value_end = end_and_gap.substr(0, n_common_beginning(end_and_gap, behind));
    // What else stands between arguments would have to be counted.
    if (trimmed(tags.before_key).empty() || trimmed(tags.value_end).empty()) return false;
    if (!trimmed(std::string_view(end_and_gap).substr(tags.value_end.size())).empty()) return false;
    if (!find_key_ends(key_end, tags)) return false;
    find_wrap(key_end, tags);
    const std::string head = in_front.substr(0, in_front.size() - tags.before_key.size());
    const std::string written = in_front + std::string(kKey) + key_end + std::string(kValue) + to_next +
                                std::string(kOtherKey) + key_end + std::string(kOtherValue) + tags.value_end;
    // Of further calls what stands in front may say their number.
    const std::string only = written.substr(head.size());
    replace_all(text, only, {&kArgumentsPlace, 1});
    masked.tags = std::move(tags);
    return true;
  }

  // What some templates put around texts of several lines.
  void find_wrap(const std::string& key_end, ArgumentTags& tags) {
    const std::string lines = fmt::format("{}\n<{}>", kValue, kOtherValue);
    ProbeCall wrapped = call(kId);
    wrapped.arguments = {{kKey, lines}};
    const std::optional<std::string> text = reply({wrapped});
    const std::size_t key = text ? text->find(kKey, text->find(kName)) : std::string::npos;
    const std::size_t at = key == std::string::npos ? key : text->find(lines, key);
    if (at == std::string::npos) return;
    const std::size_t end = text->find(trimmed(tags.value_end), at + lines.size());
    const std::string begin = text->substr(key + kKey.size(), at - key - kKey.size());
    if (end == std::string::npos || !begin.starts_with(key_end) || trimmed(begin) == trimmed(key_end)) return;
    tags.wrap_open = begin.substr(key_end.size());
    tags.wrap_close = text->substr(at + lines.size(), end - at - lines.size());
  }

  bool find_key_ends(const std::string& of_string, ArgumentTags& tags) {
    tags.key_ends = {{JsonType::kString, of_string}};
    const std::pair<JsonTypes, Json> others[] = {{JsonType::kNumber, 7},
                                                 {JsonType::kBoolean, true},
                                                 {JsonType::kNull, nullptr},
                                                 {JsonType::kObject, {{"zq", 1}}},
                                                 {JsonType::kArray, Json::array({1})}};
    for (const auto& [type, value] : others) {
      if (find_typed_end(value, type, of_string, tags)) continue;
      // Some templates have no word for it.
      if (type != JsonType::kNull) return false;
      tags.key_ends[type] = tags.key_ends[JsonType::kNumber];
    }
    return true;
  }

  bool find_typed_end(const Json& value, JsonTypes type, const std::string& of_string, ArgumentTags& tags) {
    ProbeCall typed = call(kId);
    typed.arguments = {{kKey, value}};
    const std::optional<std::string> text = reply({typed});
    const std::size_t key = text ? text->find(kKey, text->find(kName)) : std::string::npos;
    const std::size_t end = key == std::string::npos ? key : text->find(trimmed(tags.value_end), key);
    if (end == std::string::npos) return false;
    const std::string_view written =
        trimmed(std::string_view(*text).substr(key + kKey.size(), end - key - kKey.size()));
    const std::string_view known = trimmed(of_string);
    if (written.starts_with(known) && xml_text_to_json(trimmed(written.substr(known.size())), type).front() != '"') {
      tags.key_ends[type] = of_string;
      return true;
    }
    return find_key_end(written, value, type, of_string, tags);
  }

  // What stands in front of the value itself.
  static bool find_key_end(std::string_view written, const Json& value, JsonTypes type, const std::string& of_string,
                           ArgumentTags& tags) {
    for (std::size_t n = 1; n < written.size(); ++n) {
      const std::string_view literal = written.substr(n);
      const std::string json = xml_text_to_json(literal, type);
      const Result<Json> read = parse_json(json);
      if (!read.ok() || *read != value) continue;
      // The first place that reads so is the value's beginning.
      std::string end(written.substr(0, n));
      const std::size_t n_space = of_string.size() - of_string.find_last_not_of(" \n\t\r") - 1;
      end += of_string.substr(of_string.size() - n_space);
      tags.key_ends[type] = std::move(end);
      return true;
    }
    return false;
  }

  bool split_calls(const std::string& masked, CallForm& form) {
    const std::size_t name = masked.find(kNamePlace);
    const std::size_t arguments = masked.find(kArgumentsPlace, name);
    if (arguments == std::string::npos) return false;
    std::string head = masked.substr(0, name);
    std::string middle = masked.substr(name, arguments - name);
    std::string tail = masked.substr(arguments + 1);
    std::optional<std::string> two;
    if (shows_two_calls()) two = reply({call(kId), call(kOtherId)});
    std::optional<Masked> both = two ? mask(*two) : std::nullopt;
    form.parallel = both && n_of(both->text, {&kArgumentsPlace, 1}) == 2;
    if (form.parallel) {
      const std::string_view text = both->text;
      const std::size_t second = text.find(kNamePlace, text.find(kArgumentsPlace));
      const std::size_t second_end = text.find(kArgumentsPlace, second);
      if (second == text.npos || second_end == text.npos) return false;
      const std::string gap(text.substr(text.find(kArgumentsPlace) + 1, second - text.find(kArgumentsPlace) - 1));
      if (!number(middle, text.substr(second, second_end - second))) return false;
      std::string next = gap;
      if (!number_end(head, next)) return false;
      const std::string begin = head.substr(head.size() - n_common_end(head, next));
      const std::string close_and_gap = next.substr(0, next.size() - begin.size());
      const std::string end = close_and_gap.substr(0, n_common_beginning(close_and_gap, tail));
      form.open = head.substr(0, head.size() - begin.size());
      form.between = close_and_gap.substr(end.size());
      form.close = tail.substr(end.size());
      return set_call(begin + middle + kArgumentsPlace + end, form);
    }
    return set_call(head + middle + kArgumentsPlace + tail, form);
  }

  // In one message; others have them one by one, each in a turn of its own.
  [[nodiscard]] bool shows_two_calls() const {
    for (const bool as_text : {false, true}) {
      Json message = {{"role", "assistant"}, {"content", ""}};
      for (const std::string_view id : {kId, kOtherId}) {
        const Json written = as_text ? Json(arguments().dump()) : arguments();
        message["tool_calls"].push_back(
            {{"id", id}, {"type", "function"}, {"function", {{"name", kName}, {"arguments", written}}}});
      }
      const Result<ChatPrompt> prompt =
          chat_template_.render({.messages = Json::array({{{"role", "user"}, {"content", "Hello"}}, message}),
                                 .add_generation_prompt = false,
                                 .bos_token = tokens_.bos,
                                 .eos_token = tokens_.eos});
      if (prompt.ok()) return n_of(prompt->text(), kName) == 2;
    }
    return false;
  }

  // Where the second text differs by a number, both have a place there.
  static bool number(std::string& first, std::string_view second) {
    if (first == second) return true;
    std::size_t begin = 0;
    while (begin < first.size() && begin < second.size() && first[begin] == second[begin]) ++begin;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (begin >= first.size() || begin >= second.size() || !is_digit(first[begin]) || !is_digit(second[begin])) {
      return false;
    }
    if (first.substr(begin + 1) != second.substr(begin + 1)) return false;
    first[begin] = kIndexPlace;
    return true;
  }

  // So at the end of what stands in front of the names.
  static bool number_end(std::string& head, std::string& next) {
    std::size_t n = 0;
    while (n < head.size() && n < next.size() && head[head.size() - 1 - n] == next[next.size() - 1 - n]) ++n;
    if (n == head.size() || n == next.size()) return true;
    char& one = head[head.size() - 1 - n];
    char& other = next[next.size() - 1 - n];
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (is_digit(one) && is_digit(other)) one = other = kIndexPlace;
    return true;
  }

  static std::vector<CallPiece> pieces_of(std::string_view text) {
    using Kind = CallPiece::Kind;
    std::vector<CallPiece> pieces;
    std::string literal;
    const auto end_literal = [&] {
      if (!literal.empty()) pieces.push_back({.text = std::exchange(literal, {})});
    };
    for (const char c : text) {
      if (c > kArgumentsPlace || c < kNamePlace) {
        literal += c;
        continue;
      }
      end_literal();
      pieces.push_back({.kind = c == kNamePlace    ? Kind::kName
                                : c == kIdPlace    ? Kind::kId
                                : c == kIndexPlace ? Kind::kIndex
                                                   : Kind::kArguments});
    }
    end_literal();
    return pieces;
  }

  // Reads the text of one call as an object with a key for the name and one for the arguments.
  static std::optional<CallKeys> keys_of(std::string_view object) {
    std::string text(object);
    replace_all(text, std::string_view(&kNamePlace, 1), kName);
    replace_all(text, std::string_view(&kIdPlace, 1), kId);
    replace_all(text, std::string_view(&kIndexPlace, 1), "0");
    replace_all(text, std::string_view(&kArgumentsPlace, 1), arguments().dump());
    const Result<Json> read = parse_json(text);
    if (!read.ok() || !read->is_object()) return std::nullopt;
    CallKeys keys;
    for (const auto& [key, value] : read->items()) {
      if (value == kName) keys.name = key;
      if (value == arguments()) keys.arguments = key;
    }
    if (keys.name.empty() || keys.arguments.empty()) return std::nullopt;
    return keys;
  }

  // The end of the last call is followed by the end of the turn, and by what a template may say to every prompt's end.
  static std::string without_turn_end(std::string text) {
    constexpr std::size_t kMostBytes = 100;
    if (text.size() > kMostBytes) text = text.substr(0, text.find('<', 1));
    return text.substr(0, text.find_last_not_of(" \n\t\r") + 1);
  }

  static bool set_call(const std::string& text, CallForm& form) {
    const std::size_t name = text.find(kNamePlace);
    if (!form.tags) {
      // The object that holds the name, if it holds the arguments too.
      const std::size_t begin = text.rfind('{', name);
      const std::size_t end = text.find('}', text.find(kArgumentsPlace));
      if (begin != std::string::npos && end != std::string::npos) {
        const std::string object = text.substr(begin, end + 1 - begin);
        form.keys = keys_of(object);
        if (form.keys) {
          form.call = {{.text = text.substr(0, begin)}};
          for (CallPiece& piece : pieces_of(object)) form.call.push_back(std::move(piece));
          form.call.push_back({.text = text.substr(end + 1)});
        }
      }
    }
    if (!form.keys) form.call = pieces_of(text);
    const bool begins_with_text = form.call.front().kind == CallPiece::Kind::kText;
    const bool ends_with_text = form.call.back().kind == CallPiece::Kind::kText;
    if (!begins_with_text || (form.tags && (!ends_with_text || trimmed(form.call.back().text).empty()))) return false;
    std::string& last = form.close.empty() && ends_with_text ? form.call.back().text : form.close;
    last = without_turn_end(last);
    return !form.opener().empty();
  }

  const ChatTemplate& chat_template_;
  const TemplateTokens& tokens_;
  const ReplyProber prober_;
  bool says_;
};

}  // namespace

std::vector<CallForm> derive_call_forms(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  std::vector<CallForm> forms;
  for (const bool says : {true, false}) {
    std::optional<CallForm> form = Deriver(chat_template, tokens, says).derive();
    if (form && std::ranges::find(forms, *form) == forms.end()) forms.push_back(*std::move(form));
  }
  return forms;
}

}  // namespace ebb
