// Mistral, three ages of it:
//
//   [TOOL_CALLS][{"name": "read", "arguments": {"path": "a.c"}, "id": "k3VdTz01q"}]     Nemo
//   [TOOL_CALLS]read[ARGS]{"path": "a.c"}                                               Devstral, Ministral 3
//   [TOOL_CALLS]read[CALL_ID]k3VdTz01q[ARGS]{"path": "a.c"}                             Small 3.2
//
// One reader takes them all; they differ in what a grammar forces.
#include "chat/calls/call_object.h"
#include "chat/calls/form_calls.h"

namespace ebb {
namespace {

constexpr std::string_view kMistralOpen = "[TOOL_CALLS]";
constexpr std::string_view kArguments = "[ARGS]";
constexpr std::string_view kCallId = "[CALL_ID]";

class MistralReader : public CallReader {
 public:
  Step take(char c, CallEvents& events) override {
    switch (state_) {
      case State::kBefore: return take_before(c, events);
      case State::kItem:
        if (is_call_space(c)) return Step::kHeld;
        object_ = CallObject();
        state_ = State::kObject;
        return take_object(c, events);
      case State::kObject: return take_object(c, events);
      case State::kBetween:
        if (is_call_space(c)) return Step::kHeld;
        if (c == ']') return Step::kDone;
        state_ = State::kItem;
        return c == ',' ? Step::kHeld : Step::kRefused;
      case State::kName:
      case State::kId: return take_word(c, events);
      case State::kMark: return take_mark(c);
      case State::kValue:
      case State::kInValue: return take_value(c, events);
      case State::kRaw: break;
    }
    (void)raw_.take(c, events);
    return Step::kTaken;
  }

  bool finish(CallEvents& events) override {
    if (state_ == State::kObject) object_.finish(events);
    return state_ == State::kBetween;
  }

 private:
  enum class State { kBefore, kItem, kObject, kBetween, kName, kMark, kId, kValue, kInValue, kRaw };

  Step take_before(char c, CallEvents& events) {
    if (is_call_space(c)) return Step::kHeld;
    state_ = c == '[' ? State::kItem : State::kName;
    return c == '[' ? Step::kHeld : take_word(c, events);
  }

  Step take_object(char c, CallEvents& events) {
    switch (object_.take(c, events)) {
      case CallObject::Step::kHeld: return Step::kHeld;
      case CallObject::Step::kTaken: return Step::kTaken;
      case CallObject::Step::kDone: state_ = State::kBetween; return Step::kTaken;
      case CallObject::Step::kBroken: state_ = State::kRaw; return Step::kTaken;
      case CallObject::Step::kRefused: break;
    }
    return Step::kRefused;
  }

  // A name or an id, up to a mark; some models leave the mark in front of the arguments out.
  Step take_word(char c, CallEvents& events) {
    if (c == '[' || c == '{') {
      if (word_.empty()) return Step::kRefused;
      (state_ == State::kName ? name_ : id_) = std::exchange(word_, {});
      state_ = c == '[' ? State::kMark : State::kValue;
      return c == '[' ? take_mark(c) : take_value(c, events);
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F || c == '<' || c == '"') return Step::kRefused;
    word_ += c;
    return word_.size() > CallLimits::kMaxNameBytes ? Step::kRefused : Step::kHeld;
  }

  Step take_mark(char c) {
    word_ += c;
    if (word_ == kArguments) {
      state_ = State::kValue;
    } else if (word_ == kCallId && id_.empty()) {
      word_.clear();
      state_ = State::kId;
    } else if (!kArguments.starts_with(word_) && !kCallId.starts_with(word_)) {
      return Step::kRefused;
    }
    return Step::kHeld;
  }

  Step take_value(char c, CallEvents& events) {
    if (state_ == State::kValue) {
      if (is_call_space(c)) return Step::kHeld;
      if (c != '{') return Step::kRefused;
      events.begin(name_, id_);
      state_ = State::kInValue;
    }
    return arguments_.take(c, events);
  }

  State state_ = State::kBefore;
  CallObject object_;
  UnclosedArguments arguments_;
  std::string word_;  // the name, id or mark that is being read
  std::string name_;
  std::string id_;
  RawArguments raw_{""};  // no closing mark: up to the end
};

// What of a template's marks tells an age.
struct MistralAge {
  std::string_view name;
  std::string_view mark;
};

class MistralCalls final : public FormCalls {
 public:
  MistralCalls(CallForm form, const MistralAge& age) : FormCalls(std::move(form), age.name, age.mark) {}

  bool is_taught_by(std::string_view source) const override {
    return source.find(kMistralOpen) != source.npos && FormCalls::is_taught_by(source);
  }
  // Of all ages, as they are read.
  std::vector<std::string_view> marks() const override { return {kMistralOpen, kArguments, kCallId}; }
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& /*tools*/) const override {
    return std::make_unique<MistralReader>();
  }
};

}  // namespace

const CallFormat& mistral_list_calls() {
  static const MistralCalls kFormat({.open = "[TOOL_CALLS][",
                                     .between = ", ",
                                     .close = "]",
                                     .call = object_call("", "arguments", "id", ""),
                                     .keys = CallKeys{.name = "name", .arguments = "arguments"}},
                                    {.name = "mistral_list", .mark = kMistralOpen});
  return kFormat;
}

const CallFormat& mistral_named_calls() {
  using Kind = CallPiece::Kind;
  static const MistralCalls kFormat({.call = {{.text = std::string(kMistralOpen)},
                                              {.kind = Kind::kName},
                                              {.text = std::string(kArguments)},
                                              {.kind = Kind::kArguments}}},
                                    {.name = "mistral_named", .mark = kArguments});
  return kFormat;
}

const CallFormat& mistral_named_id_calls() {
  using Kind = CallPiece::Kind;
  static const MistralCalls kFormat({.call = {{.text = std::string(kMistralOpen)},
                                              {.kind = Kind::kName},
                                              {.text = std::string(kCallId)},
                                              {.kind = Kind::kId},
                                              {.text = std::string(kArguments)},
                                              {.kind = Kind::kArguments}}},
                                    {.name = "mistral_named_id", .mark = kCallId});
  return kFormat;
}

}  // namespace ebb
