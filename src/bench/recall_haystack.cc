#include "bench/recall_haystack.h"

#include <array>

#include "bench/sections.h"

namespace ebb {
namespace {

// Sentences of a passage before another place of the text is gone to.
constexpr std::size_t kPassageSentences = 8;
// What is shorter is a heading or a number, what is longer a list.
constexpr std::size_t kShortestSentence = 20;
constexpr std::size_t kLongestSentence = 400;

// As in tools/train/dialogues.py.
constexpr std::array kTalkThings = {"door",   "gate",   "safe",  "office", "garage", "bicycle", "truck",
                                    "boat",   "clock",  "lamp",  "desk",   "box",    "ticket",  "station",
                                    "bridge", "tunnel", "tower", "attic",  "garden", "cellar"};
constexpr std::array kTalkTraits = {"old",   "new",  "small", "large", "round",  "square", "quiet", "loud", "heavy",
                                    "north", "main", "cold",  "warm",  "bright", "dark",   "wide",  "rusty"};
constexpr std::array kTalkCities = {"Paris", "London", "Rome",  "Vienna", "Lisbon",
                                    "Oslo",  "Cairo",  "Tokyo", "Lima",   "Boston"};
constexpr std::array kTalkAnimals = {"cat",    "dog",  "horse",  "rabbit", "turtle",
                                     "falcon", "wolf", "beaver", "lizard", "raven"};
constexpr std::array kTalkFoods = {"soup",  "bread", "cheese", "rice",  "salad",
                                   "apple", "mango", "plum",   "onion", "honey"};

}  // namespace

std::vector<std::string> split_sentences(std::string_view text, RecallSplit split) {
  text = split == RecallSplit::kTune ? text.substr(0, text.size() / 2) : text.substr(text.size() / 2);
  std::vector<std::string> sentences;
  std::string sentence;
  // Where the half begins is the midst of one.
  bool is_whole = false;
  for (const char c : text) {
    const bool is_gap = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!is_gap) {
      if (c > ' ' && c < '\x7f') sentence += c;
      continue;
    }
    if (sentence.empty() || sentence.back() == ' ') continue;
    if (std::string_view(".!?").find(sentence.back()) == std::string_view::npos) {
      sentence += ' ';
      continue;
    }
    if (is_whole && sentence.size() >= kShortestSentence && sentence.size() <= kLongestSentence) {
      sentences.push_back(sentence);
    }
    is_whole = true;
    sentence.clear();
  }
  return sentences;
}

HaystackLine HaystackWriter::next() {
  switch (haystack_) {
    case Haystack::kSentences: return {.text = draw_sentence(random_), .reply = ""};
    case Haystack::kChatter: return small_talk();
    case Haystack::kText: return {.text = next_of_text(), .reply = ""};
  }
  return {};
}

std::string HaystackWriter::next_of_text() {
  if (n_left_ == 0 || at_ + 1 >= sentences_.size()) {
    at_ = random_() % sentences_.size();
    n_left_ = kPassageSentences;
  }
  --n_left_;
  return sentences_[at_++];
}

HaystackLine HaystackWriter::small_talk() {
  const auto one_of = [&](const auto& words) { return std::string(words[random_() % words.size()]); };
  const std::string n = one_of(kTalkThings);
  const std::string n2 = one_of(kTalkThings);
  const std::string j = one_of(kTalkTraits);
  const std::string j2 = one_of(kTalkTraits);
  const std::string c = one_of(kTalkCities);
  const std::string f = one_of(kTalkFoods);
  const std::string f2 = one_of(kTalkFoods);
  const std::string a = one_of(kTalkAnimals);
  const std::string b = one_of(kTalkAnimals);
  switch (random_() % 8) {
    case 0: return {"What is a " + n + "?", "A " + n + " is a " + j + " thing that people keep near a " + n2 + "."};
    case 1:
      return {"Tell me about the city of " + c + ".",
              c + " is a " + j + " city with a " + j2 + " " + n + " and many " + n2 + "s."};
    case 2: return {"How do I cook " + f + "?", "Cook the " + f + " with " + f2 + " and serve it " + j + "."};
    case 3:
      return {"Where does the " + a + " live?", "The " + a + " lives near a " + j + " " + n + " and eats " + f + "."};
    case 4:
      return {"Can you describe a " + j + " " + n + "?",
              "A " + j + " " + n + " looks " + j2 + " and stands next to a " + n2 + "."};
    case 5:
      return {"Give me a tip about " + f + " and " + f2 + ".",
              "Mix the " + f + " with " + f2 + ", then wait for the " + n + "."};
    case 6:
      return {"What do you think of " + c + " in winter?",
              c + " is " + j + " and " + j2 + " in winter, but people like the " + f + "."};
    default:
      return {"Is the " + a + " larger than the " + b + "?",
              "The " + a + " and the " + b + " are both " + j + " animals."};
  }
}

}  // namespace ebb
