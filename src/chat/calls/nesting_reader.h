// NestingReader: reads calls with arguments in tags whose values may hold whole calls in the same form.
//
// What opens a call inside a value may open one there: it is read along, and where it turns out to be whole, its text is the value's, marks
// and all. A value that only speaks of such marks, or of the beginning of a call, ends where it would without. So text behind an opening mark
// in a value is held, up to kMaxTrialBytes, until the value ends, or the reply.
//
// It does not know what the calls inside say: their text is all that counts.
//
// Thread rule: one thread at a time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/form_reader.h"

namespace ebb {

// The parts of a form that readers share; they must outlive them.
struct NestingForm {
  const CallForm& all;                      // calls of a reply
  const CallForm& one;                      // the same without what stands around and between them
  const std::vector<std::string>& openers;  // of all, of one
  const std::vector<Tool>& tools;
};

class NestingReader : public CallReader {
 public:
  // More text behind an opening mark in a value is read as if it opened nothing.
  static constexpr std::size_t kMaxTrialBytes = std::size_t{256} << 10;

  NestingReader(const NestingForm& form, std::size_t opener, int depth = 0);

  Step take(char c, CallEvents& events) override;
  bool finish(CallEvents& events) override;
  std::size_t n_held() const override { return trial_ ? trial_->before.n_held() : reader_->n_held(); }
  std::size_t n_again() const override { return n_again_; }

 private:
  // A value in which a call may have begun.
  struct Trial {
    FormReader before;  // the reader behind the first opening mark
    std::string text = {};
    CallEvents events = {};
    bool holds_call = false;
  };

  Step take_value(char c, CallEvents& events);
  Step take_nested(char c, CallEvents& events);
  void watch_for_opener(char c);
  void commit(CallEvents& events);
  void give_up();
  [[nodiscard]] bool reads_whole_without() const;

  NestingForm form_;
  int depth_;
  std::optional<FormReader> reader_;
  std::string tail_;  // of the value so far, as long as an opening mark
  std::optional<Trial> trial_;
  std::unique_ptr<NestingReader> nested_;
  std::string nested_text_;
  std::deque<char> todo_;  // taken next: a byte that came, and those that were no call's
  std::size_t n_again_ = 0;
  int n_refused_ = 0;
  bool looks_ = true;  // for calls in values
};

}  // namespace ebb
