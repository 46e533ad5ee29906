#include "bench/sections.h"

#include <array>

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

template <std::size_t N>
std::string pick(const std::array<const char*, N>& words, std::mt19937_64& random) {
  return words[random() % N];
}

}  // namespace

std::string draw_sentence(std::mt19937_64& random) {
  // Drawn from the last to the first: recorded runs hang on it.
  const std::string end = pick(kEnds, random);
  const std::string object = pick(kObjects, random);
  const std::string verb = pick(kVerbs, random);
  std::string text = pick(kSubjects, random) + (" " + verb) + " " + object + " " + end + ".";
  text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

// A pseudo-word.
std::string SectionWriter::name() {
  static constexpr std::string_view kConsonants = "bcdfghjklmnprstvwz";
  static constexpr std::string_view kVowels = "aeiou";
  while (true) {
    std::string word;
    for (int i = 0; i < 3; ++i) {
      word += kConsonants[random_() % kConsonants.size()];
      word += kVowels[random_() % kVowels.size()];
    }
    word.front() = static_cast<char>(word.front() - 'a' + 'A');
    if (used_.insert(word).second) return word;
  }
}

// Six digits. (EVOKE's are 100000, 100007, ...: a small model that copies digit by digit confuses those whatever is in
// its cache.)
std::string SectionWriter::number() {
  while (true) {
    const std::string digits = std::to_string(100000 + random_() % 900000);
    if (used_.insert(digits).second) return digits;
  }
}

Result<Section> SectionWriter::write(std::int32_t n_tokens) {
  const std::string service = name();
  const std::string id = number();
  const std::string fact = "The service id of the " + service + " service is " + id + ".";
  std::vector<std::string> sentences;
  std::int32_t n = 0;
  while (n < n_tokens) {
    sentences.push_back(draw_sentence(random_));
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                         vocabulary_.tokenize(" " + sentences.back(), {.add_bos = false}));
    n += static_cast<std::int32_t>(tokens.size());
  }
  const std::size_t at = random_() % (sentences.size() + 1);
  std::string text = "Read this:";
  for (std::size_t s = 0; s <= sentences.size(); ++s) {
    if (s == at) text += " " + fact;
    if (s < sentences.size()) text += " " + sentences[s];
  }
  return Section{.text = std::move(text),
                 .fact = fact,
                 .question = "What is the service id of the " + service + " service?",
                 .answer = id};
}

Result<std::vector<Section>> make_sections(const Vocabulary& vocabulary, std::int32_t n_sections, std::int32_t n_tokens,
                                           std::uint64_t seed) {
  SectionWriter writer(vocabulary, seed);
  std::vector<Section> sections;
  for (std::int32_t i = 0; i < n_sections; ++i) {
    EBB_ASSIGN_OR_RETURN(sections.emplace_back(), writer.write(n_tokens));
  }
  return sections;
}

}  // namespace ebb
