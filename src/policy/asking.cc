#include "policy/asking.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// What begins a sentence that asks without a question mark, and what may stand in front of that.
constexpr std::string_view kDemands[] = {
    "answer", "calculate", "compare",  "compute", "count",     "describe",  "explain", "extract",   "find",
    "give",   "how",       "identify", "list",    "name",      "quote",     "recall",  "repeat",    "report",
    "return", "say",       "show",     "state",   "summarise", "summarize", "tell",    "translate", "what",
    "when",   "where",     "which",    "who",     "whom",      "whose",     "why",     "write"};
constexpr std::string_view kTells[] = {"tell", "give", "show"};
constexpr std::string_view kListeners[] = {"me", "us"};
constexpr std::string_view kFinds[] = {"extract", "find", "identify", "list", "name", "quote", "state"};
constexpr std::string_view kFoundThings[] = {"all",   "each",  "every", "how",  "the",   "what", "when",
                                             "where", "which", "who",   "whom", "whose", "why"};
constexpr std::string_view kOpeners[] = {"also", "and",  "but",    "finally", "first", "now",
                                         "ok",   "okay", "please", "so",      "then"};

// A line of more words that does not only ask is a paragraph. More: prose that ends with a question is taken for one. Fewer: what somebody
// says before asking is.
constexpr std::size_t kMostLineWords = 64;

// What demands says so in its first words, which so many bytes hold.
constexpr std::size_t kFirstBytes = 40;

// A sentence of fewer words says nothing beside a question: "By the way:".
constexpr std::size_t kLeastSaidWords = 3;

constexpr std::string_view kLineSpace = " \t\r";
// What stands around a line that is put by itself: lists, headings, emphasis.
constexpr std::string_view kLineMarkup = " \t\r*_#-`";

std::string_view strip_line(std::string_view text, std::string_view of) {
  const std::size_t begin = std::min(text.find_first_not_of(of), text.size());
  const std::size_t end = text.find_last_not_of(of);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

// How a line asks; the surer the less.
enum class LineForm : std::uint8_t { kQuestion, kTellingQuestion, kDemand, kNone };
constexpr std::size_t kLineForms = 3;

bool begins_small(std::string_view line) { return !line.empty() && line.front() >= 'a' && line.front() <= 'z'; }

// The lines around one; empty: a paragraph, or the text, begins or ends there.
struct Around {
  std::string_view before;
  std::string_view behind;
};

// What its sentences do, by themselves.
struct Speech {
  bool asks = false;
  bool tells = false;
  // Once something was asked.
  bool tells_behind = false;
  bool only_demands = true;

  void add(std::string_view sentence, bool with_mark) {
    const std::size_t n_words = split_words(sentence).size();
    if (n_words == 0) return;
    const bool demands = demands_something(sentence);
    asks |= with_mark;
    const bool says = !with_mark && !demands && n_words >= kLeastSaidWords;
    tells |= says;
    tells_behind |= says && asks;
    only_demands &= demands && !with_mark;
  }
};

// Neither "x = y ? 1 : 0" nor "page?id=3".
bool ends_question(std::string_view line, std::size_t at, std::size_t n_bytes) {
  if (n_bytes > 1) return true;
  const std::string_view rest = line.substr(at + 1);
  return rest.find_first_not_of("?!)\"'") == std::string_view::npos ||
         (rest.front() == ' ' && at > 0 && line[at - 1] != ' ');
}

Speech speech_of(std::string_view line) {
  Speech speech;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t n = sentence_mark_bytes(line, at);
    if (n > 0) {
      speech.add(line.substr(begin, at - begin), is_question_mark(line.substr(at, n)) && ends_question(line, at, n));
      begin = at + n;
    }
    at += std::max<std::size_t>(n, 1);
  }
  speech.add(line.substr(begin), false);
  return speech;
}

bool only_demands(std::string_view line) {
  return split_words(line).size() <= kMostLineWords && speech_of(line).only_demands;
}

// What demands something stands alone: steps of a guide do so line by line, and so does code.
LineForm form_of(std::string_view line, const Around& around) {
  const std::size_t n_words = split_words(line).size();
  if (n_words < kLeastSaidWords) return LineForm::kNone;
  const bool is_alone = around.before.empty() && around.behind.empty();
  // It goes on from the line before it, which a margin cut. Whether that one has an end mark says nothing: rows of tables and logs have none.
  if (!around.before.empty() && begins_small(line)) return LineForm::kNone;
  const Speech speech = speech_of(line);
  if (speech.asks && !speech.tells) return LineForm::kQuestion;
  if (n_words > kMostLineWords) return LineForm::kNone;
  if (speech.asks && !speech.tells_behind) return LineForm::kTellingQuestion;
  return is_alone && !speech.asks && speech.only_demands ? LineForm::kDemand : LineForm::kNone;
}

bool may_ask(std::string_view line) {
  for (const std::string_view mark : {"?", "\uff1f", "\u061f"}) {
    if (line.find(mark) != std::string_view::npos) return true;
  }
  return demands_something(line.substr(0, kFirstBytes));
}

}  // namespace

bool is_question_mark(std::string_view mark) { return mark == "?" || mark == "\uff1f" || mark == "\u061f"; }

bool has_question(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = sentence_mark_bytes(text, at);
    if (n > 0 && is_question_mark(text.substr(at, n))) return true;
    at += std::max<std::size_t>(n, 1);
  }
  return false;
}

bool demands_something(std::string_view sentence) {
  for (const std::string& word : split_words(sentence)) {
    if (std::ranges::find(kDemands, word) != std::end(kDemands)) return true;
    if (std::ranges::find(kOpeners, word) == std::end(kOpeners)) return false;
  }
  return false;
}

bool demands_to_be_told(std::string_view sentence) {
  const std::vector<std::string> words = split_words(sentence);
  const auto is_of = [](const auto& list) {
    return [&list](const std::string& word) { return std::ranges::find(list, word) != std::end(list); };
  };
  auto word = std::ranges::find_if_not(words, is_of(kOpeners));
  if (word == words.end()) return false;
  if (is_of(kTells)(*word)) {
    ++word;
    if (word == words.end() || !is_of(kListeners)(*word)) return false;
  } else if (!is_of(kFinds)(*word)) {
    return false;
  }
  return ++word != words.end() && is_of(kFoundThings)(*word);
}

std::size_t last_line_begin(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  const std::size_t before = end == std::string_view::npos ? end : text.rfind('\n', end);
  return before == std::string_view::npos ? text.size() : before + 1;
}

bool line_demands(std::string_view text, std::string_view sentence) {
  const auto at = static_cast<std::size_t>(sentence.data() - text.data());
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return only_demands(text.substr(begin, text.find('\n', at) - begin));
}

bool outer_line_demands(std::string_view text) {
  const std::string_view lines = strip_line(text, " \t\r\n");
  if (lines.empty()) return false;
  return only_demands(lines.substr(0, lines.find('\n'))) || only_demands(lines.substr(lines.rfind('\n') + 1));
}

void QuoteMarks::read(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') is_straight_open_ = !is_straight_open_;
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("\u201c") || rest.starts_with("\u00ab")) ++n_open_;
    if (rest.starts_with("\u201d") || rest.starts_with("\u00bb")) n_open_ = std::max(0, n_open_ - 1);
  }
}

bool QuoteMarks::begin(std::string_view text) {
  const std::string_view line = strip_line(text, kLineMarkup);
  for (const std::string_view mark : {"\"", "'", ">", "\u201c", "\u201e", "\u2018", "\u00ab", "\u2014", "\u2013"}) {
    if (line.starts_with(mark)) return true;
  }
  return false;
}

std::vector<std::string_view> find_asked_lines(std::string_view text) {
  std::vector<std::string_view> by_form[kLineForms];
  QuoteMarks quotes;
  std::string_view before;
  const auto line_at = [&](std::size_t begin) {
    if (begin >= text.size()) return std::string_view();
    return strip_line(text.substr(begin, text.find('\n', begin) - begin), kLineSpace);
  };
  const std::size_t last_line = last_line_begin(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view line = line_at(begin);
    if (begin == last_line) quotes.close();
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
    if (line.empty()) quotes.close();
    if (!quotes.are_open() && may_ask(line) && !QuoteMarks::begin(line)) {
      const LineForm form = form_of(strip_line(line, kLineMarkup), {.before = before, .behind = line_at(begin)});
      if (form != LineForm::kNone) by_form[static_cast<std::size_t>(form)].push_back(strip_line(line, kLineMarkup));
    }
    quotes.read(line);
    before = line;
  }
  for (std::vector<std::string_view>& lines : by_form) {
    if (!lines.empty()) return lines;
  }
  return {};
}

}  // namespace ebb
