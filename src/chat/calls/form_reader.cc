#include "chat/calls/form_reader.h"

#include <algorithm>
#include <utility>

#include "base/split_text.h"

namespace ebb {
namespace {

// White space between the tags at a value's end. More is part of the value.
constexpr std::size_t kMaxSpaceBytes = 64;

std::string squeezed(std::string_view text) {
  std::string rest;
  std::ranges::copy_if(text, std::back_inserter(rest), [](char c) { return !is_call_space(c); });
  return rest;
}

std::size_t n_leading_space(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_call_space(text[n])) ++n;
  return n;
}

std::size_t n_trailing_space(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_call_space(text[text.size() - 1 - n])) ++n;
  return n;
}

}  // namespace

FormReader::FormReader(const CallForm& form, const std::vector<Tool>& tools, std::string_view opener, bool in_call)
    : form_(form), tools_(tools) {
  const std::string text = (in_call ? "" : form.open) + form.call.front().text;
  const std::string rest = text.substr(n_leading_space(text) + opener.size());
  ways_ = {{.text = squeezed(rest), .goal = form.keys ? Goal::kObject : Goal::kPiece, .piece = 1}};
  if (form.keys) ways_.front().text += '{';
  if (ways_.front().text.empty()) {
    CallEvents none;
    (void)reach(Way(ways_.front()), none);
  }
}

CallReader::Step FormReader::take(char c, CallEvents& events) {
  switch (state_) {
    case State::kText: return take_text(c, events);
    case State::kObject: return take_object(c, events);
    case State::kName:
    case State::kId: return take_word(c, events);
    case State::kJson: return take_json(c, events);
    case State::kRaw:
      if (!raw_->take(c, events)) return Step::kTaken;
      ended_ = true;
      return piece_ == form_.call.size() ? Step::kDone : go_on(piece_ + 1, events);
    case State::kKey: return take_key(c, events);
    case State::kValueBegin:
      state_ = form_.tags->wrap_open.empty() ? State::kValue : State::kWrap;
      if (!value_space_.empty() && c == value_space_.front()) {
        value_space_.remove_prefix(1);
        if (!value_space_.empty()) state_ = State::kValueBegin;
        return Step::kTaken;
      }
      return take(c, events);
    case State::kWrap: return take_wrap(c, events);
    case State::kValue: break;
  }
  return take_value(c, events);
}

CallReader::Step FormReader::take_text(char c, CallEvents& events) {
  if (is_call_space(c)) return undecided();
  held_ += c;
  bool may_be = false;
  for (const Way& way : ways_) {
    if (way.text == held_) {
      held_.clear();
      return reach(Way(way), events);
    }
    may_be = may_be || way.text.starts_with(held_);
  }
  return may_be ? undecided() : Step::kRefused;
}

CallReader::Step FormReader::reach(const Way& way, CallEvents& events) {
  switch (way.goal) {
    case Goal::kDone:
      if (form_.tags && !ended_) close_arguments(events);
      return Step::kDone;
    case Goal::kPiece: return go_on(way.piece, events);
    case Goal::kKey:
      if (!begun_) begin_call(events);
      word_.clear();
      state_ = State::kKey;
      return Step::kTaken;
    case Goal::kObject: break;
  }
  begun_ = ended_ = false;
  object_ = CallObject({.name_key = form_.keys->name, .arguments_key = form_.keys->arguments});
  state_ = State::kObject;
  return take_object('{', events);
}

// The piece is what comes next; the one before it has been read.
CallReader::Step FormReader::go_on(std::size_t piece, CallEvents& events) {
  using Kind = CallPiece::Kind;
  // The text behind arguments in tags closes them.
  if (form_.tags && piece > 1 && form_.call[piece - 2].kind == Kind::kArguments) {
    close_arguments(events);
  }
  if (piece == 1) {
    begun_ = ended_ = false;
    name_.clear();
    id_.clear();
  }
  piece_ = piece;
  held_.clear();
  if (piece == form_.call.size()) {
    if (form_.close.empty()) return Step::kDone;
    expect_behind();
    return ended_ ? Step::kTaken : Step::kHeld;
  }
  switch (form_.call[piece].kind) {
    case Kind::kText:
      expect_next(piece);
      if (ways_.front().text.empty()) return go_on(piece + 1, events);
      break;
    case Kind::kName:
      state_ = State::kName;
      word_.clear();
      break;
    case Kind::kId:
    case Kind::kIndex:
      state_ = State::kId;
      word_.clear();
      break;
    case Kind::kArguments:
      scanner_ = {};
      state_ = State::kJson;
      if (form_.tags) expect_argument();
      break;
  }
  return ended_ ? Step::kTaken : undecided();
}

void FormReader::expect_next(std::size_t piece) {
  state_ = State::kText;
  ways_ = {{.text = squeezed(form_.call[piece].text), .goal = Goal::kPiece, .piece = piece + 1}};
}

void FormReader::expect_behind() {
  state_ = State::kText;
  const std::string brace = form_.keys ? "{" : "";
  const Goal goal = form_.keys ? Goal::kObject : Goal::kPiece;
  const std::string& first = form_.call.front().text;
  ways_ = {{.text = squeezed(form_.close), .goal = Goal::kDone}};
  for (const std::string& text : {squeezed(form_.between + first), squeezed(first)}) {
    if (!(text + brace).empty()) ways_.push_back({.text = text + brace, .goal = goal, .piece = 1});
  }
}

// Another argument, or the text behind them all; models forget it in front of what closes all calls.
void FormReader::expect_argument() {
  state_ = State::kText;
  const ArgumentTags& tags = *form_.tags;
  ways_ = {{.text = squeezed(form_.call[piece_ + 1].text), .goal = Goal::kPiece, .piece = piece_ + 2},
           {.text = squeezed(tags.before_key), .goal = Goal::kKey}};
  const std::string close = squeezed(form_.close);
  if (!close.empty()) ways_.push_back({.text = close, .goal = Goal::kDone});
}

void FormReader::begin_call(CallEvents& events) {
  events.begin(name_, id_);
  begun_ = true;
  if (form_.tags) arguments_.open(find_tool(tools_, name_), events);
}

void FormReader::close_arguments(CallEvents& events) {
  if (!begun_) begin_call(events);
  arguments_.close(events);
  ended_ = true;
}

// The whole object is one call; what stands behind it is the last piece.
CallReader::Step FormReader::take_object(char c, CallEvents& events) {
  piece_ = form_.call.size() - 1;
  switch (object_.take(c, events)) {
    case CallObject::Step::kHeld: return Step::kHeld;
    case CallObject::Step::kTaken: begun_ = true; return Step::kTaken;
    case CallObject::Step::kDone:
      begun_ = ended_ = true;
      (void)go_on(piece_, events);
      return piece_ == form_.call.size() && form_.close.empty() ? Step::kDone : Step::kTaken;
    case CallObject::Step::kBroken: begun_ = true; return read_raw(piece_);
    case CallObject::Step::kRefused: break;
  }
  if (!object_.ended()) return Step::kRefused;
  // The object's last brace is missing, as small models like to.
  begun_ = ended_ = true;
  const Step step = go_on(piece_, events);
  return step == Step::kDone || step == Step::kRefused ? step : take(c, events);
}

// Arguments that are none go on up to the text of the piece, or what closes all calls; a bracket closes too much.
CallReader::Step FormReader::read_raw(std::size_t piece) {
  constexpr std::size_t kLeastBytes = 3;
  std::string_view end = piece < form_.call.size() ? trimmed(form_.call[piece].text) : std::string_view();
  piece_ = piece;
  if (end.size() < kLeastBytes) {
    end = trimmed(form_.close);
    piece_ = form_.call.size();
  }
  raw_.emplace(end.size() < kLeastBytes ? std::string_view() : end);
  state_ = State::kRaw;
  return Step::kTaken;
}

// Whether the byte begins what comes behind a name, an id or a number.
bool FormReader::ends_word(char c) const {
  const auto begins = [&](std::string_view text) { return !text.empty() && c == text.front(); };
  for (std::size_t next = piece_ + 1; next < form_.call.size(); ++next) {
    const CallPiece& piece = form_.call[next];
    if (piece.kind == CallPiece::Kind::kText) {
      if (begins(piece.text)) return true;
      const std::string mark = squeezed(piece.text);
      if (!piece.text.empty() && is_call_space(piece.text.front()) && (is_call_space(c) || begins(mark))) return true;
      if (!mark.empty()) return false;
      continue;
    }
    if (!form_.tags) return c == '{';
    return is_call_space(c) || begins(squeezed(form_.tags->before_key)) || begins(squeezed(form_.call[next + 1].text));
  }
  return false;
}

// A name, or an id or number, up to what may come behind it.
CallReader::Step FormReader::take_word(char c, CallEvents& events) {
  if (word_.empty() && is_call_space(c)) return Step::kHeld;
  if (!ends_word(c)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F || word_.size() >= CallLimits::kMaxNameBytes) return Step::kRefused;
    word_ += c;
    return Step::kHeld;
  }
  if (word_.empty()) return Step::kRefused;
  if (form_.call[piece_].kind == CallPiece::Kind::kName) name_ = word_;
  if (form_.call[piece_].kind == CallPiece::Kind::kId) id_ = word_;
  word_.clear();
  const Step step = go_on(piece_ + 1, events);
  if (step == Step::kDone || step == Step::kRefused) return step;
  return take(c, events);
}

CallReader::Step FormReader::take_json(char c, CallEvents& events) {
  if (!begun_) {
    if (is_call_space(c)) return Step::kHeld;
    if (c != '{') return Step::kRefused;
    begin_call(events);
  }
  const JsonScanner::Step step = scanner_.take(c);
  events.arguments({&c, 1});
  if (step == JsonScanner::Step::kMore) return Step::kTaken;
  if (step == JsonScanner::Step::kEnd) {
    events.end();
    ended_ = true;
    return go_on(piece_ + 1, events);
  }
  return read_raw(piece_ + 1);
}

CallReader::Step FormReader::take_key(char c, CallEvents& events) {
  word_ += c;
  const std::string read = squeezed(word_);
  for (const auto& [type, text] : form_.tags->key_ends) {
    const std::string mark = squeezed(text);
    if (is_call_space(c) || read.size() <= mark.size() || !read.ends_with(mark)) continue;
    // White space in a key is its own.
    std::size_t n_key = word_.size();
    for (std::size_t n_mark = mark.size(); n_mark > 0; --n_key) n_mark -= is_call_space(word_[n_key - 1]) ? 0 : 1;
    const std::string key(trimmed(std::string_view(word_).substr(0, n_key)));
    if (form_.tags->tells_types()) {
      // Several types may share an end.
      JsonTypes types = 0;
      for (const auto& [other, end] : form_.tags->key_ends) types |= end == text ? other : 0;
      arguments_.begin_value(key, events, types);
    } else {
      arguments_.begin_value(key, events);
    }
    word_.clear();
    held_.clear();
    value_end_ = form_.tags->value_end;
    expect_argument();
    value_space_ = std::string_view(text).substr(text.size() - n_trailing_space(text));
    state_ = State::kValueBegin;
    return Step::kTaken;
  }
  if (word_.size() <= 2 * CallLimits::kMaxNameBytes) return Step::kTaken;
  events.arguments(std::exchange(word_, {}));
  return read_raw(piece_ + 1);
}

CallReader::Step FormReader::take_wrap(char c, CallEvents& events) {
  held_ += c;
  const std::string& wrap = form_.tags->wrap_open;
  if (held_ == wrap) {
    held_.clear();
    value_end_ = form_.tags->wrap_close + form_.tags->value_end;
    state_ = State::kValue;
    return Step::kTaken;
  }
  if (wrap.starts_with(held_)) return Step::kTaken;
  state_ = State::kValue;
  for (const char held : std::exchange(held_, {})) {
    if (const Step step = take(held, events); step != Step::kTaken) return step;
  }
  return Step::kTaken;
}

// The text against: the form's white space, the closing tag, white space, what may follow.
FormReader::ValueEnd FormReader::match_end(std::string_view text) const {
  std::string_view mark = value_end_;
  const std::string_view space = mark.substr(0, n_leading_space(mark));
  mark.remove_prefix(space.size());
  if (!space.empty()) {
    if (space.starts_with(text)) return {.possible = true};
    if (text.starts_with(space)) text.remove_prefix(space.size());
  }
  mark.remove_suffix(n_trailing_space(mark));
  if (!text.starts_with(mark)) return {.possible = mark.starts_with(text)};
  text.remove_prefix(mark.size());
  const std::string rest = squeezed(text);
  if (text.size() - rest.size() > kMaxSpaceBytes) return {};
  for (const Way& way : ways_) {
    if (way.text == rest) return {.possible = true, .closed = true, .way = &way};
    if (way.text.starts_with(rest)) return {.possible = true, .closed = true};
  }
  return {};
}

CallReader::Step FormReader::take_value(char c, CallEvents& events) {
  held_ += c;
  std::size_t n_certain = 0;
  ValueEnd end = match_end(held_);
  while (n_certain < held_.size() && !end.possible) end = match_end(std::string_view(held_).substr(++n_certain));
  arguments_.value(std::string_view(held_).substr(0, n_certain), events);
  held_.erase(0, n_certain);
  if (end.way == nullptr) return Step::kTaken;
  held_.clear();
  arguments_.end_value(events);
  return reach(Way(*end.way), events);
}

void FormReader::add_to_value(std::string_view text, CallEvents& events) {
  arguments_.value(std::exchange(held_, {}), events);
  arguments_.value(text, events);
}

bool FormReader::finish(CallEvents& events) {
  switch (state_) {
    case State::kValueBegin:
    case State::kWrap:
    case State::kValue:
      if (match_end(held_).closed) {
        arguments_.end_value(events);
      } else {
        // What is held is how the value's end begins, and nothing that it says.
        arguments_.finish(events);
      }
      held_.clear();
      return false;
    case State::kObject: object_.finish(events); return false;
    case State::kRaw: return false;
    default: break;
  }
  return ended_ && std::ranges::any_of(ways_, [&](const Way& way) { return way.text.starts_with(held_); });
}

std::size_t FormReader::n_held() const {
  return (state_ == State::kValue || state_ == State::kWrap ? held_.size() : 0) + arguments_.n_held() +
         (raw_ ? raw_->n_held() : 0);
}

}  // namespace ebb
