// Rare words: which blocks share the rarest words with a question, and what a session is talking about.
//
// It sees words, not tensors, and recalls nothing itself. The rank is BM25's (Robertson and Zaragoza 2009) with k1 = 1.2,
// b = 0.75, so a word that stands in few blocks weighs most; words that stand in every block weigh nothing, and so do
// words that stand in none. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "policy/words.h"

namespace ebb {

// What one word of a question gave a block.
struct WordScore {
  std::int32_t word = 0;  // its place among the question's words
  double score = 0.0;
  // It stands right behind the block's begin, or right before its end: what it speaks of may stand in the neighbour.
  bool at_begin = false;
  bool at_end = false;
  // Its sentence goes on there, however far the border is.
  bool is_cut_at_begin = false;
  bool is_cut_at_end = false;
};

struct Scored {
  BlockIndex block;
  double score = 0.0;  // of all words together
  std::vector<WordScore> words;
};

// Words of the blocks of one session.
class WordIndex {
 public:
  // Blocks are added once each, when their text is complete.
  void add(BlockIndex block, std::string_view text);
  void remove(BlockIndex block);
  [[nodiscard]] bool contains(BlockIndex block) const { return documents_.contains(block); }
  // Blocks that share words with the question, best first, ties to the later block; none with score 0, and of many those alone that come
  // near the best one. Cost: the postings of its words, but for common ones.
  [[nodiscard]] std::vector<Scored> rank(std::string_view question) const;
  // log(1 + (n - n_with + .5) / (n_with + .5)); 0 for a word of no block, or of all blocks where there are several.
  [[nodiscard]] double rarity(const std::string& word) const;
  // In few blocks, or in a small part of them; not in none.
  [[nodiscard]] bool is_rare(const std::string& word) const { return stands_in_few(word, kSmallPart); }
  // Rare, or in no more than a quarter of the blocks: a subject that much is said of tells blocks apart too, and what every sentence has
  // does not.
  [[nodiscard]] bool tells(const std::string& word) const { return stands_in_few(word, kTellingPart); }
  // A word of one block: how often, and its first and last place among the block's words.
  struct Use {
    std::int32_t count = 0;
    std::int32_t first = 0;
    std::int32_t last = 0;
    // Where it stands among the word's postings.
    std::size_t posting = 0;
  };
  using Uses = std::unordered_map<std::string, Use>;
  // Null for a block that is not in the index.
  [[nodiscard]] const Uses* find_words(BlockIndex block) const;
  // Postings that adding and removing has looked at so far, which is their cost: a few for each word of the block, however
  // many blocks hold the word.
  [[nodiscard]] std::int64_t n_touched() const { return n_touched_; }

 private:
  struct Document {
    std::int32_t n_words = 0;
    // Words of the sentence that the block begins with, and those before the sentence that has no end in it.
    std::int32_t n_first = 0;
    std::int32_t n_ended = 0;
    // Nothing stands behind its last sentence.
    bool ends_whole = false;
    Uses uses;
  };

  struct Posting {
    BlockIndex block;
    Use use;
    std::int32_t n_words = 0;  // of the block
  };
  // A word of a question that some blocks have.
  struct Term {
    std::int32_t place = 0;
    double rarity = 0.0;
    const std::string* word = nullptr;
    const std::vector<Posting>* postings = nullptr;
  };

  // One of so many blocks has the word, at most.
  static constexpr std::size_t kSmallPart = 32;
  static constexpr std::size_t kTellingPart = 4;

  [[nodiscard]] bool stands_in_few(const std::string& word, std::size_t part) const;
  [[nodiscard]] double rarity(std::size_t n_documents_with) const;
  [[nodiscard]] double mean_words() const;
  [[nodiscard]] std::vector<Term> terms_of(std::string_view question) const;
  [[nodiscard]] std::vector<BlockIndex> find_best(const std::vector<Term>& terms) const;
  [[nodiscard]] Scored score(BlockIndex block, const std::vector<Term>& terms) const;

  std::map<BlockIndex, Document> documents_;
  std::unordered_map<std::string, std::vector<Posting>> postings_;  // of each word, in no order
  std::int64_t n_words_ = 0;
  std::int64_t n_touched_ = 0;
};

// What a session is about lately: the words of its messages, fading with each new one.
class Focus {
 public:
  void hear(std::string_view message);
  // Cosine, 0..1, of the block's words and the focus, both weighed by rarity; none where either has no such word.
  [[nodiscard]] std::optional<double> similarity(const WordIndex& index, BlockIndex block) const;

 private:
  std::unordered_map<std::string, double> weights_;
};

}  // namespace ebb
