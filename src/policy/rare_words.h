// Rare words: which cold blocks share the rarest words with a question.
//
// The selector sees words, not tensors, and recalls nothing itself. The score is BM25's (Robertson and Zaragoza 2009)
// with k1 = 1.2, b = 0.75, so a word that stands in few blocks weighs most; words that stand in every block weigh
// nothing, and so do words that stand in none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace ebb {

struct Scored {
  BlockIndex block;
  double score = 0.0;
};

// The words of a text, case folded: runs of letters, digits and bytes beyond ASCII. Identifiers count whole and in their
// parts: "config_server.max" gives config_server, config, server, max.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);

// Words of the blocks of one session. Thread rule: one thread at a time.
class WordIndex {
 public:
  // Blocks are added once each, when their text is complete.
  void add(BlockIndex block, std::string_view text);
  [[nodiscard]] bool contains(BlockIndex block) const;
  // Blocks that share words with the question, best first, ties to the later block; none with score 0.
  [[nodiscard]] std::vector<Scored> rank(std::string_view question) const;

 private:
  struct Document {
    BlockIndex block;
    std::int32_t n_words = 0;
    std::unordered_map<std::string, std::int32_t> counts;
  };

  std::vector<Document> documents_;
  std::unordered_map<std::string, std::int32_t> n_documents_with_;
  std::int64_t n_words_ = 0;
};

}  // namespace ebb
