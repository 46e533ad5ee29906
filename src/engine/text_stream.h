// TextStream: generated tokens in, text out that can be shown at once.
//
// A token becomes its piece, pieces become whole UTF-8 characters (text/utf8_stream.h), and these pass the stop strings
// (text/stop_strings.h). What comes out is valid UTF-8 and holds no part of a stop string. It does not know models or
// samplers, nor how many tokens may be made: that end is the caller's, who then calls finish.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/stop_strings.h"
#include "text/utf8_stream.h"
#include "text/vocabulary.h"

namespace ebb {

enum class FinishReason : std::uint8_t {
  kEndOfGeneration,  // the model ended its text or its turn, or the grammar was complete
  kStopString,
  kLength,     // as many tokens as were asked for, or as fit
  kCancelled,  // on request
};

[[nodiscard]] std::string_view finish_reason_name(FinishReason reason);

struct TextStreamOptions {
  std::vector<std::string> stop_strings = {};
  SpecialTokens special = SpecialTokens::kHide;
  // Control tokens that are shown all the same.
  std::vector<Token> marks = {};
};

struct TextDelta {
  std::string text;
  // Set with the last text; what is pushed afterwards is ignored.
  std::optional<FinishReason> finished;
};

class TextStream {
 public:
  // The vocabulary must outlive the stream. kInvalidArgument for stop strings that StopStrings does not take.
  [[nodiscard]] static Result<TextStream> create(const Vocabulary& vocabulary, const TextStreamOptions& options);

  // kInvalidArgument, and no change, for a token that is not of the vocabulary. An end-of-generation token finishes the
  // text and adds nothing to it, unless special tokens are shown.
  [[nodiscard]] Result<TextDelta> push(Token token);
  // The caller's end: gives out what was held back. If a stop string was complete but waiting for a longer one, that is
  // the reason and not the caller's; when the text is finished already, an empty delta with the first reason.
  [[nodiscard]] TextDelta finish(FinishReason reason);

  [[nodiscard]] std::optional<FinishReason> finished() const { return finished_; }
  // That ended the text; empty where none did.
  [[nodiscard]] const std::string& stop_string() const { return stop_string_; }

 private:
  TextStream(const Vocabulary& vocabulary, StopStrings stop_strings, const TextStreamOptions& options);
  TextDelta pass_on(StopStrings::Output output);

  const Vocabulary* vocabulary_;
  Utf8Stream utf8_;
  StopStrings stop_strings_;
  SpecialTokens special_;
  std::vector<Token> marks_;
  std::optional<FinishReason> finished_;
  std::string stop_string_;
};

}  // namespace ebb
