#include "session/reply_words.h"

#include <algorithm>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {

void ReplyWords::add(std::string_view piece) {
  text_ += piece;
  std::size_t begin = 0;
  // The last byte may be a full stop that goes on as a number or a name.
  for (std::size_t at = 0; at + 1 < text_.size();) {
    const std::size_t n = sentence_mark_bytes(text_, at);
    at += std::max<std::size_t>(n, 1);
    if (n > 0) begin = at;
  }
  begin = std::max(begin, text_.size() - std::min(text_.size(), kMostBytes));
  text_.erase(0, begin);
  n_taken_ -= std::min(n_taken_, begin);
}

std::vector<std::string> ReplyWords::take_ended() {
  std::size_t end = text_.size();
  while (end > n_taken_ && is_word_byte(text_[end - 1])) --end;
  const std::string_view ended = std::string_view(text_).substr(n_taken_, end - n_taken_);
  n_taken_ = end;
  return split_words(ended);
}

}  // namespace ebb
