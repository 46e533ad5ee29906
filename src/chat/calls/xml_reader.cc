#include "chat/calls/xml_reader.h"

#include <array>
#include <utility>

namespace ebb {
namespace {

constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kParameterEnd = "</parameter>";
// White space between the tags at a value's end. More is part of the value.
constexpr std::size_t kMaxSpaceBytes = 64;

bool is_name_char(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '<' && c != '>'; }

}  // namespace

XmlReader::XmlReader(const XmlTags& tags, const std::vector<Tool>& tools, bool in_function)
    : tags_(tags), tools_(tools), state_(in_function ? State::kName : State::kTag) {}

CallReader::Step XmlReader::take(char c, CallEvents& events) {
  switch (state_) {
    case State::kTag: return take_tag(c, events);
    case State::kName: return take_name(c);
    case State::kKey: return take_key(c, events);
    case State::kValueBegin:
      state_ = State::kValue;
      if (c == '\n') return Step::kTaken;
      return take_value(c, events);
    case State::kValue: break;
  }
  return take_value(c, events);
}

CallReader::Step XmlReader::take_tag(char c, CallEvents& events) {
  if (tag_.empty() && is_call_space(c)) return Step::kHeld;
  tag_ += c;
  const auto may_be = [&](std::string_view tag) { return tag.starts_with(tag_); };
  if (place_ != Place::kInFunction) {
    if (tag_ == kFunction) {
      tag_.clear();
      state_ = State::kName;
      return Step::kHeld;
    }
    if (place_ == Place::kBehindFunction && tag_ == tags_.close) return Step::kDone;
    const bool more = may_be(kFunction) || (place_ == Place::kBehindFunction && may_be(tags_.close));
    return more ? Step::kHeld : Step::kRefused;
  }
  const bool is_parameter = tag_ == kParameter;
  if (!is_parameter && tag_ != kFunctionEnd && tag_ != tags_.close) {
    return may_be(kParameter) || may_be(kFunctionEnd) || may_be(tags_.close) ? Step::kHeld : Step::kRefused;
  }
  events.begin(name_);
  arguments_.open(find_tool(tools_, name_), events);
  const bool outer_too = tag_ == tags_.close;
  tag_.clear();
  name_.clear();
  if (!is_parameter) return close_function(events, outer_too);
  state_ = State::kKey;
  return Step::kTaken;
}

CallReader::Step XmlReader::close_function(CallEvents& events, bool outer_too) {
  arguments_.close(events);
  state_ = State::kTag;
  place_ = Place::kBehindFunction;
  return outer_too ? Step::kDone : Step::kTaken;
}

CallReader::Step XmlReader::take_name(char c) {
  if (c == '>' && !name_.empty()) {
    state_ = State::kTag;
    place_ = Place::kInFunction;
    return Step::kHeld;
  }
  if (!is_name_char(c) || name_.size() >= CallLimits::kMaxNameBytes) return Step::kRefused;
  name_ += c;
  return Step::kHeld;
}

CallReader::Step XmlReader::take_key(char c, CallEvents& events) {
  if (c == '>' && !name_.empty()) {
    arguments_.begin_value(std::exchange(name_, {}), events);
    state_ = State::kValueBegin;
    return Step::kTaken;
  }
  if (!is_name_char(c) || name_.size() >= CallLimits::kMaxNameBytes) return Step::kRefused;
  name_ += c;
  return Step::kHeld;
}

// value_ against: an optional line break, </parameter>, white space, one of the tags that may follow.
XmlReader::ValueEnd XmlReader::match_end() const {
  std::string_view rest = value_;
  if (rest.starts_with('\n')) rest.remove_prefix(1);
  if (!rest.starts_with(kParameterEnd)) return {.possible = kParameterEnd.starts_with(rest)};
  rest.remove_prefix(kParameterEnd.size());
  std::size_t n_space = 0;
  while (n_space < rest.size() && is_call_space(rest[n_space])) ++n_space;
  if (n_space > kMaxSpaceBytes) return {};
  rest.remove_prefix(n_space);
  for (const std::string_view tag : {kParameter, kFunctionEnd, tags_.close}) {
    if (rest == tag) return {.possible = true, .tag = tag, .parameter_closed = true};
    if (tag.starts_with(rest)) return {.possible = true, .tag = {}, .parameter_closed = true};
  }
  return {};
}

CallReader::Step XmlReader::take_value(char c, CallEvents& events) {
  value_ += c;
  ValueEnd end = match_end();
  std::size_t n_certain = 0;
  const std::string text = value_;
  while (!value_.empty() && !end.possible) {
    value_ = text.substr(++n_certain);
    end = match_end();
  }
  arguments_.value(std::string_view(text).substr(0, n_certain), events);
  if (end.tag.empty()) return Step::kTaken;
  value_.clear();
  arguments_.end_value(events);
  if (end.tag != kParameter) return close_function(events, end.tag == tags_.close);
  state_ = State::kKey;
  return Step::kTaken;
}

bool XmlReader::finish(CallEvents& events) {
  if (state_ == State::kValue) {
    const bool closed = match_end().parameter_closed;
    if (!closed) arguments_.value(std::exchange(value_, {}), events);
    if (closed) {
      arguments_.end_value(events);
    } else {
      arguments_.finish(events);
    }
  }
  return state_ == State::kTag && place_ == Place::kBehindFunction && (tag_.empty() || tags_.close.starts_with(tag_));
}

}  // namespace ebb
