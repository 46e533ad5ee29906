// Llama 3.x: the whole answer is one object, {"name": "read", "parameters": {"path": "a.c"}}, bare or behind
// <|python_tag|>. A bare object is a call only if it names a known tool, because an answer may be JSON as well. Models
// that call twice all the same write "; " between the objects.
#include "chat/calls/call_object.h"
#include "chat/calls/form_calls.h"

namespace ebb {
namespace {

class Llama3Reader : public CallReader {
 public:
  explicit Llama3Reader(const std::vector<Tool>* known) : known_(known), object_({.known = known}) {}

  // The bare form's opening mark is the object's first byte.
  void open(CallEvents& events) {
    state_ = State::kObject;
    (void)object_.take('{', events);
  }

  Step take(char c, CallEvents& events) override {
    switch (state_) {
      case State::kObject: return take_object(c, events);
      case State::kRaw: (void)raw_.take(c, events); return Step::kTaken;
      case State::kBetween:
        if (is_call_space(c) || (c == ';' && !after_semicolon_)) {
          after_semicolon_ = after_semicolon_ || c == ';';
          return Step::kHeld;
        }
        object_ = CallObject({.known = known_});
        break;
      case State::kBefore:
        if (is_call_space(c)) return Step::kHeld;
        break;
    }
    state_ = State::kObject;
    return take_object(c, events);
  }

  bool finish(CallEvents& events) override {
    if (state_ == State::kObject) object_.finish(events);
    return state_ == State::kBetween;
  }

 private:
  enum class State { kBefore, kObject, kRaw, kBetween };

  Step take_object(char c, CallEvents& events) {
    switch (object_.take(c, events)) {
      case CallObject::Step::kHeld: return Step::kHeld;
      case CallObject::Step::kTaken: return Step::kTaken;
      case CallObject::Step::kDone:
        state_ = State::kBetween;
        after_semicolon_ = false;
        return Step::kTaken;
      case CallObject::Step::kBroken: state_ = State::kRaw; return Step::kTaken;
      case CallObject::Step::kRefused: break;
    }
    return Step::kRefused;
  }

  const std::vector<Tool>* known_;
  State state_ = State::kBefore;
  CallObject object_;
  RawArguments raw_{""};
  bool after_semicolon_ = false;
};

class Llama3Calls final : public FormCalls {
 public:
  Llama3Calls()
      : FormCalls({.call = object_call("", "parameters", "", ""),
                   .keys = CallKeys{.name = "name", .arguments = "parameters"},
                   .parallel = false},
                  "llama3") {}

  bool is_taught_by(std::string_view source) const override {
    return source.find("<|start_header_id|>") != source.npos && source.find("\"parameters\": ") != source.npos;
  }
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = "<|python_tag|>"}, {.text = "{", .only_first = true}};
    return kOpeners;
  }
  // The form has none.
  std::string_view forced_opener() const override { return {}; }
  std::vector<std::string_view> marks() const override { return {openers().front().text}; }
  std::unique_ptr<CallReader> make_reader(std::size_t opener, const std::vector<Tool>& tools) const override {
    const bool bare = opener == 1;
    auto reader = std::make_unique<Llama3Reader>(bare ? &tools : nullptr);
    CallEvents none;
    if (bare) reader->open(none);
    return reader;
  }
};

}  // namespace

const CallFormat& llama3_calls() {
  static const Llama3Calls kFormat;
  return kFormat;
}

}  // namespace ebb
