// Hermes, Qwen 2.5 and 3, QwQ, Granite 4 and others:
//
//   <tool_call>
//   {"name": "read", "arguments": {"path": "a.c"}}
//   </tool_call>
#include "chat/calls/call_format.h"
#include "chat/calls/call_object.h"
#include "chat/calls/call_rules.h"

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
    raw_.finish(events);
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

class HermesCalls : public CallFormat {
 public:
  std::string_view name() const override { return "hermes"; }
  // Others write <tool_call> too, around or inside forms of their own.
  bool is_taught_by(std::string_view source) const override {
    return source.find(kHermesOpen) != source.npos && source.find("arguments") != source.npos &&
           source.find("<arg_key>") == source.npos && source.find("<tool_calls>") == source.npos &&
           source.find("minimax") == source.npos;
  }
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = kHermesOpen}};
    return kOpeners;
  }
  std::vector<std::string_view> marks() const override { return {kHermesOpen, kHermesClose}; }
  std::string write(const std::vector<WrittenCall>& calls) const override {
    std::string text;
    for (const WrittenCall& call : calls) {
      text += fmt::format("{}<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>",
                          text.empty() ? "" : "\n", call.name, call.arguments);
    }
    return text;
  }
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& /*tools*/) const override {
    return std::make_unique<HermesReader>();
  }
  Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools, bool parallel) const override {
    return add_object_calls(
        rules, tools, {.before = "<tool_call>\n", .after = "\n</tool_call>", .between = "\n", .parallel = parallel});
  }
};

}  // namespace

const CallFormat& hermes_calls() {
  static const HermesCalls kFormat;
  return kFormat;
}

}  // namespace ebb
