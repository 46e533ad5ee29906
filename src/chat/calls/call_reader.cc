#include "chat/calls/call_reader.h"

#include <utility>

namespace ebb {

bool RawArguments::take(char c, CallEvents& events) {
  held_ += c;
  std::size_t n_certain = 0;
  while (n_certain < held_.size() && !marker_.starts_with(std::string_view(held_).substr(n_certain))) ++n_certain;
  events.arguments(std::string_view(held_).substr(0, n_certain));
  held_.erase(0, n_certain);
  return !marker_.empty() && held_ == marker_;
}

CallReader::Step UnclosedArguments::take(char c, CallEvents& events) {
  const JsonScanner::Step step = is_raw_ ? JsonScanner::Step::kBad : scanner_.take(c);
  events.arguments({&c, 1});
  if (step == JsonScanner::Step::kEnd) {
    events.end();
    return CallReader::Step::kDone;
  }
  is_raw_ = step != JsonScanner::Step::kMore;
  return CallReader::Step::kTaken;
}

}  // namespace ebb
