#include "chat/calls/call_object.h"

#include <utility>

namespace ebb {
namespace {

// Keys that an object which may as well be an answer in JSON is allowed to have.
bool is_call_key(std::string_view key) {
  return key == "name" || key == "parameters" || key == "arguments" || key == "type" || key == "id";
}

}  // namespace

CallObject::Step CallObject::take(char c, CallEvents& events) {
  switch (state_) {
    case State::kInKey: return take_key(c);
    case State::kName:
      if (!reader_.take(c, name_)) return name_.size() > CallLimits::kMaxNameBytes ? Step::kRefused : undecided();
      has_name_ = true;
      state_ = State::kNext;
      if (name_.empty() || !is_known()) return Step::kRefused;
      if (!whole_) return undecided();
      begin(events);
      return arguments_ended(events);
    case State::kText: return take_text(c, events);
    case State::kArguments: return take_arguments(c, events);
    case State::kOther: return take_other(c, events);
    default: break;
  }
  if (state_ == State::kOpen) {
    if (c != '{') return Step::kRefused;
    state_ = State::kFirstKey;
    return undecided();
  }
  if (is_call_space(c)) return undecided();
  switch (state_) {
    case State::kFirstKey:
    case State::kKey:
      if (c != '"') return Step::kRefused;
      key_.clear();
      reader_ = {};
      state_ = State::kInKey;
      return undecided();
    case State::kColon:
      if (c != ':') return Step::kRefused;
      state_ = State::kValue;
      return undecided();
    case State::kValue: return take_value(c, events);
    default: return take_next(c, events);
  }
}

CallObject::Step CallObject::take_key(char c) {
  if (reader_.take(c, key_)) {
    state_ = State::kColon;
    if (rules_.known != nullptr && !is_call_key(key_)) return Step::kRefused;
  }
  return key_.size() > CallLimits::kMaxNameBytes ? Step::kRefused : undecided();
}

// Values that stand in for objects ("…", null, numbers) are collected, all others stream once the name is known.
CallObject::Step CallObject::take_value(char c, CallEvents& events) {
  scanner_ = {};
  reader_ = {};
  const bool is_arguments = rules_.is_arguments(key_) && value_ == Value::kNone;
  if (key_ == rules_.name_key && !has_name_ && c == '"') {
    state_ = State::kName;
    return undecided();
  }
  if (!is_arguments) {
    state_ = State::kOther;
    return take_other(c, events);
  }
  if (has_name_) begin(events);
  if (c == '"') {
    value_ = Value::kUnpacked;
    state_ = State::kText;
    return undecided();
  }
  value_ = has_name_ && (c == '{' || c == '[') ? Value::kStreamed : Value::kCollected;
  state_ = State::kArguments;
  return take_arguments(c, events);
}

bool CallObject::is_known() const { return rules_.known == nullptr || find_tool(*rules_.known, name_) != nullptr; }

void CallObject::begin(CallEvents& events) {
  begun_ = true;
  events.begin(name_);
}

CallObject::Step CallObject::arguments_ended(CallEvents& events) {
  whole_ = true;
  state_ = State::kNext;
  if (!begun_) return Step::kHeld;
  if (collected_ == "null" || (collected_.empty() && value_ != Value::kStreamed && value_ != Value::kUnpacked)) {
    collected_ = "{}";
  }
  events.arguments(std::exchange(collected_, {}));
  events.end();
  ended_ = true;
  return Step::kTaken;
}

CallObject::Step CallObject::take_text(char c, CallEvents& events) {
  const bool is_end = reader_.take(c, collected_);
  if (begun_) events.arguments(std::exchange(collected_, {}));
  return is_end ? arguments_ended(events) : undecided();
}

CallObject::Step CallObject::take_arguments(char c, CallEvents& events) {
  const JsonScanner::Step step = scanner_.take(c);
  if (step == JsonScanner::Step::kEndBefore) {
    const Step ended = arguments_ended(events);
    return ended == Step::kRefused ? ended : take(c, events);
  }
  if (value_ == Value::kStreamed) {
    events.arguments({&c, 1});
  } else {
    collected_ += c;
  }
  if (step == JsonScanner::Step::kBad) {
    if (!begun_) return Step::kRefused;
    events.arguments(std::exchange(collected_, {}));
    return Step::kBroken;
  }
  if (step == JsonScanner::Step::kEnd) return arguments_ended(events);
  // Nothing streams out of a number that never ends.
  if (collected_.size() > CallLimits::kMaxHeldBytes) {
    events.arguments(std::exchange(collected_, {}));
    return begun_ ? Step::kBroken : Step::kRefused;
  }
  return undecided();
}

CallObject::Step CallObject::take_other(char c, CallEvents& events) {
  switch (scanner_.take(c)) {
    case JsonScanner::Step::kMore: return undecided();
    case JsonScanner::Step::kEnd: state_ = State::kNext; return undecided();
    case JsonScanner::Step::kEndBefore: state_ = State::kNext; return take(c, events);
    case JsonScanner::Step::kBad: break;
  }
  return Step::kRefused;
}

CallObject::Step CallObject::take_next(char c, CallEvents& events) {
  if (c == ',') {
    state_ = State::kKey;
    return undecided();
  }
  if (c != '}' || !has_name_) return Step::kRefused;
  if (!ended_) {
    if (rules_.known != nullptr) return Step::kRefused;
    begin(events);
    (void)arguments_ended(events);
  }
  return Step::kDone;
}

void CallObject::finish(CallEvents& events) {
  if (begun_) events.arguments(std::exchange(collected_, {}));
}

}  // namespace ebb
