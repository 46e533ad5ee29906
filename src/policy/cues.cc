#include "policy/cues.h"

#include <algorithm>
#include <cstdint>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// Cues that are looked for. More: each costs a ranking, and the least of them say nothing. Fewer: of a message that asks for
// many things some are not found.
constexpr std::size_t kMostCues = 24;

// A sentence of fewer words is no cue by itself, and part of the one before it: "And in spring?"
constexpr std::size_t kLeastWords = 3;
// A line of more words is something to be read. More: the last of a document without marks is taken for what is asked. Fewer: long
// questions without any are not.
constexpr std::size_t kMostWords = 48;

// What a sentence weighs beside those of its message that ask.
constexpr double kBesideQuestion = 0.25;
// What a message weighs beside the next, and what is not the user's beside the user's. EVOKE has no such weights: these keep
// the last message first, and what a tool has just said before what was asked two calls ago.
constexpr double kOlder = 0.7;
constexpr double kNotTheUsers = 0.6;
// And what the user said last weighs at least, however many calls it took since.
constexpr double kTask = 0.3;

struct Sentence {
  std::string_view text;
  // With a question mark; or by how it begins.
  bool asks = false;
  bool demands = false;
  // A line by itself, without an end mark.
  bool is_line = false;
  // The first or the last of a long message.
  bool is_outermost = false;
};

// What begins a sentence that asks without a question mark, and what may stand in front of that. English alone: of other languages
// a question mark and the place tell.
constexpr std::string_view kDemands[] = {
    "answer", "calculate", "compare",  "compute", "count",     "describe",  "explain", "extract",   "find",
    "give",   "how",       "identify", "list",    "name",      "quote",     "recall",  "repeat",    "report",
    "return", "say",       "show",     "state",   "summarise", "summarize", "tell",    "translate", "what",
    "when",   "where",     "which",    "who",     "whom",      "whose",     "why",     "write"};
constexpr std::string_view kOpeners[] = {"also", "and",  "but",    "finally", "first", "now",
                                         "ok",   "okay", "please", "so",      "then"};

bool demands_something(std::string_view sentence) {
  for (const std::string& word : split_words(sentence)) {
    if (std::ranges::find(kDemands, word) != std::end(kDemands)) return true;
    if (std::ranges::find(kOpeners, word) == std::end(kOpeners)) return false;
  }
  return false;
}

bool is_question_mark(std::string_view mark) { return mark == "?" || mark == "\uff1f" || mark == "\u061f"; }

void add_sentence(const Sentence& sentence, bool goes_on, std::vector<Sentence>& sentences) {
  const std::size_t n_words = split_words(sentence.text).size();
  if (n_words == 0) {
    if (sentence.asks && !sentences.empty()) sentences.back().asks = true;
    return;
  }
  if (n_words < kLeastWords && goes_on && !sentences.empty()) {
    // Both are views of one text, so that what lies between them comes along.
    Sentence& before = sentences.back();
    const char* const end = sentence.text.data() + sentence.text.size();
    before.text = {before.text.data(), static_cast<std::size_t>(end - before.text.data())};
    before.asks |= sentence.asks;
    return;
  }
  sentences.push_back(sentence);
  sentences.back().demands = demands_something(sentence.text);
  sentences.back().is_line &= n_words <= kMostWords;
}

// "Where does Ada live? Tell me the code of the red box. When is the second page due?": what demands beside what asks does so too. Elsewhere
// it may tell: "When the winter came".
void join_questions(std::vector<Sentence>& sentences) {
  for (std::size_t i = 1; i < sentences.size(); ++i) {
    sentences[i].asks |= sentences[i].demands && sentences[i - 1].asks;
  }
  for (std::size_t i = sentences.size(); i-- > 1;) {
    sentences[i - 1].asks |= sentences[i - 1].demands && sentences[i].asks;
  }
}

// The text may begin or go on beyond what is given.
enum class CutAt : std::uint8_t { kNowhere, kBegin, kEnd };

// Of a list a word or two to a line go with what stands before them; of a document, which is to be read, they do not.
std::vector<Sentence> split_sentences(std::string_view text, CutAt cut) {
  std::vector<Sentence> sentences;
  const bool is_document = cut != CutAt::kNowhere;
  std::size_t begin = 0;
  bool begins_line = cut != CutAt::kBegin;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = sentence_mark_bytes(text, at);
    if (n == 0) {
      ++at;
      continue;
    }
    const std::string_view mark = text.substr(at, n);
    const bool ends_line = mark == "\n";
    const bool goes_on = !is_document || !begins_line;
    add_sentence(
        {.text = text.substr(begin, at - begin), .asks = is_question_mark(mark), .is_line = begins_line && ends_line},
        goes_on, sentences);
    at += n;
    begin = at;
    begins_line = ends_line;
  }
  add_sentence({.text = text.substr(begin), .is_line = begins_line && cut != CutAt::kEnd}, !is_document || !begins_line,
               sentences);
  join_questions(sentences);
  return sentences;
}

// No character is cut in two.
std::string_view last_bytes(std::string_view text, std::size_t n) {
  std::size_t begin = text.size() - std::min(n, text.size());
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  return text.substr(begin);
}

std::string_view first_bytes(std::string_view text, std::size_t n) {
  std::size_t end = std::min(n, text.size());
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

// The last first; of a long text its last, its first, the one before the last, and so on inwards.
std::vector<Sentence> find_sentences(std::string_view text) {
  if (text.size() <= 2 * kCueEdgeBytes) {
    std::vector<Sentence> sentences = split_sentences(text, CutAt::kNowhere);
    std::ranges::reverse(sentences);
    return sentences;
  }
  std::vector<Sentence> first = split_sentences(first_bytes(text, kCueEdgeBytes), CutAt::kEnd);
  std::vector<Sentence> last = split_sentences(last_bytes(text, kCueEdgeBytes), CutAt::kBegin);
  if (!first.empty()) first.front().is_outermost = true;
  if (!last.empty()) last.back().is_outermost = true;
  std::vector<Sentence> sentences;
  for (std::size_t i = 0; i < std::max(first.size(), last.size()); ++i) {
    if (i < last.size()) sentences.push_back(last[last.size() - 1 - i]);
    if (i < first.size()) sentences.push_back(first[i]);
  }
  return sentences;
}

void add_cues(const SaidText& said, double weight, std::int64_t place, std::vector<Cue>& cues) {
  const std::vector<Sentence> sentences = find_sentences(said.text);
  const bool any_asks = std::ranges::any_of(sentences, &Sentence::asks);
  const bool any_demands = std::ranges::any_of(sentences, &Sentence::demands);
  const bool is_long = said.text.size() > 2 * kCueEdgeBytes;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    // Where nothing tells, what stands outermost in a long message is likeliest asked.
    const bool is_outermost = !is_long || i < 2;
    const bool is_asked = any_asks ? sentences[i].asks : any_demands ? sentences[i].demands : is_outermost;
    const bool is_outer_line = sentences[i].is_outermost && sentences[i].is_line;
    // What is there to be read stands in blocks word for word, and would find itself.
    if (is_long && !is_asked && !is_outer_line && (any_asks || any_demands)) continue;
    const double share = is_asked ? 1.0 : is_outer_line ? kOuterLineWeight : kBesideQuestion;
    cues.push_back({.text = std::string(sentences[i].text),
                    .weight = share * weight,
                    .place = place + (sentences[i].text.data() - said.text.data()),
                    .asks = sentences[i].asks});
  }
}

}  // namespace

std::vector<Cue> find_cues(std::span<const SaidText> said) {
  std::vector<Cue> cues;
  double weight = 1.0;
  bool is_task_told = false;
  std::int64_t place = 0;
  for (auto text = said.rbegin(); text != said.rend(); ++text, weight *= kOlder) {
    place -= std::ssize(text->text);
    const bool is_users = text->source == Source::kUser;
    if (is_users && !is_task_told) {
      is_task_told = true;
      add_cues(*text, std::max(weight, kTask), place, cues);
    } else if (cues.size() < 4 * kMostCues) {
      add_cues(*text, is_users ? weight : kNotTheUsers * weight, place, cues);
    }
  }
  std::ranges::stable_sort(cues, std::ranges::greater(), &Cue::weight);
  if (cues.size() > kMostCues) cues.resize(kMostCues);
  return cues;
}

std::vector<Cue> find_cues(std::string_view text) {
  const SaidText said{.text = std::string(text)};
  return find_cues({&said, 1});
}

const Cue* next_cue(std::span<const Cue> cues, std::int64_t place) {
  const Cue* next = nullptr;
  for (const Cue& cue : cues) {
    if (cue.weight < cues.front().weight) break;
    if (cue.asks && cue.place > place && (next == nullptr || cue.place < next->place)) next = &cue;
  }
  return next;
}

}  // namespace ebb
