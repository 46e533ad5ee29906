// GLM 4.5 to 4.7, Laguna:
//
//   <tool_call>read
//   <arg_key>path</arg_key>
//   <arg_value>a.c</arg_value>
//   </tool_call>
//
// with or without the line breaks. Strings stand as they are, everything else as JSON.
#include "chat/calls/call_format.h"
#include "chat/calls/call_rules.h"
#include "chat/calls/xml_value.h"

namespace ebb {
namespace {

constexpr std::string_view kGlmOpen = "<tool_call>";
constexpr std::string_view kGlmClose = "</tool_call>";
constexpr std::string_view kKeyBegin = "<arg_key>";
constexpr std::string_view kKeyEnd = "</arg_key>";
constexpr std::string_view kValueBegin = "<arg_value>";
constexpr std::string_view kValueEnd = "</arg_value>";

class GlmReader : public CallReader {
 public:
  explicit GlmReader(const std::vector<Tool>& tools) : tools_(tools) {}

  Step take(char c, CallEvents& events) override {
    switch (state_) {
      case State::kName: return take_name(c);
      case State::kFirstTag:
      case State::kTag: return take_tag(c, events);
      case State::kKey: return take_key(c);
      case State::kValueTag: return take_value_tag(c, events);
      case State::kValue: break;
    }
    return take_value(c, events);
  }

  bool finish(CallEvents& events) override {
    if (state_ == State::kValue) {
      arguments_.value(held_, events);
      arguments_.finish(events);
      held_.clear();
    }
    return false;
  }
  std::size_t n_held() const override { return held_.size() * (state_ == State::kValue) + arguments_.n_held(); }

 private:
  enum class State { kName, kFirstTag, kTag, kKey, kValueTag, kValue };

  Step take_name(char c) {
    if (c == '<' || (is_call_space(c) && !name_.empty())) {
      if (name_.empty()) return Step::kRefused;
      state_ = State::kFirstTag;
      held_ = c == '<' ? "<" : "";
      return Step::kHeld;
    }
    if (is_call_space(c)) return Step::kHeld;
    name_ += c;
    const bool is_name = static_cast<unsigned char>(c) > 0x20 && c != '{' && c != '"' && c != '>';
    return is_name && name_.size() <= CallLimits::kMaxNameBytes ? Step::kHeld : Step::kRefused;
  }

  // A key's tag, or the call's end. The first one makes it a call.
  Step take_tag(char c, CallEvents& events) {
    if (held_.empty() && is_call_space(c)) return Step::kHeld;
    held_ += c;
    if (held_ != kKeyBegin && held_ != kGlmClose) {
      return kKeyBegin.starts_with(held_) || kGlmClose.starts_with(held_) ? Step::kHeld : Step::kRefused;
    }
    if (state_ == State::kFirstTag) {
      events.begin(name_);
      arguments_.open(find_tool(tools_, name_), events);
    }
    const bool is_end = held_ == kGlmClose;
    held_.clear();
    name_.clear();
    state_ = State::kKey;
    if (!is_end) return Step::kTaken;
    arguments_.close(events);
    return Step::kDone;
  }

  Step take_key(char c) {
    name_ += c;
    if (name_.size() > CallLimits::kMaxNameBytes) return Step::kRefused;
    if (!name_.ends_with(kKeyEnd)) return Step::kHeld;
    name_.resize(name_.size() - kKeyEnd.size());
    state_ = State::kValueTag;
    return name_.empty() ? Step::kRefused : Step::kHeld;
  }

  Step take_value_tag(char c, CallEvents& events) {
    if (held_.empty() && is_call_space(c)) return Step::kHeld;
    held_ += c;
    if (held_ != kValueBegin) return kValueBegin.starts_with(held_) ? Step::kHeld : Step::kRefused;
    held_.clear();
    arguments_.begin_value(name_, events);
    state_ = State::kValue;
    return Step::kTaken;
  }

  Step take_value(char c, CallEvents& events) {
    held_ += c;
    std::size_t n_certain = 0;
    while (!kValueEnd.starts_with(std::string_view(held_).substr(n_certain))) ++n_certain;
    arguments_.value(std::string_view(held_).substr(0, n_certain), events);
    held_.erase(0, n_certain);
    if (held_ != kValueEnd) return Step::kTaken;
    held_.clear();
    arguments_.end_value(events);
    state_ = State::kTag;
    return Step::kTaken;
  }

  const std::vector<Tool>& tools_;
  XmlArguments arguments_;
  State state_ = State::kName;
  std::string name_;  // of the function, then of the argument
  std::string held_;  // a tag so far
};

class GlmCalls : public CallFormat {
 public:
  std::string_view name() const override { return "glm"; }
  bool is_taught_by(std::string_view source) const override {
    return source.find(kGlmOpen) != source.npos && source.find(kKeyBegin) != source.npos;
  }
  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = kGlmOpen}};
    return kOpeners;
  }
  std::vector<std::string_view> marks() const override {
    return {kGlmOpen, kGlmClose, kKeyBegin, kKeyEnd, kValueBegin, kValueEnd};
  }
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& tools) const override {
    return std::make_unique<GlmReader>(tools);
  }
  Result<std::string> add_call_rules(SchemaRules& rules, const std::vector<Tool>& tools, bool parallel) const override {
    return add_tagged_calls(rules, tools,
                            {.open = std::string(kGlmOpen),
                             .behind_name = "\n",
                             .before_key = std::string(kKeyBegin),
                             .behind_key = std::string(kKeyEnd) + "\n" + std::string(kValueBegin),
                             .value_end = std::string(kValueEnd) + "\n",
                             .close = std::string(kGlmClose),
                             .between = "\n",
                             .parallel = parallel});
  }
};

}  // namespace

const CallFormat& glm_calls() {
  static const GlmCalls kFormat;
  return kFormat;
}

}  // namespace ebb
