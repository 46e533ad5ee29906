// Hermes, Qwen 2.5 and 3, QwQ, Granite 4 and others:
//
//   <tool_call>
//   {"name": "read", "arguments": {"path": "a.c"}}
//   </tool_call>
#include "chat/calls/call_object.h"
#include "chat/calls/form_calls.h"

namespace ebb {
namespace {

constexpr std::string_view kHermesOpen = "<tool_call>";
constexpr std::string_view kHermesClose = "</tool_call>";

class HermesReader : public CallReader {
 public:
  Step take(char c, CallEvents& events) override {
    switch (state_) {
      case State::kObject: return take_object(c, events);
      case State::kRaw: return raw_.take(c, events) ? Step::kDone : Step::kTaken;
      case State::kBefore: break;
      case State::kAfter: return take_after(c, events);
    }
    if (is_call_space(c)) return Step::kHeld;
    state_ = State::kObject;
    return take_object(c, events);
  }

  bool finish(CallEvents& events) override {
    if (state_ == State::kObject) object_.finish(events);
    return state_ == State::kAfter;
  }
  std::size_t n_held() const override { return raw_.n_held(); }

 private:
  enum class State { kBefore, kObject, kRaw, kAfter };

  Step take_object(char c, CallEvents& events) {
    switch (object_.take(c, events)) {
      case CallObject::Step::kHeld: return Step::kHeld;
      case CallObject::Step::kTaken: return Step::kTaken;
      case CallObject::Step::kDone: state_ = State::kAfter; return Step::kTaken;
      case CallObject::Step::kBroken: state_ = State::kRaw; return Step::kTaken;
      case CallObject::Step::kRefused: break;
    }
    if (!object_.ended()) return Step::kRefused;
    state_ = State::kAfter;  // the object's last brace is missing, as small models like to
    return take_after(c, events);
  }

  // Space, then the closing mark, or another object.
  Step take_after(char c, CallEvents& events) {
    if (n_close_ == 0 && is_call_space(c)) return Step::kHeld;
    if (n_close_ == 0 && c == '{') {
      object_ = CallObject();
      state_ = State::kObject;
      return take_object(c, events);
    }
    if (c != kHermesClose[n_close_]) return Step::kRefused;
    return ++n_close_ == kHermesClose.size() ? Step::kDone : Step::kHeld;
  }

  State state_ = State::kBefore;
  CallObject object_;
  RawArguments raw_{kHermesClose};
  std::size_t n_close_ = 0;  // bytes of the closing mark so far
};

class HermesCalls final : public FormCalls {
 public:
  HermesCalls()
      : FormCalls({.between = "\n",
                   .call = object_call("<tool_call>\n", "arguments", "", "\n</tool_call>"),
                   .keys = CallKeys{.name = "name", .arguments = "arguments"}},
                  "hermes") {}

  // Others write <tool_call> too, around or inside forms of their own.
  bool is_taught_by(std::string_view source) const override {
    return source.find(kHermesOpen) != source.npos && source.find("arguments") != source.npos &&
           source.find("<arg_key>") == source.npos && source.find("<tool_calls>") == source.npos &&
           source.find("minimax") == source.npos;
  }
  // Which takes objects without a last brace, or several between two marks.
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& /*tools*/) const override {
    return std::make_unique<HermesReader>();
  }
};

}  // namespace

const CallFormat& hermes_calls() {
  static const HermesCalls kFormat;
  return kFormat;
}

}  // namespace ebb
