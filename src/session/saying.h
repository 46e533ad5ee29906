// Saying: which of what was asked a reply is answering, word by word: that is what it is about to need.
//
// A sentence that repeats a cue is looked for by all of the cue's words: its own first few would find what is like it. One that repeats none is
// looked for by its own. And where one cue was answered, the next in the order in which they were said is looked for at once: a reply that has to
// choose its next subject tells again what it sees (decisions/0028).
//
// It knows words and cues, and no blocks. Thread rule: as its turn's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "policy/cues.h"
#include "session/reply_words.h"

namespace ebb {

struct Meant {
  // A word that tells has ended in the sentence.
  bool says_telling = false;
  // The one that has a telling word that has ended, and of those that any has lacks none, or the least rare; then the one that is expected; then most
  // of them and fewest others that tell; then most of the other words, then least beside them. One that was answered before has all of its telling
  // words said.
  std::optional<std::size_t> cue;
  // Another one has as many: what comes will tell.
  bool is_open = false;
};
// How much a word tells of what is meant where it is said: WordIndex::rarity of those that tell, and 0 of others.
using RarityOf = std::function<double(const std::string&)>;
// `expected`: the one of them that is answered next if the reply keeps their order; null: none.
[[nodiscard]] Meant find_meant(std::span<const Cue> cues, const std::set<std::size_t>& answered, const Cue* expected,
                               std::string_view sentence, const RarityOf& rarity_of);

class Saying {
 public:
  // The bytes that the next token adds.
  void add(std::string_view piece) { words_.add(piece); }
  // Words that have ended by now are there to be looked for; a sentence that repeats no cue is where one of them is rare (WordIndex::is_rare).
  void end_words(const std::function<bool(const std::string&)>& is_rare);
  [[nodiscard]] bool has_ended_words() const { return has_word_ended_; }
  [[nodiscard]] std::string_view sentence() const { return words_.sentence(); }
  // Whether the sentence repeats a cue, or is expected to.
  [[nodiscard]] bool repeats_cue() const { return cue_.has_value(); }

  // What the words that have ended ask for, told once each: a cue, by its index, or the sentence itself.
  struct News {
    std::optional<std::size_t> cue;
  };
  [[nodiscard]] std::optional<News> find_news(std::span<const Cue> cues, const RarityOf& rarity_of);

 private:
  [[nodiscard]] std::optional<News> expect(std::span<const Cue> cues);

  ReplyWords words_;
  bool has_word_ended_ = false;
  // A rare one that was not looked for.
  bool has_said_rare_ = false;
  // What the sentence was looked for by, and whether it has said nothing that tells yet.
  std::optional<std::size_t> cue_;
  bool is_ahead_ = false;
  // By earlier sentences, and the place of the last of them.
  std::set<std::size_t> answered_;
  std::int64_t answered_place_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace ebb
