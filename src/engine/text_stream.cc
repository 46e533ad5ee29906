#include "engine/text_stream.h"

#include <algorithm>
#include <utility>

namespace ebb {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfGeneration: return "end of generation";
    case FinishReason::kStopString: return "stop string";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
  }
  return "unknown";
}

TextStream::TextStream(const Vocabulary& vocabulary, StopStrings stop_strings, const TextStreamOptions& options)
    : vocabulary_(&vocabulary),
      stop_strings_(std::move(stop_strings)),
      special_(options.special),
      marks_(options.marks) {}

Result<TextStream> TextStream::create(const Vocabulary& vocabulary, const TextStreamOptions& options) {
  EBB_ASSIGN_OR_RETURN(StopStrings stop_strings, StopStrings::create(options.stop_strings));
  return TextStream(vocabulary, std::move(stop_strings), options);
}

Result<TextDelta> TextStream::push(Token token) {
  if (finished_) return TextDelta{.text = {}, .finished = finished_};
  const bool is_mark = std::ranges::find(marks_, token) != marks_.end();
  EBB_ASSIGN_OR_RETURN(const std::string bytes, vocabulary_->piece(token, is_mark ? SpecialTokens::kShow : special_));
  const bool ends = vocabulary_->is_end_of_generation(token);
  if (ends && special_ == SpecialTokens::kHide) return finish(FinishReason::kEndOfGeneration);
  TextDelta delta = pass_on(stop_strings_.push(utf8_.push(bytes)));
  if (!ends || finished_) return delta;
  TextDelta rest = finish(FinishReason::kEndOfGeneration);
  rest.text.insert(0, delta.text);
  return rest;
}

TextDelta TextStream::finish(FinishReason reason) {
  if (finished_) return {.text = {}, .finished = finished_};
  TextDelta delta = pass_on(stop_strings_.push(utf8_.flush()));
  if (!finished_) {
    TextDelta rest = pass_on(stop_strings_.flush());
    delta.text += rest.text;
  }
  if (!finished_) finished_ = reason;
  delta.finished = finished_;
  return delta;
}

TextDelta TextStream::pass_on(StopStrings::Output output) {
  if (output.match) {
    finished_ = FinishReason::kStopString;
    stop_string_ = stop_strings_.string(*output.match);
  }
  return {.text = std::move(output.text), .finished = finished_};
}

}  // namespace ebb
