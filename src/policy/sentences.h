// Sentences: where those of a text end, and the passages that a block's text is cut into to be compared by what it means.
//
// A sentence is what says one thing: a vector of a whole block is that of all that stands in it, in which one fact among others
// drowns. It knows marks and no language. Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

// The bytes of a mark that ends a sentence at `at`; 0 where none stands. A full stop within a number, a name or a path ends none.
[[nodiscard]] std::size_t sentence_mark_bytes(std::string_view text, std::size_t at);

// Calls visit(sentence, begin) for each, its mark included; the last may have none.
template <typename Visit>
void for_each_sentence(std::string_view text, const Visit& visit) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = sentence_mark_bytes(text, at);
    at += std::max<std::size_t>(n, 1);
    if (n == 0 && at < text.size()) continue;
    visit(text.substr(begin, at - begin), begin);
    begin = at;
  }
}

struct Passages {
  // Sentences; one of few words goes with the one before it.
  std::vector<std::string> texts;
  // The first of them begins before the block.
  bool first_begins_before = false;
};

// Of a block whose own text begins at `own_begin` of `text`, behind some of what comes before it. The sentence that the block's begin
// cuts is its first passage, whole, as far as `text` has it; the one that its end cuts is left to the block behind it, unless there is
// no other.
[[nodiscard]] Passages split_passages(std::string_view text, std::size_t own_begin);

}  // namespace ebb
