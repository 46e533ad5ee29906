#include "chat/same_reply.h"

#include <algorithm>
#include <optional>

#include "chat/calls/json_scanner.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

bool are_same_arguments(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = parse_json(a);
  const auto second = parse_json(b);
  // Members of a plain json have no order.
  return first.ok() && second.ok() && nlohmann::json(*first) == nlohmann::json(*second);
}

bool are_same_calls(const ReplyCall& a, const ReplyCall& b) {
  return a.name == b.name && are_same_arguments(a.arguments, b.arguments);
}

// A call whose arguments stand in the text as they were read.
struct StandingCall {
  ParsedReply in_front;
  std::string name;
  std::size_t begin = 0;  // of its arguments
  std::size_t end = 0;
  bool complete = false;
};

// Nothing: arguments come in tags, in a string, or not yet.
std::optional<StandingCall> find_standing_call(const ReplyRules& rules, std::string_view text, std::size_t n) {
  StandingCall call;
  std::string arguments;
  ReplyParser parser(rules);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const ReplyDelta& delta : parser.push(text.substr(i, 1))) {
      const bool is_of_call = delta.kind == ReplyDelta::Kind::kCallBegin ||
                              delta.kind == ReplyDelta::Kind::kCallArguments ||
                              delta.kind == ReplyDelta::Kind::kCallEnd;
      if (call.name.empty() && !(is_of_call && delta.call == n)) {
        add_delta(call.in_front, delta);
      } else if (is_of_call && delta.call == n) {
        if (delta.kind == ReplyDelta::Kind::kCallBegin) call.name = delta.text;
        if (delta.kind == ReplyDelta::Kind::kCallArguments && arguments.empty()) call.begin = i;
        if (delta.kind == ReplyDelta::Kind::kCallArguments) arguments += delta.text;
        if (delta.kind == ReplyDelta::Kind::kCallEnd) call.complete = true;
      }
    }
  }
  call.end = call.begin + arguments.size();
  const bool stands = arguments.starts_with('{') && text.substr(call.begin, arguments.size()) == arguments;
  if (!stands || (call.begin > 0 && text[call.begin - 1] == '"')) return std::nullopt;
  return call;
}

// Text that was not given out yet is none: where a call breaks off, it may be a mark's beginning.
std::size_t count_begun_calls(const ReplyRules& rules, std::string_view text) {
  ReplyParser parser(rules);
  std::size_t n = 0;
  for (const ReplyDelta& delta : parser.push(text)) {
    if (delta.kind == ReplyDelta::Kind::kCallBegin) ++n;
  }
  return n;
}

using Places = std::vector<std::pair<std::size_t, std::size_t>>;

// Two texts that begin with a JSON object, side by side:
//
//   {"a":   1, "b": "x  y          places between two of its bytes that are no white space: behind the first, behind all
//   {"a":1,"b":"x  y"}             the space of either, and all in between of one of them
class JsonWalk {
 public:
  JsonWalk(std::string_view a, std::string_view b) : a_(a), b_(b) {}

  // Up to where they differ.
  Places walk() {
    bool goes_on = true;
    while (goes_on && pass_space() && n_a_ < a_.size() && n_b_ < b_.size() && a_[n_a_] == b_[n_b_]) {
      const JsonScanner::Step step = scanner_.take(a_[n_a_]);
      if (step != JsonScanner::Step::kMore && step != JsonScanner::Step::kEnd) break;
      pass_byte();
      goes_on = step == JsonScanner::Step::kMore;
    }
    return std::move(places_);
  }

 private:
  static bool is_mark(char c) { return std::string_view("{}[]:,\"").find(c) != std::string_view::npos; }

  // False where the space tells two words apart that are one in the other text, or may be.
  bool pass_space() {
    if (in_string_) return true;
    const std::size_t to_a = end_of_space(a_, n_a_);
    const std::size_t to_b = end_of_space(b_, n_b_);
    if (to_a == n_a_ && to_b == n_b_) return true;
    const bool is_between_words = !is_mark(last_) && to_b < b_.size() && !is_mark(b_[to_b]);
    if (is_between_words) return false;
    for (std::size_t b = n_b_ + 1; b <= to_b; ++b) places_.emplace_back(n_a_, b);
    for (std::size_t a = n_a_ + 1; a <= to_a; ++a) {
      places_.emplace_back(a, n_b_);
      places_.emplace_back(a, to_b);
    }
    for (std::size_t b = n_b_ + 1; b < to_b; ++b) places_.emplace_back(to_a, b);
    n_a_ = to_a;
    n_b_ = to_b;
    return true;
  }

  void pass_byte() {
    last_ = a_[n_a_];
    const bool is_escaped = std::exchange(is_escaped_, in_string_ && !is_escaped_ && last_ == '\\');
    if (last_ == '"' && !is_escaped) in_string_ = !in_string_;
    places_.emplace_back(++n_a_, ++n_b_);
  }

  static std::size_t end_of_space(std::string_view text, std::size_t at) {
    while (at < text.size() && is_call_space(text[at])) ++at;
    return at;
  }

  std::string_view a_;
  std::string_view b_;
  std::size_t n_a_ = 0;
  std::size_t n_b_ = 0;
  char last_ = ':';
  bool in_string_ = false;
  bool is_escaped_ = false;
  JsonScanner scanner_;
  Places places_;
};

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> find_same_places(const ReplyRules& rules, std::string_view written,
                                                                  std::string_view said) {
  const std::size_t n_begun = count_begun_calls(rules, written);
  if (n_begun == 0) return {};
  const auto a = find_standing_call(rules, written, n_begun - 1);
  const auto b = find_standing_call(rules, said, n_begun - 1);
  // What is no JSON says what it says by its bytes.
  if (!a || !b || !b->complete || a->name != b->name || a->in_front.reasoning != b->in_front.reasoning ||
      a->in_front.content != b->in_front.content ||
      !std::ranges::equal(a->in_front.calls, b->in_front.calls, are_same_calls)) {
    return {};
  }
  Places places =
      JsonWalk(written.substr(a->begin, a->end - a->begin), said.substr(b->begin, b->end - b->begin)).walk();
  for (auto& [n_written, n_said] : places) {
    n_written += a->begin;
    n_said += b->begin;
  }
  // Behind whole arguments the same bytes are what they are in both.
  const bool is_whole = a->complete && places.back() == std::pair(a->end, b->end);
  for (std::size_t n = 0; is_whole && a->end + n < written.size() && b->end + n < said.size(); ++n) {
    if (written[a->end + n] != said[b->end + n]) break;
    places.emplace_back(a->end + n + 1, b->end + n + 1);
  }
  return places;
}

bool is_same_reply(const ReplyRules& rules, std::string_view written, std::string_view said) {
  const ParsedReply a = parse_reply(rules, written);
  const ParsedReply b = parse_reply(rules, said);
  return a.reasoning == b.reasoning && a.content == b.content && std::ranges::equal(a.calls, b.calls, are_same_calls);
}

}  // namespace ebb
