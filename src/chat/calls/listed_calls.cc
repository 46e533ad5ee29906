#include "chat/calls/listed_calls.h"

#include <algorithm>
#include <utility>

#include "base/split_text.h"
#include "chat/calls/call_rules.h"
#include "grammar/schema_rules.h"

namespace ebb {
namespace {

bool follows_value(char c) { return std::string_view(",:)]}").find(c) != std::string_view::npos; }

}  // namespace

bool ends_quoted_text(std::string_view text, std::size_t at) {
  do {
    ++at;
  } while (at < text.size() && is_call_space(text[at]));
  return at >= text.size() || follows_value(text[at]);
}

std::size_t find_marked_end(std::string_view text, std::string_view mark, bool nests) {
  std::size_t n_nested = 0;
  for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + mark.size())) {
    if (!ends_quoted_text(text, at + mark.size() - 1)) {
      n_nested += nests ? 1 : 0;
    } else if (n_nested > 0) {
      --n_nested;
    } else {
      return at;
    }
  }
  return text.npos;
}

CallReader::Step ListedReader::take(char c, CallEvents& events) {
  n_again_ = 0;
  switch (state_) {
    case State::kBefore:
      if (is_call_space(c)) return Step::kHeld;
      word_ += c;
      if (syntax_.before_name.empty() || !syntax_.before_name.starts_with(word_)) {
        state_ = State::kName;
        if (!syntax_.before_name.empty()) return Step::kRefused;
        word_.clear();
        return take_name(c, events);
      }
      if (word_ == syntax_.before_name) {
        word_.clear();
        state_ = State::kName;
      }
      return Step::kHeld;
    case State::kName: return take_name(c, events);
    case State::kList: return take_list(c, events);
    case State::kRaw: return raw_.take(c, events) ? Step::kDone : Step::kTaken;
    case State::kBehind: break;
  }
  return take_behind(c);
}

CallReader::Step ListedReader::take_name(char c, CallEvents& events) {
  if (c == syntax_.begin && !word_.empty()) {
    events.begin(std::exchange(word_, {}));
    begin_list();
    return Step::kTaken;
  }
  const auto byte = static_cast<unsigned char>(c);
  const bool is_name =
      byte > 0x20 && byte != 0x7F && std::string_view("()[]{}<>\"',").find(c) == std::string_view::npos;
  if (!is_name || word_.size() >= CallLimits::kMaxNameBytes) return Step::kRefused;
  word_ += c;
  return Step::kHeld;
}

// Whether the byte is a text's, or its quote.
bool ListedReader::is_in_text(char c) {
  const bool has_marks = !syntax_.text_mark.empty();
  if (has_marks && !in_mark_) {
    in_mark_ = list_.ends_with(syntax_.text_mark);
    return in_mark_;
  }
  if (!has_marks && quote_ == 0) {
    if (syntax_.quotes.find(c) == std::string_view::npos) return false;
    quote_ = c;
    return true;
  }
  if (may_be_over_) {
    if (is_call_space(c)) return true;
    may_be_over_ = false;
    if (!follows_value(c)) {
      has_nested_ = has_nested_ || (has_marks && nests_);
      n_nested_ += has_marks && nests_ ? 1 : 0;
    } else if (n_nested_ > 0) {
      --n_nested_;
    } else {
      quote_ = 0;
      in_mark_ = false;
      return false;
    }
  }
  if (has_marks) {
    may_be_over_ = list_.ends_with(syntax_.text_mark);
    return true;
  }
  if (is_escaped_) {
    is_escaped_ = false;
  } else if (c == '\\') {
    is_escaped_ = true;
  } else if (c == quote_) {
    may_be_over_ = true;
  }
  return true;
}

void ListedReader::begin_list() {
  state_ = State::kList;
  list_.clear();
  n_whole_ = depth_ = n_nested_ = 0;
  in_mark_ = has_nested_ = may_be_over_ = false;
}

CallReader::Step ListedReader::take_list(char c, CallEvents& events) {
  list_ += c;
  if (list_.size() > CallLimits::kMaxHeldBytes) {
    events.arguments(std::exchange(list_, {}));
    state_ = State::kRaw;
    return Step::kTaken;
  }
  if (is_in_text(c)) return Step::kHeld;
  if (c == '(' || c == '[' || c == '{') {
    ++depth_;
  } else if ((c == ')' || c == ']' || c == '}') && depth_ > 0) {
    --depth_;
  } else if (c == ',' && depth_ == 0) {
    n_whole_ = list_.size() - 1;
  } else if (c == syntax_.end && depth_ == 0) {
    list_.pop_back();
    const std::string json = syntax_.to_json(list_);
    events.arguments(json.empty() ? list_ : json);
    if (!json.empty()) events.end();
    list_.clear();
    state_ = State::kBehind;
    return Step::kTaken;
  }
  return Step::kHeld;
}

CallReader::Step ListedReader::take_behind(char c) {
  if (is_call_space(c)) return Step::kHeld;
  word_ += c;
  if (word_ == syntax_.close) return Step::kDone;
  if (word_.size() == 1 && c == syntax_.between) {
    word_.clear();
    state_ = State::kBefore;
    return Step::kHeld;
  }
  return syntax_.close.starts_with(word_) ? Step::kHeld : Step::kRefused;
}

// Of a list that broke off the values that are whole, as the beginning of an object that a client can mend.
std::string ListedReader::cut_arguments() const {
  if (state_ != State::kList) return list_;
  if (n_whole_ == 0) return "{";
  std::string json = syntax_.to_json(std::string_view(list_).substr(0, n_whole_));
  if (json.empty()) return list_;
  json.pop_back();
  return json;
}

// Whether marks inside a text opened others, and the text would be whole if they had not.
bool ListedReader::opens_too_much() const {
  if (!in_mark_ || !has_nested_) return false;
  const std::string_view text = trimmed(list_);
  return text.ends_with(syntax_.end) || text.find(fmt::format("{}{}", syntax_.end, syntax_.close)) != text.npos;
}

bool ListedReader::finish(CallEvents& events) {
  n_again_ = 0;
  if (state_ == State::kList && opens_too_much()) {
    n_again_ = list_.size();
    begin_list();
    nests_ = false;
    return false;
  }
  events.arguments(cut_arguments());
  list_.clear();
  return state_ == State::kBehind || state_ == State::kList;
}

// Two rules for each argument: where none came before it, and where one did.
Result<std::string> add_listed_arguments(
    SchemaRules& rules, const Tool& tool, std::string_view behind_key, std::string_view between,
    std::string_view barred,
    const std::function<Result<std::string>(const nlohmann::ordered_json& root, const std::string& key,
                                            const nlohmann::ordered_json& schema)>& write_value) {
  EBB_ASSIGN_OR_RETURN(const ToolArguments arguments, read_tool_arguments(tool));
  if (arguments.takes_any()) {
    EBB_ASSIGN_OR_RETURN(const std::string value, write_value(arguments.parameters, "", true));
    const std::string member = rules.grammar().add_fresh(
        fmt::format("[a-zA-Z_] [a-zA-Z0-9_]{{0,63}} {} {}", grammar_literal(behind_key), value));
    return fmt::format("({0} ({1} {0})*)?", member, grammar_literal(between));
  }
  std::string first = "\"\"";
  std::string next = "\"\"";
  std::vector<std::pair<std::string, nlohmann::ordered_json>> members;
  for (const auto& [key, schema] : arguments.properties.items()) {
    if (key.empty() || key.find_first_of(barred) != key.npos) {
      return error(Code::kUnsupported, "{}: the key '{:.60}' has no way to be written in this template's calls",
                   tool_title(tool), key);
    }
    members.emplace_back(key, schema);
  }
  std::ranges::reverse(members);
  for (const auto& [key, schema] : members) {
    EBB_ASSIGN_OR_RETURN(const std::string value, write_value(arguments.parameters, key, schema));
    const std::string member =
        rules.grammar().add_fresh(fmt::format("{} {}", grammar_literal(key + std::string(behind_key)), value));
    const bool may_miss = !arguments.is_required(key);
    const std::string behind = next;
    first = rules.grammar().add_fresh(fmt::format("{} {}{}", member, behind, may_miss ? " | " + first : ""));
    next = rules.grammar().add_fresh(
        fmt::format("{} {} {}{}", grammar_literal(between), member, behind, may_miss ? " | " + behind : ""));
  }
  return first;
}

}  // namespace ebb
