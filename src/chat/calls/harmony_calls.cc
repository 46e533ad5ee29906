// gpt-oss (harmony): each call is a message of its own, to the tool,
//
//   <|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a.c"}<|call|>
//
// with the recipient in front of the channel or behind it; the prompt ends with <|start|>assistant.
#include "chat/calls/form_calls.h"
#include "chat/calls/json_scanner.h"

namespace ebb {
namespace {

constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kCallEnd = "<|call|>";

class HarmonyReader : public CallReader {
 public:
  Step take(char c, CallEvents& events) override {
    switch (state_) {
      case State::kName: return take_name(c);
      case State::kHeader: return take_header(c);
      case State::kValue: return take_value(c, events);
      case State::kRaw: return raw_.take(c, events) ? Step::kDone : Step::kTaken;
      case State::kEnd: break;
    }
    if (held_.empty() && is_call_space(c)) return Step::kHeld;
    held_ += c;
    if (held_ == kCallEnd) return Step::kDone;
    return kCallEnd.starts_with(held_) ? Step::kHeld : Step::kRefused;
  }

  bool finish(CallEvents& /*events*/) override { return state_ == State::kEnd; }
  std::size_t n_held() const override { return raw_.n_held(); }

 private:
  enum class State { kName, kHeader, kValue, kRaw, kEnd };

  Step take_name(char c) {
    if (c == '<' || is_call_space(c)) {
      if (name_.empty()) return Step::kRefused;
      state_ = State::kHeader;
      held_ = c;
      return Step::kHeld;
    }
    name_ += c;
    return name_.size() > CallLimits::kMaxNameBytes ? Step::kRefused : Step::kHeld;
  }

  // Channel and content type, up to <|message|>.
  Step take_header(char c) {
    held_ += c;
    if (held_.ends_with(kMessage)) {
      held_.clear();
      state_ = State::kValue;
      return Step::kHeld;
    }
    return held_.size() > CallLimits::kMaxNameBytes ? Step::kRefused : Step::kHeld;
  }

  Step take_value(char c, CallEvents& events) {
    if (!begun_) {
      if (is_call_space(c)) return Step::kHeld;
      if (c != '{') return Step::kRefused;
      events.begin(name_);
      begun_ = true;
    }
    const JsonScanner::Step step = scanner_.take(c);
    events.arguments({&c, 1});
    if (step == JsonScanner::Step::kEnd) {
      events.end();
      state_ = State::kEnd;
    } else if (step != JsonScanner::Step::kMore) {
      state_ = State::kRaw;
    }
    return Step::kTaken;
  }

  State state_ = State::kName;
  std::string name_;
  std::string held_;
  bool begun_ = false;
  JsonScanner scanner_;
  RawArguments raw_{kCallEnd};
};

class HarmonyCalls final : public FormCalls {
 public:
  // One a reply: generation ends behind each.
  HarmonyCalls()
      : FormCalls({.call = {{.text = "<|channel|>commentary to=functions."},
                            {.kind = CallPiece::Kind::kName},
                            {.text = " <|constrain|>json<|message|>"},
                            {.kind = CallPiece::Kind::kArguments}},
                   .parallel = false},
                  "harmony") {}

  bool is_taught_by(std::string_view source) const override {
    return source.find("<|channel|>commentary") != source.npos && source.find(kCallEnd) != source.npos;
  }
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {
        {.text = "<|channel|>commentary to=functions."},
        {.text = "<|start|>assistant<|channel|>commentary to=functions."},
        {.text = "<|start|>assistant to=functions."},
        {.text = "to=functions.", .only_first = true},
    };
    return kOpeners;
  }
  std::vector<std::string_view> marks() const override {
    return {"<|start|>", "<|channel|>", "<|constrain|>", kMessage, kCallEnd, "<|end|>"};
  }
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& /*tools*/) const override {
    return std::make_unique<HarmonyReader>();
  }
};

}  // namespace

const CallFormat& harmony_calls() {
  static const HarmonyCalls kFormat;
  return kFormat;
}

}  // namespace ebb
