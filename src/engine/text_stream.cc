#include "engine/text_stream.h"

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

TextStream::TextStream(const Vocabulary& vocabulary, StopStrings stop_strings, SpecialTokens special)
    : vocabulary_(&vocabulary), stop_strings_(std::move(stop_strings)), special_(special) {}

Result<TextStream> TextStream::create(const Vocabulary& vocabulary, const TextStreamOptions& options) {
  EBB_ASSIGN_OR_RETURN(StopStrings stop_strings, StopStrings::create(options.stop_strings));
  return TextStream(vocabulary, std::move(stop_strings), options.special);
}

Result<TextDelta> TextStream::push(Token token) {
  if (finished_) return TextDelta{.text = {}, .finished = finished_};
  EBB_ASSIGN_OR_RETURN(const std::string bytes, vocabulary_->piece(token, special_));
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
  if (output.match) finished_ = FinishReason::kStopString;
  return {.text = std::move(output.text), .finished = finished_};
}

}  // namespace ebb
