// FormReader: reads calls that are written in a CallForm, byte by byte.
//
// White space between the parts of a form may be more or less than the form has, except around values in tags, where it is the form's own
// or the value's. A value's closing tag counts only if what may follow it follows, so that a value may speak of tags itself. The marks
// around all calls may be missing at the end.
//
// Thread rule: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/call_form.h"
#include "chat/calls/call_object.h"
#include "chat/calls/call_reader.h"
#include "chat/calls/json_scanner.h"
#include "chat/calls/tool.h"
#include "chat/calls/xml_value.h"

namespace ebb {

class FormReader : public CallReader {
 public:
  // For the text behind `opener`, with which form.open begins, or the call where `in_call`. Form and tools must outlive the reader.
  FormReader(const CallForm& form, const std::vector<Tool>& tools, std::string_view opener, bool in_call);

  Step take(char c, CallEvents& events) override;
  bool finish(CallEvents& events) override;
  std::size_t n_held() const override;

  [[nodiscard]] bool in_value() const {
    return state_ == State::kValueBegin || state_ == State::kWrap || state_ == State::kValue;
  }
  // The value that is read ends where its closing tag and what may follow stand, and not behind marks of its own.
  [[nodiscard]] bool ends_by_tags() const {
    return state_ == State::kValue && value_end_.size() == form_.tags->value_end.size();
  }
  // The text is the value's, whatever it holds.
  void add_to_value(std::string_view text, CallEvents& events);

 private:
  enum class State { kText, kObject, kName, kId, kJson, kRaw, kKey, kValueBegin, kWrap, kValue };
  // A text that may come, and what is reached behind it.
  enum class Goal { kPiece, kObject, kKey, kDone };
  struct Way {
    std::string text;  // without white space
    Goal goal = Goal::kPiece;
    std::size_t piece = 0;  // kPiece: the next one
  };
  struct ValueEnd {
    bool possible = false;     // the text may be the beginning of a value's end
    bool closed = false;       // its closing tag is complete
    const Way* way = nullptr;  // and what follows it
  };

  Step take_text(char c, CallEvents& events);
  Step take_object(char c, CallEvents& events);
  [[nodiscard]] bool ends_word(char c) const;
  Step take_word(char c, CallEvents& events);
  Step take_json(char c, CallEvents& events);
  Step read_raw(std::size_t piece);
  Step take_key(char c, CallEvents& events);
  Step take_wrap(char c, CallEvents& events);
  Step take_value(char c, CallEvents& events);
  [[nodiscard]] ValueEnd match_end(std::string_view text) const;
  // Goes on behind the text of a way, or with the piece; bytes are taken by the states that follow.
  Step reach(const Way& way, CallEvents& events);
  Step go_on(std::size_t piece, CallEvents& events);
  void expect_next(std::size_t piece);
  void expect_behind();
  void expect_argument();
  void begin_call(CallEvents& events);
  void close_arguments(CallEvents& events);  // in tags
  [[nodiscard]] Step undecided() const { return begun_ && !ended_ ? Step::kTaken : Step::kHeld; }

  const CallForm& form_;
  const std::vector<Tool>& tools_;
  State state_ = State::kText;
  std::vector<Way> ways_;
  std::size_t piece_ = 0;
  std::string held_;  // of a text without white space; of a value, what may be its end
  std::string word_;  // a name, id or key so far
  std::string name_;
  std::string id_;
  std::string_view value_space_;  // of the form, in front of a value
  std::string value_end_;         // of this one
  bool begun_ = false;            // the call that is read is one
  bool ended_ = false;            // its arguments are complete
  CallObject object_;
  JsonScanner scanner_;
  XmlArguments arguments_;
  std::optional<RawArguments> raw_;
};

}  // namespace ebb
