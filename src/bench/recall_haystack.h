// Haystacks: seeded text between the facts of recall tasks.
//
//   sentences   simple English sentences, as in the other benches; the bundled model was not trained on them
//   chatter     small talk, message and reply, as in the bundled model's training, of things that facts are told of too
//   text        passages of a text of the caller's, one half of it for each split
//   topics      paragraphs, each about one of 30 topics, of 15 templates of sentences, as in EVOKE's needle test; the bundled model
//               was not trained on them
//   noise       five short sentences over and over, as in the passkey test
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/recall_names.h"

namespace ebb {

enum class Haystack : std::uint8_t { kSentences, kChatter, kText, kTopics, kNoise };

struct HaystackLine {
  std::string text;
  // Of small talk: what is answered. Empty: reading matter.
  std::string reply;
};

// The sentences of one split's half of a text, in printable ASCII; passages are taken from them.
[[nodiscard]] std::vector<std::string> split_sentences(std::string_view text, RecallSplit split);

class HaystackWriter {
 public:
  // `sentences`, of kText only, must outlive it.
  HaystackWriter(Haystack haystack, std::span<const std::string> sentences, std::uint64_t seed)
      : haystack_(haystack), sentences_(sentences), random_(seed) {}

  HaystackLine next();

 private:
  HaystackLine small_talk();
  std::string next_of_text();
  std::string next_of_topic();
  std::string next_noise();

  Haystack haystack_;
  std::span<const std::string> sentences_;
  std::mt19937_64 random_;
  std::size_t at_ = 0;
  std::size_t n_left_ = 0;  // of the passage or the paragraph
};

}  // namespace ebb
