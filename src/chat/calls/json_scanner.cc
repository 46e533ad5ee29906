#include "chat/calls/json_scanner.h"

namespace ebb {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_number(char c) { return ('0' <= c && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E'; }

}  // namespace

JsonScanner::Step JsonScanner::value_ended() {
  if (open_.empty()) return Step::kEnd;
  state_ = State::kAfter;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::open(char c) {
  if (open_.size() >= kMaxDepth) return Step::kBad;
  open_ += c;
  state_ = c == '{' ? State::kFirstKey : State::kFirstItem;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::close(char c) {
  if (open_.empty() || open_.back() != (c == '}' ? '{' : '[')) return Step::kBad;
  open_.pop_back();
  return value_ended();
}

JsonScanner::Step JsonScanner::take_value(char c) {
  if (c == '{' || c == '[') return open(c);
  if (c == '"') {
    is_key_ = false;
    state_ = State::kString;
  } else if (c == '-' || ('0' <= c && c <= '9')) {
    state_ = State::kNumber;
  } else if (c == 't' || c == 'f' || c == 'n') {
    word_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
    state_ = State::kWord;
  } else {
    return Step::kBad;
  }
  return Step::kMore;
}

JsonScanner::Step JsonScanner::take_after(char c) {
  if (is_space(c)) return Step::kMore;
  if (c != ',') return c == '}' || c == ']' ? close(c) : Step::kBad;
  state_ = open_.back() == '{' ? State::kKey : State::kValue;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::take(char c) {
  switch (state_) {
    case State::kString:
      if (c == '\\') state_ = State::kEscape;
      if (c != '"') return Step::kMore;
      if (!is_key_) return value_ended();
      state_ = State::kColon;
      return Step::kMore;
    case State::kEscape: state_ = State::kString; return Step::kMore;
    case State::kNumber:
      if (is_number(c)) return Step::kMore;
      if (open_.empty()) return Step::kEndBefore;
      state_ = State::kAfter;
      return take_after(c);
    case State::kWord:
      if (c != word_.front()) return Step::kBad;
      word_.remove_prefix(1);
      return word_.empty() ? value_ended() : Step::kMore;
    case State::kAfter: return take_after(c);
    default: break;
  }
  if (is_space(c)) return open_.empty() ? Step::kBad : Step::kMore;
  switch (state_) {
    case State::kFirstItem: return c == ']' ? close(c) : take_value(c);
    case State::kFirstKey:
      if (c == '}') return close(c);
      [[fallthrough]];
    case State::kKey:
      if (c != '"') return Step::kBad;
      is_key_ = true;
      state_ = State::kString;
      return Step::kMore;
    case State::kColon:
      if (c != ':') return Step::kBad;
      state_ = State::kValue;
      return Step::kMore;
    default: return take_value(c);
  }
}

}  // namespace ebb
