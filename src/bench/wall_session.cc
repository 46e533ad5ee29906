#include "bench/wall_session.h"

#include <array>
#include <random>
#include <set>

namespace ebb {
namespace {

constexpr std::array kSubjects = {"the old miller", "a young officer",  "the captain",      "her sister",
                                  "the merchant",   "the two brothers", "a tired teacher",  "the gardener",
                                  "the stranger",   "the doctor",       "an elderly clerk", "the postman",
                                  "the shepherd",   "the actress",      "his neighbour"};
constexpr std::array kVerbs = {"walked along", "looked at", "painted", "remembered", "crossed", "described",
                               "avoided",      "repaired",  "watched", "measured",   "left",    "admired"};
constexpr std::array kObjects = {"the narrow bridge", "a wooden table",  "the frozen river", "the market square",
                                 "an empty house",    "the long letter", "a broken fence",   "the quiet harbour",
                                 "the stone tower",   "a field of rye",  "the church clock", "the station road"};
constexpr std::array kEnds = {"before the rain began",
                              "without saying a word",
                              "for the third time that week",
                              "while the others slept",
                              "as if nothing had happened",
                              "until it grew dark",
                              "with great care",
                              "on the way home",
                              "and smiled",
                              "in the cold morning light"};

class Source {
 public:
  explicit Source(std::uint64_t seed) : random_(seed) {}

  std::string sentence() {
    std::string text = pick(kSubjects) + " " + pick(kVerbs) + " " + pick(kObjects) + " " + pick(kEnds) + ".";
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
    return text;
  }

  // A pseudo-word that no other name of this source is.
  std::string name() {
    static constexpr std::string_view kConsonants = "bcdfghjklmnprstvwz";
    static constexpr std::string_view kVowels = "aeiou";
    while (true) {
      std::string word;
      for (int i = 0; i < 3; ++i) {
        word += kConsonants[random_() % kConsonants.size()];
        word += kVowels[random_() % kVowels.size()];
      }
      word.front() = static_cast<char>(word.front() - 'a' + 'A');
      if (names_.insert(word).second) return word;
    }
  }

  // Six digits that no other number of this source is. (EVOKE's are 100000, 100007, ...: a small model that copies digit by
  // digit confuses those whatever is in its cache.)
  std::string number() {
    while (true) {
      const std::string digits = std::to_string(100000 + random_() % 900000);
      if (names_.insert(digits).second) return digits;
    }
  }

  std::size_t draw(std::size_t n) { return random_() % n; }

 private:
  template <std::size_t N>
  std::string pick(const std::array<const char*, N>& words) {
    return words[random_() % N];
  }

  std::mt19937_64 random_;
  std::set<std::string> names_;
};

}  // namespace

Result<std::vector<WallSection>> make_wall_sections(const Vocabulary& vocabulary, std::int32_t n_sections,
                                                    std::int32_t n_tokens, std::uint64_t seed) {
  Source source(seed);
  std::vector<WallSection> sections;
  for (std::int32_t i = 0; i < n_sections; ++i) {
    const std::string service = source.name();
    const std::string id = source.number();
    const std::string fact = "The service id of the " + service + " service is " + id + ".";
    std::vector<std::string> sentences;
    std::int32_t n = 0;
    while (n < n_tokens) {
      sentences.push_back(source.sentence());
      EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                           vocabulary.tokenize(" " + sentences.back(), {.add_bos = false}));
      n += static_cast<std::int32_t>(tokens.size());
    }
    const std::size_t at = source.draw(sentences.size() + 1);
    std::string text = "Read this:";
    for (std::size_t s = 0; s <= sentences.size(); ++s) {
      if (s == at) text += " " + fact;
      if (s < sentences.size()) text += " " + sentences[s];
    }
    sections.push_back(
        {.text = std::move(text), .question = "What is the service id of the " + service + " service?", .answer = id});
  }
  return sections;
}

}  // namespace ebb
