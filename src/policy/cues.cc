#include "policy/cues.h"

#include <algorithm>
#include <cstdint>

#include "base/split_text.h"
#include "policy/asking.h"
#include "policy/referring.h"
#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// Cues that are looked for. More: each costs a ranking, and the least of them say nothing. Fewer: of a message that asks for
// many things some are not found.
constexpr std::size_t kMostCues = 24;

// An outer paragraph of a long message that asks farther than kCueEdgeBytes from its end is one of its ends where it is no longer. More: the
// document's own paragraphs ask. Less: what stands in front of rules for the answer is not found.
constexpr std::size_t kMostEdgeBytes = 2048;

// A sentence of fewer words is no cue by itself, and part of the one before it: "And in spring?"
constexpr std::size_t kLeastWords = 3;
// A line of more words is something to be read. More: the last of a document without marks is taken for what is asked. Fewer: long
// questions without any are not.
constexpr std::size_t kMostWords = 48;

// What a sentence weighs beside those of its message that ask.
constexpr double kBesideQuestion = 0.25;
// What demands at the ends of a long message weighs where something asks between them, unless that is all that an outer line does: "Write short
// sentences", which finds what shares a common word, and sometimes "Tell me the code of the mill".
constexpr double kBesideWithin = 0.5;
// What a message weighs beside the next, and what is not the user's beside the user's. EVOKE has no such weights: these keep
// the last message first, and what a tool has just said before what was asked two calls ago.
constexpr double kOlder = 0.7;
constexpr double kNotTheUsers = 0.6;
// Of what a tool returned that is long and asks nothing, what its ends weigh where something else that was said since asks. More: what is there to be
// read hides what another result asks.
constexpr double kBesideAsking = 0.5;
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
  // Somebody in what is to be read says it.
  bool is_quoted = false;
  // Of a long message, between its ends; of a line that goes on into one of them.
  bool is_within = false;
  bool is_cut_line = false;
};

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

// The text may begin or go on beyond what is given.
enum class CutAt : std::uint8_t { kNowhere, kBegin, kEnd };

// How far quotation marks are open at a place in a text, whose paragraphs close them.
QuoteMarks quotes_before(std::string_view text, std::size_t at) {
  const std::size_t paragraph = text.rfind("\n\n", at);
  const std::size_t begin = paragraph == std::string_view::npos ? 0 : paragraph;
  QuoteMarks quotes;
  quotes.read(text.substr(begin, at - begin));
  return quotes;
}

// Of a list a word or two to a line go with what stands before them; of a document, which is to be read, they do not.
std::vector<Sentence> split_sentences(std::string_view text, CutAt cut, QuoteMarks quotes = {}) {
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

// Of a long message: cues stand before n_first and from last_begin on. Where an outer paragraph asks farther from its end of the message, as
// where how to answer stands beside what is asked, the end is as long as that paragraph.
struct Ends {
  std::size_t n_first = 0;
  std::size_t last_begin = 0;
};

Ends find_ends(std::string_view text) {
  constexpr std::string_view kBreak = "\n\n";
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

// A sentence, which is a view of the text, with the question mark behind it, if there is one.
std::string_view with_question_mark(std::string_view text, std::string_view sentence) {
  const auto end = static_cast<std::size_t>(sentence.data() - text.data()) + sentence.size();
  const std::size_t n = end < text.size() ? sentence_mark_bytes(text, end) : 0;
  const bool is_asked = n > 0 && is_question_mark(text.substr(end, n));
  return {sentence.data(), sentence.size() + (is_asked ? n : 0)};
}

// What lines between the ends of a long message ask, the last first; and of lines that an end cuts, what it has not whole.
struct Within {
  std::vector<Sentence> sentences;
  // Between the ends as a whole.
  std::size_t n_lines = 0;
  bool cuts_first = false;
  bool cuts_last = false;
};

// Each question with its mark, so that it is told from what answers in the same words. What is whole in an end is not told twice.
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

// The last first; of a long text its last, its first, the one before the last, and so on inwards.
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
  std::vector<Sentence> sentences;
  for (std::size_t i = 0; i < std::max(first.size(), last.size()); ++i) {
    if (i < last.size()) sentences.push_back(last[last.size() - 1 - i]);
    if (i < first.size()) sentences.push_back(first[i]);
  }
  return sentences;
}

// What somebody says in what is to be read asks nobody, where anything else asks.
void leave_quoted(std::vector<Sentence>& sentences, bool asks_within) {
  const bool any = asks_within || std::ranges::any_of(sentences, [](const Sentence& sentence) {
                     return !sentence.is_quoted && (sentence.asks || sentence.demands);
                   });
  for (Sentence& sentence : sentences) {
    if (sentence.is_quoted && any) sentence.asks = sentence.demands = false;
  }
}

// Lines between the ends beside ends that ask, or an outer line that demands: few may be meant, many are the document's.
double weight_within(std::size_t n_lines, bool ends_ask, bool outer_demands) {
  constexpr std::size_t kFew = 4;
  if (!ends_ask && !outer_demands) return 1.0;
  if (n_lines > kFew) return kBesideQuestion;
  return ends_ask ? kOuterLineWeight : 1.0;
}

struct SaidHow {
  double weight = 1.0;
  std::int64_t place = 0;
  // Something asks elsewhere: what people in it say asks nobody.
  bool is_asked = false;
};

// Whether anything in it asks or demands.
bool add_cues(const SaidText& said, const SaidHow& how, std::vector<Cue>& cues) {
  const bool is_long = said.text.size() > 2 * kCueEdgeBytes;
  Ends ends;
  Within lines;
  if (is_long) ends = find_ends(said.text);
  // Of what tools return, only what stands at its ends may be meant for who called them.
  if (is_long && said.source == Source::kUser) lines = find_within(said.text, ends);
  std::vector<Sentence> sentences = find_sentences(said.text, ends, lines);
  std::vector<Sentence>& within = lines.sentences;
  leave_quoted(sentences, how.is_asked || !within.empty());
  const auto asks_at_end = [](const Sentence& sentence) { return sentence.asks && sentence.is_cut_line; };
  const bool ends_ask = std::ranges::any_of(sentences, &Sentence::asks) || std::ranges::any_of(within, asks_at_end);
  const bool ends_demand = std::ranges::any_of(sentences, &Sentence::demands);
  if (ends_ask) std::erase_if(within, [](const Sentence& sentence) { return !sentence.asks; });
  const bool any_asks = ends_ask || ends_demand || !within.empty();
  const auto add = [&](const Sentence& sentence, double share) {
    cues.push_back({.text = std::string(sentence.text),
                    .weight = share * how.weight,
                    .place = how.place + (sentence.text.data() - said.text.data()),
                    .asks = sentence.asks,
                    .where = sentence.is_within ? SaidWhere::kWithin : SaidWhere::kAtEnds});
  };
  const bool outer_demands = !within.empty() && outer_line_demands(said.text);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    // Where nothing tells, what stands outermost in a long message is likeliest asked.
    const bool is_outermost = !any_asks && (!is_long || i < 2);
    const bool is_asked = ends_ask ? sentences[i].asks : ends_demand ? sentences[i].demands : is_outermost;
    const bool is_outer_line = sentences[i].is_outermost && sentences[i].is_line;
    // What is there to be read stands in blocks word for word, and would find itself.
    if (is_long && !is_asked && !is_outer_line && any_asks) continue;
    const double of_asked = ends_ask || within.empty() || outer_demands ? 1.0 : kBesideWithin;
    add(sentences[i], is_asked ? of_asked : is_outer_line ? kOuterLineWeight : kBesideQuestion);
  }
  const double share = weight_within(lines.n_lines, ends_ask, outer_demands);
  for (const Sentence& sentence : within) add(sentence, sentence.is_cut_line ? 1.0 : share);
  return any_asks;
}

// What the last short message before one that is there to be read asks; system texts demand much that is not to be found.
std::vector<Cue> find_cues_before(std::span<const SaidText> said) {
  std::vector<Cue> cues;
  std::int64_t place = 0;
  for (auto text = said.rbegin(); text != said.rend() && cues.empty(); ++text) {
    place -= std::ssize(text->text);
    if (!text->is_before || text->source == Source::kAssistant || text->text.size() > 2 * kCueEdgeBytes) continue;
    std::vector<Sentence> sentences = split_sentences(text->text, CutAt::kNowhere);
    std::ranges::reverse(sentences);
    for (const Sentence& sentence : sentences) {
      if (!sentence.asks && !(sentence.demands && text->source == Source::kUser)) continue;
      cues.push_back({.text = std::string(sentence.text),
                      .place = place + (sentence.text.data() - text->text.data()),
                      .asks = sentence.asks,
                      .where = SaidWhere::kBefore});
    }
  }
  return cues;
}

// Cues of one message.
struct CueRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

void weigh(std::span<const CueRange> ranges, double share, std::vector<Cue>& cues) {
  for (const CueRange& range : ranges) {
    for (std::size_t i = range.first; i < range.end; ++i) cues[i].weight *= share;
  }
}

// What the user asks leads where nothing that was said since asks anything, however many calls it took: their results are there to be
// read, and what the answer needs may stand in the first of them.
void lead_with_question(const CueRange& users, std::span<const CueRange> told, std::vector<Cue>& cues) {
  double most = 0.0;
  bool asks = false;
  bool others_ask = false;
  for (std::size_t i = 0; i < cues.size(); ++i) {
    const bool is_users = i >= users.first && i < users.end;
    asks |= is_users && cues[i].asks;
    others_ask |= i < users.first && cues[i].asks;  // the newest are the first
    if (is_users) most = std::max(most, cues[i].weight);
  }
  if (!asks || others_ask) return;
  weigh({&users, 1}, 1.0 / most, cues);
  weigh(told, kBesideAsking, cues);
}

}  // namespace

std::vector<Cue> find_cues(std::span<const SaidText> said) {
  const auto users = std::find_if(said.rbegin(), said.rend(),
                                  [](const SaidText& text) { return text.source == Source::kUser && !text.is_before; });
  const bool reads = users != said.rend() && users->text.size() > 2 * kCueEdgeBytes;
  std::vector<Cue> before;
  if (reads) before = find_cues_before(said);
  std::vector<Cue> cues;
  double weight = 1.0;
  std::int64_t place = 0;
  // The user's last message asks by itself; and its cues.
  bool asks = false;
  CueRange users_cues;
  // Cues of what is not the user's and asks nothing: of what is short, and of what is there to be read.
  std::vector<CueRange> told;
  std::vector<CueRange> to_read;
  for (auto text = said.rbegin(); text != said.rend() && !text->is_before; ++text, weight *= kOlder) {
    place -= std::ssize(text->text);
    const bool is_users = text->source == Source::kUser;
    if (text == users) {
      users_cues.first = cues.size();
      asks = add_cues(*text, {.weight = std::max(weight, kTask), .place = place, .is_asked = !before.empty()}, cues);
      users_cues.end = cues.size();
    } else if (cues.size() < 4 * kMostCues) {
      const std::size_t n_before = cues.size();
      // How the reply begins, where the request says that, is what it goes on to tell.
      const bool is_begun = text == said.rbegin() && text->source == Source::kAssistant;
      const double share = is_users || is_begun ? 1.0 : kNotTheUsers;
      const bool any_asks = add_cues(*text, {.weight = share * weight, .place = place}, cues);
      const bool is_long = text->text.size() > 2 * kCueEdgeBytes;
      if (any_asks || is_users || is_begun) continue;
      (is_long ? to_read : told).push_back({n_before, cues.size()});
    }
  }
  if (!reads) find_what_is_meant(said, std::span(cues).subspan(users_cues.first, users_cues.end - users_cues.first));
  if (std::ranges::any_of(cues, &Cue::asks)) weigh(to_read, kBesideAsking, cues);
  lead_with_question(users_cues, told, cues);
  if (!asks && !before.empty()) {
    for (Cue& cue : cues) cue.weight *= kBesideQuestion;
  }
  for (Cue& cue : before) {
    if (asks) cue.weight *= kBesideWithin;
    cues.push_back(std::move(cue));
  }
  std::ranges::stable_sort(cues, std::ranges::greater(), &Cue::weight);
  if (cues.size() > kMostCues) cues.resize(kMostCues);
  return cues;
}

std::vector<Cue> find_cues(std::string_view text) {
  const SaidText said{.text = std::string(text)};
  return find_cues({&said, 1});
}

std::string wanted_text(const Cue& cue) { return cue.about.empty() ? cue.text : cue.about + "\n" + cue.text; }

std::string_view bare_text(const Cue& cue) { return trimmed(cue.text); }

std::span<const Cue> leading_cues(std::span<const Cue> cues) {
  std::size_t n = 0;
  while (n < cues.size() && cues[n].weight >= kOuterLineWeight * cues.front().weight) ++n;
  return cues.first(n);
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
