#include "policy/cues.h"

#include <algorithm>
#include <cstdint>

#include "base/split_text.h"
#include "policy/asking.h"
#include "policy/cue_sentences.h"
#include "policy/referring.h"
#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// Cues that are looked for. More: each costs a ranking, and the least of them say nothing. Fewer: of a message that asks for
// many things some are not found.
constexpr std::size_t kMostCues = 24;

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

// Of one text.
bool in_one_line(const Sentence& a, const Sentence& b) {
  const char* const from = std::min(a.text.data(), b.text.data());
  const char* const to = std::max(a.text.data(), b.text.data());
  return std::string_view(from, static_cast<std::size_t>(to - from)).find('\n') == std::string_view::npos;
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
  const bool any_apart = std::ranges::any_of(sentences, &Sentence::is_apart);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    // Where nothing tells, what stands outermost in a long message is likeliest asked.
    const bool is_outermost = !any_asks && (!is_long || i < 2);
    const bool is_asked = ends_ask ? sentences[i].asks : ends_demand ? sentences[i].demands : is_outermost;
    const bool is_outer_line = sentences[i].is_outermost && sentences[i].is_line;
    // What is there to be read stands in blocks word for word, and would find itself.
    if (is_long && !is_asked && !is_outer_line && any_asks) continue;
    const double of_asked = ends_ask || within.empty() || outer_demands ? 1.0 : kBesideWithin;
    const bool is_documents = any_apart && is_asked && !sentences[i].is_apart;
    add(sentences[i], is_documents    ? kBesideQuestion
                      : is_asked      ? of_asked
                      : is_outer_line ? kOuterLineWeight
                                      : kBesideQuestion);
  }
  const double share = weight_within(lines.n_lines, ends_ask, outer_demands);
  const auto leads = [&](const Sentence& sentence) {
    return sentence.is_cut_line && (!any_apart || std::ranges::any_of(sentences, [&](const Sentence& other) {
             return other.is_apart && in_one_line(other, sentence);
           }));
  };
  for (const Sentence& sentence : within) add(sentence, leads(sentence) ? 1.0 : share);
  return any_asks;
}

// What the last short message before one that is there to be read asks; much of what system texts demand is how to answer.
std::vector<Cue> find_cues_before(std::span<const SaidText> said) {
  std::vector<Cue> cues;
  std::int64_t place = 0;
  for (auto text = said.rbegin(); text != said.rend() && cues.empty(); ++text) {
    place -= std::ssize(text->text);
    if (!text->is_before || text->source == Source::kAssistant || text->text.size() > 2 * kCueEdgeBytes) continue;
    std::vector<Sentence> sentences = split_sentences(text->text, CutAt::kNowhere);
    std::ranges::reverse(sentences);
    for (const Sentence& sentence : sentences) {
      const bool is_to_be_found = text->source == Source::kUser || demands_to_be_told(sentence.text);
      if (!sentence.asks && !(sentence.demands && is_to_be_found)) continue;
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
