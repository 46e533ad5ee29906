#include "bench/recall_names.h"

#include <algorithm>
#include <array>

namespace ebb {
namespace {

// As in tools/train/vocabulary.py, without what is a colour too: colours are values.
constexpr std::array kAdjectives = {
    "old",   "new",   "small", "large", "round",  "square", "quiet", "loud",   "heavy",  "light", "north",
    "south", "east",  "west",  "upper", "lower",  "main",   "spare", "hidden", "broken", "metal", "glass",
    "paper", "stone", "cold",  "warm",  "bright", "dark",   "wide",  "narrow", "wooden", "left",  "right",
    "inner", "outer", "front", "back",  "royal",  "rusty",  "first", "third",  "second", "last"};
constexpr std::array kNouns = {"door",     "gate",    "locker", "safe",     "vault",   "drawer",  "cabinet", "room",
                               "office",   "garage",  "server", "router",   "printer", "laptop",  "bicycle", "car",
                               "truck",    "boat",    "engine", "pump",     "valve",   "clock",   "lamp",    "desk",
                               "shelf",    "box",     "chest",  "trunk",    "folder",  "account", "project", "report",
                               "meeting",  "invoice", "ticket", "order",    "parcel",  "station", "tower",   "bridge",
                               "shipment", "tunnel",  "garden", "platform", "cellar",  "attic",   "kitchen", "library",
                               "workshop", "studio",  "archive"};
constexpr std::array kFirstNames = {"Alice",  "Bob",    "Carla",  "David", "Elena",  "Felix", "Grace", "Hugo",  "Irene",
                                    "Jonas",  "Karen",  "Leo",    "Maria", "Nathan", "Olga",  "Peter", "Quinn", "Rosa",
                                    "Simon",  "Tara",   "Umar",   "Vera",  "Walter", "Xenia", "Yusuf", "Zoe",   "Anna",
                                    "Boris",  "Clara",  "Daniel", "Emma",  "Frank",  "Gina",  "Henry", "Iris",  "Jack",
                                    "Kira",   "Louis",  "Mona",   "Nina",  "Oscar",  "Paula", "Ralph", "Sara",  "Tom",
                                    "Ursula", "Victor", "Wendy",  "Yara",  "Zack"};
constexpr std::array kCities = {"Paris",  "London", "Rome",   "Madrid", "Berlin",  "Vienna", "Prague",  "Lisbon",
                                "Dublin", "Oslo",   "Athens", "Cairo",  "Tokyo",   "Seoul",  "Delhi",   "Lima",
                                "Quito",  "Havana", "Boston", "Denver", "Austin",  "Dallas", "Chicago", "Toronto",
                                "Sydney", "Perth",  "Lagos",  "Tunis",  "Nairobi", "Baku"};
constexpr std::array kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                "July",    "August",   "September", "October", "November", "December"};
constexpr std::array kColors = {"red",    "blue",   "green", "yellow", "black", "white",  "silver",  "golden",
                                "purple", "orange", "pink",  "brown",  "grey",  "violet", "crimson", "turquoise"};
constexpr std::array kAnimals = {"cat",   "dog",   "horse",  "rabbit", "parrot",   "turtle",   "falcon",
                                 "tiger", "wolf",  "bear",   "beaver", "hedgehog", "squirrel", "lizard",
                                 "heron", "raven", "salmon", "panda",  "koala",    "badger"};
constexpr std::array kFoods = {"soup",   "bread",  "cheese",   "pasta",  "rice",  "salad", "curry",
                               "pizza",  "pie",    "cake",     "apple",  "mango", "peach", "plum",
                               "cherry", "tomato", "mushroom", "pepper", "onion", "honey"};
constexpr std::array kServiceNouns = {"service", "server", "cluster", "project", "module", "queue"};
constexpr std::string_view kConsonants = "bcdfghjklmnprstvwz";
constexpr std::string_view kVowels = "aeiou";
constexpr std::string_view kHexDigits = "0123456789abcdef";

// Names drawn before a set counts as used up: some hundred are left then at most, of sets that are far larger.
constexpr int kDraws = 4000;

// Python's zlib.crc32.
std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

char fold(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string capitalised(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') {
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  }
  return text;
}

std::string folded(std::string text) {
  std::ranges::transform(text, text.begin(), fold);
  return text;
}

// Whether a word goes on at text[i], seen in this direction: by a letter, or by a mark with a letter behind it.
bool goes_on(std::string_view text, std::ptrdiff_t i, std::ptrdiff_t direction) {
  const auto at = [&](std::ptrdiff_t k) {
    return k >= 0 && k < std::ssize(text) ? text[static_cast<std::size_t>(k)] : ' ';
  };
  if (is_letter_or_digit(at(i))) return true;
  return std::string_view("-.,:/").find(at(i)) != std::string_view::npos && is_letter_or_digit(at(i + direction));
}

template <std::size_t N>
std::size_t index_of(const std::array<const char*, N>& words, const std::string& word) {
  return static_cast<std::size_t>(std::ranges::find(words, word) - words.begin());
}

// The words of "the north gate" without the article.
std::string without_article(const std::string& name) { return name.starts_with("the ") ? name.substr(4) : name; }

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// All words that differ in one letter, vowel for vowel.
std::vector<std::string> one_letter_off(const std::string& word) {
  std::vector<std::string> others;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string_view letters = kVowels.find(fold(word[i])) != std::string_view::npos ? kVowels : kConsonants;
    for (const char letter : letters) {
      if (letter == fold(word[i])) continue;
      std::string other = word;
      other[i] = letter;
      others.push_back(word.front() == fold(word.front()) ? other : capitalised(std::move(other)));
    }
  }
  return others;
}

std::vector<std::string> near_names(NameKind kind, const std::string& name) {
  std::vector<std::string> others;
  const std::vector<std::string> words = split_at_spaces(without_article(name));
  switch (kind) {
    case NameKind::kThing:
      for (const char* adjective : kAdjectives) others.push_back("the " + (adjective + (" " + words[1])));
      for (const char* noun : kNouns) others.push_back("the " + words[0] + " " + noun);
      break;
    case NameKind::kPerson:
      for (const char* first : kFirstNames) others.push_back(first + (" " + words[1]));
      for (const std::string& last : one_letter_off(words[1])) others.push_back(words[0] + " " + last);
      break;
    case NameKind::kService:
      for (const std::string& word : one_letter_off(words[0])) others.push_back("the " + word + " " + words[1]);
      break;
    case NameKind::kHex:
      for (std::size_t i = 0; i < name.size(); ++i) {
        for (const char digit : kHexDigits) others.push_back(std::string(name).replace(i, 1, 1, digit));
      }
      break;
    default: others = one_letter_off(name);
  }
  std::erase(others, name);
  return others;
}

}  // namespace

bool is_closed(NameKind kind) {
  return kind == NameKind::kColor || kind == NameKind::kAnimal || kind == NameKind::kFood;
}

std::size_t find_word(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) { return fold(a) == fold(b); };
  for (auto from = text.begin();; ++from) {
    from = std::search(from, text.end(), word.begin(), word.end(), same);
    if (from == text.end() || word.empty()) return std::string_view::npos;
    const std::ptrdiff_t at = from - text.begin();
    if (!goes_on(text, at - 1, -1) && !goes_on(text, at + std::ssize(word), 1)) return static_cast<std::size_t>(at);
  }
}

bool NameSource::belongs(NameKind kind, const std::string& name) const {
  const auto split = static_cast<std::uint32_t>(split_);
  const auto of_list = [&](std::size_t i) { return i % 2 == split; };
  const auto is_half = [&](const std::string& text) { return crc32(text) / 8 % 2 == split; };
  const auto is_held_out = [&](const std::string& text) { return crc32(text) % 8 == 0 && is_half(text); };
  switch (kind) {
    case NameKind::kColor: return of_list(index_of(kColors, name));
    case NameKind::kAnimal: return of_list(index_of(kAnimals, name));
    case NameKind::kFood: return of_list(index_of(kFoods, name));
    case NameKind::kThing: return is_held_out(without_article(name));
    case NameKind::kPerson: return is_held_out(name);
    case NameKind::kService: return is_held_out(folded(split_at_spaces(without_article(name)).front()));
    case NameKind::kTown:
    case NameKind::kWord: return is_held_out(folded(name));
    case NameKind::kPlace: {
      const std::size_t city = index_of(kCities, name);
      return city < kCities.size() ? of_list(city) : is_held_out(folded(name));
    }
    case NameKind::kCode: return name.front() >= 'a' && name.front() <= 'z' ? is_held_out(name) : is_half(name);
    case NameKind::kNumber:
    case NameKind::kAmount:
    case NameKind::kDay:
    case NameKind::kHex:
    case NameKind::kUuid: return is_half(name);
  }
  return false;
}

std::string NameSource::pseudo_word() {
  std::string word;
  for (std::size_t n = 2 + below(3) / 2; n > 0; --n) {
    word += kConsonants[below(kConsonants.size())];
    word += kVowels[below(kVowels.size())];
    if (below(10) < 3) word += std::string_view("lnrst")[below(5)];
  }
  return word;
}

std::string NameSource::make(NameKind kind) {
  const auto one_of = [&](const auto& words) { return std::string(words[below(words.size())]); };
  const auto digits = [&](std::size_t n, std::string_view of) {
    std::string text;
    while (text.size() < n) text += of[below(of.size())];
    return text;
  };
  switch (kind) {
    case NameKind::kThing: {
      const std::string adjective = one_of(kAdjectives);
      return "the " + adjective + " " + one_of(kNouns);
    }
    case NameKind::kPerson: {
      std::string last;
      for (int i = 0; i < 2; ++i) {
        last += kConsonants[below(kConsonants.size())];
        last += kVowels[below(kVowels.size())];
      }
      last += std::string_view("nsrlk")[below(5)];
      return one_of(kFirstNames) + " " + capitalised(last);
    }
    case NameKind::kTown: return capitalised(pseudo_word());
    case NameKind::kService: {
      const std::string word = capitalised(pseudo_word());
      return "the " + word + " " + one_of(kServiceNouns);
    }
    case NameKind::kPlace: return below(2) == 0 ? one_of(kCities) : capitalised(pseudo_word());
    case NameKind::kCode: {
      const std::size_t form = below(4);
      if (form == 0) return pseudo_word();
      if (form > 1) return make(NameKind::kNumber);
      std::string letters = pseudo_word().substr(0, 3);
      std::ranges::transform(letters, letters.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
      return letters + "-" + digits(3, "0123456789");
    }
    case NameKind::kNumber: {
      const std::string first = std::to_string(1 + below(9));
      return first + digits(3 + below(3), "0123456789");
    }
    case NameKind::kAmount: return std::to_string(100 + below(900));
    case NameKind::kDay: {
      const std::string month = one_of(kMonths);
      return month + " " + std::to_string(1 + below(28));
    }
    case NameKind::kWord: return pseudo_word();
    case NameKind::kHex: return digits(8, kHexDigits);
    case NameKind::kUuid: {
      std::string name = digits(8, kHexDigits);
      for (const std::size_t n : {4U, 4U, 4U, 12U}) name += "-" + digits(n, kHexDigits);
      return name;
    }
    case NameKind::kColor: return one_of(kColors);
    case NameKind::kAnimal: return one_of(kAnimals);
    case NameKind::kFood: return one_of(kFoods);
  }
  return {};
}

std::optional<std::string> NameSource::draw(NameKind kind) {
  for (int i = 0; i < kDraws; ++i) {
    std::string name = make(kind);
    if (belongs(kind, name) && used_.insert(folded(name)).second) return name;
  }
  return std::nullopt;
}

std::optional<std::string> NameSource::draw_twin(NameKind kind, const std::string& name) {
  std::vector<std::string> others = near_names(kind, name);
  std::erase_if(others,
                [&](const std::string& other) { return !belongs(kind, other) || used_.contains(folded(other)); });
  if (others.empty()) return std::nullopt;
  std::string twin = others[below(others.size())];
  used_.insert(folded(twin));
  return twin;
}

}  // namespace ebb
