// ReplyWords: what a reply is saying, and which of its words are new: by those it asks for what it is about to need.
//
// "The owner of the red boat is": where the block that tells who has left, the words before the last are what finds it, and they are said
// before the answer is. It keeps the sentence under way and knows no blocks and no questions. Thread rule: as its turn's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace ebb
