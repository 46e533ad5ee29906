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

constexpr std::array kTopics = {
    "the growing of wheat", "the repair of old roofs", "fishing from the shore",   "the making of paper",
    "the study of stars",   "the care of horses",      "the history of mills",     "the building of roads",
    "the keeping of bees",  "the trade in wool",       "the weather of the hills", "the art of singing",
    "the drying of herbs",  "the work of a judge",     "the use of maps",          "the drawing of plans",
    "the cutting of stone", "the sailing of rivers",   "the teaching of children", "the printing of books",
    "the brewing of tea",   "the planting of trees",   "the mending of nets",      "the language of birds",
    "the burning of lime",  "the weaving of cloth",    "the digging of wells",     "the healing of wounds",
    "the forging of iron",  "the painting of walls"};
constexpr std::array kTopicSentences = {"Many people have written about {} over the years.",
                                        "Those who know {} well say that patience matters most.",
                                        "{} was once thought to be simple.",
                                        "In some villages {} is still taught by the old.",
                                        "Whoever begins with {} makes the same mistakes.",
                                        "Few things have changed as little as {}.",
                                        "There are long books about {} that nobody reads any more.",
                                        "In winter there is little to be said about {}.",
                                        "A traveller once spoke of {} for a whole evening.",
                                        "It takes years before {} is understood.",
                                        "{} depends on good tools and on dry air.",
                                        "Some say that {} will soon be forgotten.",
                                        "The rules of {} were never written down in full.",
                                        "What helps in {} is a steady hand.",
                                        "Letters from that time often speak of {}."};
constexpr std::array kNoise = {"The grass is green.", "The sky is blue.", "The sun is yellow.", "Here we go.",
                               "There and back again."};

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
    case Haystack::kTopics: return {.text = next_of_topic(), .reply = ""};
    case Haystack::kNoise: return {.text = next_noise(), .reply = ""};
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

std::string HaystackWriter::next_of_topic() {
  if (n_left_ == 0) {
    at_ = random_() % kTopics.size();
    n_left_ = 4 + random_() % 4;
  }
  --n_left_;
  const std::string_view sentence = kTopicSentences[random_() % kTopicSentences.size()];
  const std::size_t slot = sentence.find("{}");
  std::string text(sentence.substr(0, slot));
  text += kTopics[at_];
  text += sentence.substr(slot + 2);
  if (text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

std::string HaystackWriter::next_noise() { return kNoise[at_++ % kNoise.size()]; }

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
