// Sections: seeded reading matter, each piece of which states one fact that can be asked for.
//
// What benches on recall read: simple sentences that nobody has to understand, and one that matters. It computes
// nothing.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/vocabulary.h"

namespace ebb {

struct Section {
  std::string text;  // reading matter, and somewhere in it the fact
  std::string fact;  // the sentence that states it
  std::string question;
  std::string answer;
};

// "The old miller walked along the frozen river and smiled."
[[nodiscard]] std::string draw_sentence(std::mt19937_64& random);

// Names and values of the facts that one writer writes are all different; the same seed, the same sections.
class SectionWriter {
 public:
  // The vocabulary must outlive it.
  SectionWriter(const Vocabulary& vocabulary, std::uint64_t seed) : vocabulary_(vocabulary), random_(seed) {}

  // A section of n_tokens or a sentence more, as this vocabulary counts them, without the fact.
  Result<Section> write(std::int32_t n_tokens);

 private:
  std::string name();
  std::string number();

  const Vocabulary& vocabulary_;
  std::mt19937_64 random_;
  std::set<std::string> used_;
};

Result<std::vector<Section>> make_sections(const Vocabulary& vocabulary, std::int32_t n_sections, std::int32_t n_tokens,
                                           std::uint64_t seed);

}  // namespace ebb
