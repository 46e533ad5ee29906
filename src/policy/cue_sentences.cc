#include "policy/cue_sentences.h"

#include <algorithm>
#include <iterator>

#include "base/split_text.h"
#include "policy/cues.h"
#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// An outer paragraph of a long message that asks farther than kCueEdgeBytes from its end is one of its ends where it is no longer. More: the
// document's own paragraphs ask. Less: what stands in front of rules for the answer is not found.
constexpr std::size_t kMostEdgeBytes = 2048;

// A sentence of fewer words is no cue by itself, and part of the one before it: "And in spring?"
constexpr std::size_t kLeastWords = 3;
// A line of more words is something to be read. More: the last of a document without marks is taken for what is asked. Fewer: long
// questions without any are not.
constexpr std::size_t kMostWords = 48;

// Between paragraphs.
constexpr std::string_view kBreak = "\n\n";

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
  const auto join = [](Sentence& one, const Sentence& beside) {
    one.asks |= one.demands && beside.asks && one.is_quoted == beside.is_quoted;
  };
  for (std::size_t i = 1; i < sentences.size(); ++i) join(sentences[i], sentences[i - 1]);
  for (std::size_t i = sentences.size(); i-- > 1;) join(sentences[i - 1], sentences[i]);
}

// How far quotation marks are open at a place in a text, whose paragraphs close them.
QuoteMarks quotes_before(std::string_view text, std::size_t at) {
  const std::size_t paragraph = text.rfind("\n\n", at);
  const std::size_t begin = paragraph == std::string_view::npos ? 0 : paragraph;
  QuoteMarks quotes;
  quotes.read(text.substr(begin, at - begin));
  return quotes;
}

}  // namespace

std::vector<Sentence> split_sentences(std::string_view text, CutAt cut, QuoteMarks quotes) {
  std::vector<Sentence> sentences;
  const bool is_document = cut != CutAt::kNowhere;
  std::size_t begin = 0;
  bool begins_line = cut != CutAt::kBegin;
  const std::size_t last_line = cut == CutAt::kEnd ? text.size() : last_line_begin(text);
  const auto is_quoted = [&](std::string_view sentence) {
    return is_document && (quotes.are_open() || QuoteMarks::begin(sentence));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = sentence_mark_bytes(text, at);
    if (n == 0) {
      ++at;
      continue;
    }
    const std::string_view mark = text.substr(at, n);
    const std::string_view sentence = text.substr(begin, at - begin);
    const bool ends_line = mark == "\n";
    const bool goes_on = !is_document || !begins_line;
    if (ends_line && begins_line && sentence.empty()) quotes.close();
    add_sentence({.text = sentence,
                  .asks = is_question_mark(mark),
                  .is_line = begins_line && ends_line,
                  .is_quoted = is_quoted(sentence)},
                 goes_on, sentences);
    quotes.read(sentence);
    at += n;
    begin = at;
    begins_line = ends_line;
    if (begin == last_line) quotes.close();
  }
  const std::string_view rest = text.substr(begin);
  add_sentence({.text = rest, .is_line = begins_line && cut != CutAt::kEnd, .is_quoted = is_quoted(rest)},
               !is_document || !begins_line, sentences);
  join_questions(sentences);
  return sentences;
}

Ends find_ends(std::string_view text) {
  Ends ends{.n_first = first_bytes(text, kCueEdgeBytes).size(),
            .last_begin = text.size() - last_bytes(text, kCueEdgeBytes).size()};
  const std::size_t paragraph_end = text.find(kBreak, ends.n_first);
  const bool reaches_first = paragraph_end <= kMostEdgeBytes && paragraph_end < ends.last_begin;
  if (reaches_first && has_question(text.substr(ends.n_first, paragraph_end - ends.n_first)) &&
      !has_question(text.substr(0, ends.n_first))) {
    ends.n_first = paragraph_end;
  }
  const std::size_t before = text.rfind(kBreak, ends.last_begin);
  if (before == std::string_view::npos || before < ends.n_first) return ends;
  const std::size_t paragraph = before + kBreak.size();
  if (text.size() - paragraph <= kMostEdgeBytes && !has_question(text.substr(ends.last_begin)) &&
      has_question(text.substr(paragraph, ends.last_begin - paragraph))) {
    ends.last_begin = paragraph;
  }
  return ends;
}

namespace {

// A sentence, which is a view of the text, with the question mark behind it, if there is one.
std::string_view with_question_mark(std::string_view text, std::string_view sentence) {
  const auto end = static_cast<std::size_t>(sentence.data() - text.data()) + sentence.size();
  const std::size_t n = end < text.size() ? sentence_mark_bytes(text, end) : 0;
  const bool is_asked = n > 0 && is_question_mark(text.substr(end, n));
  return {sentence.data(), sentence.size() + (is_asked ? n : 0)};
}

}  // namespace

Within find_within(std::string_view text, const Ends& ends) {
  Within within;
  const auto& [n_first, last_begin] = ends;
  for (const std::string_view line : find_asked_lines(text)) {
    const auto begin = static_cast<std::size_t>(line.data() - text.data());
    const std::size_t end = begin + line.size();
    if (end <= n_first || begin >= last_begin) continue;
    const bool is_cut = begin < n_first || end > last_begin;
    if (!is_cut) ++within.n_lines;
    within.cuts_first |= begin < n_first;
    within.cuts_last |= end > last_begin;
    for (Sentence sentence : split_sentences(line, CutAt::kNowhere)) {
      const auto sentence_begin = static_cast<std::size_t>(sentence.text.data() - text.data());
      const std::size_t sentence_end = sentence_begin + sentence.text.size();
      if (sentence_end <= n_first || sentence_begin >= last_begin) continue;
      sentence.text = with_question_mark(text, sentence.text);
      sentence.is_within = true;
      sentence.is_cut_line = is_cut;
      if (sentence.asks || sentence.demands) within.sentences.push_back(sentence);
    }
  }
  std::ranges::reverse(within.sentences);
  return within;
}

namespace {

bool asks_anything(const Sentence& sentence) { return !sentence.is_quoted && (sentence.asks || sentence.demands); }

// Marks the sentences of one end that stand in its outermost paragraph, where that asks, and of those next to it where all of them ask; without a
// blank line, those of the outermost lines that do nothing but ask. From the outermost on.
template <class Iterator>
void mark_apart(std::string_view text, Iterator begin, Iterator end) {
  const auto paragraph_of = [&](const Sentence& sentence) {
    const std::size_t at = text.rfind(kBreak, static_cast<std::size_t>(sentence.text.data() - text.data()));
    return at == std::string_view::npos ? std::size_t{0} : at + 1;
  };
  const bool has_break = begin != end && paragraph_of(*begin) != paragraph_of(*std::prev(end));
  for (Iterator one = begin; one != end;) {
    Iterator next = one;
    bool any_ask = false;
    bool all_ask = true;
    for (; next != end && (has_break ? paragraph_of(*next) == paragraph_of(*one) : next == one); ++next) {
      any_ask |= next->asks && !next->is_quoted;
      all_ask &= asks_anything(*next);
    }
    if (!any_ask || !(all_ask || (has_break && one == begin))) return;
    for (; one != next; ++one) one->is_apart = true;
  }
}

}  // namespace

std::vector<Sentence> find_sentences(std::string_view text, const Ends& ends, const Within& within) {
  if (text.size() <= 2 * kCueEdgeBytes) {
    std::vector<Sentence> sentences = split_sentences(text, CutAt::kNowhere);
    std::ranges::reverse(sentences);
    return sentences;
  }
  std::vector<Sentence> first = split_sentences(text.substr(0, ends.n_first), CutAt::kEnd);
  const std::string_view end = text.substr(ends.last_begin);
  std::vector<Sentence> last = split_sentences(end, CutAt::kBegin, quotes_before(text, text.size() - end.size()));
  if (within.cuts_first && !first.empty()) first.pop_back();
  if (within.cuts_last && !last.empty()) last.erase(last.begin());
  if (!first.empty()) first.front().is_outermost = true;
  if (!last.empty()) last.back().is_outermost = true;
  for (std::vector<Sentence>* of_end : {&first, &last}) {
    for (Sentence& sentence : *of_end) {
      const auto begin = static_cast<std::size_t>(sentence.text.data() - text.data());
      sentence.is_within = begin >= kCueEdgeBytes && begin + sentence.text.size() + kCueEdgeBytes <= text.size();
      if (sentence.is_within) sentence.text = with_question_mark(text, sentence.text);
    }
  }
  // What is to be read may ask where it begins; "Tell me the owner of the mill" at the end, in a line by itself, asks as much.
  if (!last.empty() && last.back().demands && !last.back().is_quoted && line_demands(text, last.back().text)) {
    last.back().asks = true;
    join_questions(last);
  }
  mark_apart(text, first.begin(), first.end());
  mark_apart(text, last.rbegin(), last.rend());
  std::vector<Sentence> sentences;
  for (std::size_t i = 0; i < std::max(first.size(), last.size()); ++i) {
    if (i < last.size()) sentences.push_back(last[last.size() - 1 - i]);
    if (i < first.size()) sentences.push_back(first[i]);
  }
  return sentences;
}

}  // namespace ebb
