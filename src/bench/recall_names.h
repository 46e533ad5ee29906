// Names and values that recall tasks are made of: gates, people, services, codes, days.
//
// They come from open sets where they can (pseudo-words, digits, pairs of words), so that only the context tells an
// answer, never the weights: those with words of ours are of the eighth that the bundled model's training left out
// (tools/train/vocabulary.py). The two splits share none. The same seed, the same names, on every machine.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

// What policies are tuned on, and what they are then told by.
enum class RecallSplit : std::uint8_t { kTune, kTest };

enum class NameKind : std::uint8_t {
  kThing,    // the north gate
  kPerson,   // Alice Boron
  kTown,     // Zuvor
  kService,  // the Zuvor service
  kPlace,    // Paris, or a town
  kCode,     // 44170, zuvor, ZUV-441
  kNumber,   // 44170
  kAmount,   // 417
  kDay,      // May 17
  kWord,     // zuvor
  kHex,      // 3f0a77c1
  kUuid,     // 3f0a77c1-9b41-4c27-8f6e-0d5a6b2c9e13
  kColor,
  kAnimal,
  kFood,
};

// Whether there are so few of them that a guess is right now and then.
[[nodiscard]] bool is_closed(NameKind kind);

// Whether `word`, some words in a row perhaps, stands in the text, whatever its case, and not as a piece of a longer
// word or number: 417 does not stand in "4170", "417-3" and "1,417". Its first place, or npos.
[[nodiscard]] std::size_t find_word(std::string_view text, std::string_view word);

class NameSource {
 public:
  NameSource(RecallSplit split, std::uint64_t seed) : split_(split), random_(seed) {}

  // One that this source did not give before; nothing when there is none left.
  std::optional<std::string> draw(NameKind kind);
  // One that differs from `name`, a thing, person, town, service, word or hex, in one word, or in one letter of a
  // pseudo-word or digit of a number; nothing when there is none left.
  std::optional<std::string> draw_twin(NameKind kind, const std::string& name);

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::string make(NameKind kind);
  std::string pseudo_word();
  [[nodiscard]] bool belongs(NameKind kind, const std::string& name) const;

  RecallSplit split_;
  std::mt19937_64 random_;
  std::set<std::string> used_;
};

}  // namespace ebb
