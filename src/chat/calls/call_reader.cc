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

void RawArguments::finish(CallEvents& events) { events.arguments(std::exchange(held_, {})); }

}  // namespace ebb
