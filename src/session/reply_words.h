// ReplyWords: what a reply is saying, and which of its words are new: by those it asks for what it is about to need.
//
// "The owner of the red boat is": where the block that tells who has left, the words before the last are what finds it, and they are said
// before the answer is. It keeps the sentence under way and knows no blocks. Thread rule: as its turn's.
//
// find_meant() says which cue such a sentence repeats: by all of the cue's words what is meant is found, and by the first few of them what
// is like it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/cues.h"

namespace ebb {

class ReplyWords {
 public:
  // Of a sentence without an end that many last bytes are kept.
  static constexpr std::size_t kMostBytes = 512;

  // The bytes that the next token adds.
  void add(std::string_view piece);
  // Words that have ended since the last call.
  [[nodiscard]] std::vector<std::string> take_ended();
  // Since the last mark that ends a sentence and has a word behind it.
  [[nodiscard]] std::string_view sentence() const { return text_; }

 private:
  // All words before that are ended ones.
  void take_until(std::size_t end);

  std::string text_;
  std::vector<std::string> ended_;
  std::size_t n_taken_ = 0;
};

struct Meant {
  // A rare word has ended in the sentence.
  bool says_rare = false;
  // The one that has a rare word that has ended, and of those that any has lacks none, or the least rare; then the one that is expected; then most of
  // them and fewest others that are rare; then most of the other words, then least beside them. One that was answered before has all of its rare
  // words said.
  std::optional<std::size_t> cue;
  // Another one has as many: what comes will tell.
  bool is_open = false;
};
// How much a word tells where it is said; 0 of one that is not rare.
using RarityOf = std::function<double(const std::string&)>;
// `expected`: the one of them that is answered next if the reply keeps their order; null: none.
[[nodiscard]] Meant find_meant(std::span<const Cue> cues, const std::set<std::size_t>& answered, const Cue* expected,
                               std::string_view sentence, const RarityOf& rarity_of);

}  // namespace ebb
