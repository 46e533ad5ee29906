#include "session/reply_words.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

std::vector<std::string> sorted_words(std::string_view text) {
  std::vector<std::string> words = split_words(text);
  std::ranges::sort(words);
  const auto rest = std::ranges::unique(words);
  words.erase(rest.begin(), rest.end());
  return words;
}

}  // namespace

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

Meant find_meant(std::span<const Cue> cues, const std::set<std::size_t>& answered, std::string_view sentence,
                 const std::function<bool(const std::string&)>& is_rare) {
  const auto rare_of = [&](const std::vector<std::string>& words) {
    std::vector<std::string> rare;
    std::ranges::copy_if(words, std::back_inserter(rare), is_rare);
    return rare;
  };
  const auto n_in = [](const std::vector<std::string>& words, const std::vector<std::string>& own) {
    return std::ranges::count_if(words, [&](const std::string& word) { return std::ranges::binary_search(own, word); });
  };
  const std::vector<std::string> said = sorted_words(sentence.substr(0, find_ended_words(sentence).end));
  const std::vector<std::string> rare = rare_of(said);
  Meant meant{.says_rare = !rare.empty()};
  if (!meant.says_rare) return meant;
  std::vector<std::string> best;
  // How many of the rare words times how much of its own, how many of all words, and how many there are beside them.
  std::tuple<double, std::ptrdiff_t, std::ptrdiff_t> best_fit;
  for (std::size_t i = 0; i < cues.size(); ++i) {
    std::vector<std::string> own = sorted_words(cues[i].text);
    const std::ptrdiff_t n_rare = n_in(rare, own);
    if (n_rare == 0 || own == best) continue;
    const auto n_own = std::ssize(rare_of(own));
    if (answered.contains(i) && n_rare < n_own) continue;
    const auto n = static_cast<double>(n_rare);
    const std::tuple fit(n * n / static_cast<double>(n_own), n_in(said, own), -std::ssize(own));
    if (meant.cue && fit == best_fit) meant.is_open = true;
    if (meant.cue && fit <= best_fit) continue;
    meant = {.says_rare = true, .cue = i, .is_open = false};
    best_fit = fit;
    best = std::move(own);
  }
  return meant;
}

}  // namespace ebb
