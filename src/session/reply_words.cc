#include "session/reply_words.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {

// A sentence is kept until a word of the next one is said: its last word ends with it.
void ReplyWords::add(std::string_view piece) {
  text_ += piece;
  std::size_t begin = 0;
  std::size_t mark_end = 0;
  // The last byte may be a full stop that goes on as a number or a name.
  for (std::size_t at = 0; at + 1 < text_.size();) {
    const std::size_t n = sentence_mark_bytes(text_, at);
    if (n == 0 && is_word_byte(text_[at])) begin = mark_end;
    at += std::max<std::size_t>(n, 1);
    if (n > 0) mark_end = at;
  }
  if (!text_.empty() && is_word_byte(text_.back())) begin = mark_end;
  begin = std::max(begin, text_.size() - std::min(text_.size(), kMostBytes));
  if (begin > n_taken_) take_until(begin);
  text_.erase(0, begin);
  n_taken_ -= std::min(n_taken_, begin);
}

void ReplyWords::take_until(std::size_t end) {
  for (std::string& word : split_words(std::string_view(text_).substr(n_taken_, end - n_taken_))) {
    ended_.push_back(std::move(word));
  }
}

std::vector<std::string> ReplyWords::take_ended() {
  const EndedWords ended = find_ended_words(text_);
  if (ended.end > n_taken_) {
    take_until(ended.end);
    n_taken_ = ended.next;
  }
  return std::exchange(ended_, {});
}

}  // namespace ebb
