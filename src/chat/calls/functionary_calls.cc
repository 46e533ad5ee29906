// Functionary 3.2: a reply is parts, each behind >>> with whom it is for. What is for all is said; else it is a call,
//
//   >>>all
//   Let me look.>>>read
//   {"path": "a.c"}
//
// and the prompt has written the first >>> already (find_begun_mark). Text may say >>> as well, as Python's prompt does: it opens a call only in
// front of a name, a line break and an object.
#include <algorithm>

#include "chat/calls/form_calls.h"

namespace ebb {
namespace {

constexpr std::string_view kPartBegin = ">>>";

std::string first_letter(std::string_view name) {
  std::size_t n = std::min<std::size_t>(1, name.size());
  while (n < name.size() && (static_cast<unsigned char>(name[n]) & 0xC0U) == 0x80U) ++n;
  return std::string(name.substr(0, n));
}

class FunctionaryReader : public CallReader {
 public:
  Step take(char c, CallEvents& events) override {
    switch (state_) {
      case State::kName: return take_name(c);
      case State::kBefore:
        if (is_call_space(c)) return Step::kHeld;
        if (c != '{') return Step::kRefused;
        events.begin(name_);
        state_ = State::kValue;
        break;
      case State::kValue: break;
    }
    return arguments_.take(c, events);
  }

  bool finish(CallEvents& /*events*/) override { return state_ == State::kValue; }

 private:
  enum class State { kName, kBefore, kValue };

  Step take_name(char c) {
    if (c == '\n' && !name_.empty()) {
      state_ = State::kBefore;
      return Step::kHeld;
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool is_name = byte > 0x20 && byte != 0x7F && c != '>' && c != '{' && c != '"';
    if (!is_name || name_.size() >= CallLimits::kMaxNameBytes) return Step::kRefused;
    name_ += c;
    return Step::kHeld;
  }

  State state_ = State::kName;
  std::string name_;
  UnclosedArguments arguments_;
};

class FunctionaryCalls final : public FormCalls {
 public:
  FunctionaryCalls()
      : FormCalls({.open = std::string(kPartBegin),
                   .between = std::string(kPartBegin),
                   .call = {{.text = ""},
                            {.kind = CallPiece::Kind::kName},
                            {.text = "\n"},
                            {.kind = CallPiece::Kind::kArguments}}},
                  "functionary", ">>>all") {}

  const std::vector<CallOpener>& openers() const override {
    static const std::vector<CallOpener> kOpeners = {{.text = kPartBegin}};
    return kOpeners;
  }
  std::string_view forced_opener() const override { return kPartBegin; }
  std::vector<std::string_view> marks() const override { return {kPartBegin}; }
  std::vector<std::string> text_ends(const std::vector<Tool>& tools) const override {
    std::vector<std::string> ends;
    for (const Tool& tool : tools) {
      std::string end = std::string(kPartBegin) + first_letter(tool.name);
      if (std::ranges::find(ends, end) == ends.end()) ends.push_back(std::move(end));
    }
    return ends;
  }
  std::unique_ptr<CallReader> make_reader(std::size_t /*opener*/, const std::vector<Tool>& /*tools*/) const override {
    return std::make_unique<FunctionaryReader>();
  }
};

}  // namespace

const CallFormat& functionary_calls() {
  static const FunctionaryCalls kFormat;
  return kFormat;
}

}  // namespace ebb
