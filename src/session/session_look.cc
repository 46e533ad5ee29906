// How a session looks for what is cold and should come: what it knows of its blocks, asked of each selector.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/to_size.h"
#include "policy/behind_question.h"
#include "policy/crowd.h"
#include "policy/links.h"
#include "session/session.h"

namespace ebb {
namespace {

// The share of the budget that the question has at most. More: in small budgets what answers it has no place beside it.
constexpr std::int32_t kQuestionShare = 4;

// What words speak of stands within so many tokens behind their block, of a small budget within that share of it, or in the block beside it where
// that is larger. More: what lies about takes the place of what else was found. Less: an identifier that lies across several small blocks comes
// half.
constexpr std::int32_t kReachTokens = 64;
constexpr std::int32_t kReachShare = 4;

// Where what is asked stands itself, it does not answer; and beside all of its words what answers would be little.
void leave_out(std::vector<CueRanking>& words, std::span<const BlockIndex> asking) {
  for (CueRanking& cue : words) {
    std::erase_if(cue.ranked,
                  [&](const Scored& scored) { return std::ranges::find(asking, scored.block) != asking.end(); });
  }
}

// With so much around it that no sentence of usual length is cut.
Passage passage_of(const Session& session, BlockIndex block) {
  constexpr std::int32_t kTokensAround = 24;
  const Span span = session.hot().span(block);
  const Position begin(std::max(0, span.begin.value() - kTokensAround));
  const Position end(std::min(session.end().value(), span.end.value() + kTokensAround));
  const auto text_until = [&](Position to) {
    return session.vocabulary().detokenize(session.tokens().subspan(begin.index(), to_size(to - begin)),
                                           SpecialTokens::kShow);
  };
  Result<std::string> text = text_until(end);
  const Result<std::string> before = text_until(span.begin);
  const Result<std::string> until = text_until(span.end);
  if (!text.ok() || !before.ok() || !until.ok()) return {};
  return {.text = *std::move(text), .begin = before->size(), .end = until->size()};
}

BlockTexts texts_of(const Session& session, const WordIndex& words) {
  return {.words = words, .passage = [&session](BlockIndex block) { return passage_of(session, block); }};
}

}  // namespace

std::unique_ptr<TailQueries> Session::make_tail_queries(std::int32_t n_rows) const {
  if (!finder_.makes_digests()) return nullptr;
  if (has_state()) return nullptr;
  return std::make_unique<TailQueries>(deps_.scorer->make_queries(n_rows));
}

std::vector<double> Session::missing_shares() const {
  std::vector<double> missing;
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const std::int32_t n_wanted = hot().wanted_heads(BlockIndex(b)).count();
    missing.push_back(hot().missing_heads(BlockIndex(b)).count() / std::max(1.0, static_cast<double>(n_wanted)));
  }
  return missing;
}

std::vector<BlockIndex> Session::named_blocks(const std::vector<std::string>& names,
                                              std::vector<std::string>& unknown) const {
  std::vector<BlockIndex> blocks;
  for (const std::string& name : names) {
    const std::vector<BlockIndex> named = find_blocks(name);
    if (named.empty()) unknown.push_back(name);
    for (const BlockIndex block : named) {
      if (std::ranges::find(blocks, block) == blocks.end()) blocks.push_back(block);
    }
  }
  return blocks;
}

bool Session::has_meanings_for(const RecallAsk& ask) {
  if (!ask.selectors.asks_meanings() || ask.cues.empty() || !has_cold()) return true;
  return meanings_.is_ready(missing_shares(), ask.selectors.most_wait_ms());
}

std::vector<RecallLook> Session::look(const RecallAsk& ask, Moment moment, const TailQueries* queries, Span rows) {
  std::vector<RecallLook> looks;
  if (options_.remains == Remains::kNothing) return looks;
  const std::vector<double> missing = missing_shares();
  const bool seeks_question = !goes_by_queries(moment) && ask.max_blocks != 0 && !ask.selectors.all().empty();
  const bool asks_words = !goes_by_queries(moment) &&
                          std::ranges::any_of(ask.selectors.all(), [](const auto& one) { return one->asks().words; });
  const Stopwatch ranking;
  std::vector<CueRanking> words;
  if (seeks_question || asks_words) words = finder_.rank(ask.cues);
  double words_ms = ranking.elapsed_ms();
  const BlockTexts texts = texts_of(*this, finder_.words());
  if (seeks_question && !ask.cues.empty()) {
    RecallLook question = look_for_question(ask.cues, words, moment);
    leave_out_questions(ask.cues, words, asking_blocks({&question, 1}), texts);
    if (!question.told.empty()) looks.push_back(std::move(question));
  }
  if (asks_words) {
    const Stopwatch reading;
    prefer_telling(ask.cues, words, texts);
    std::vector<CueRanking> linked = follow_links(ask.cues, words, texts);
    words.insert(words.end(), std::make_move_iterator(linked.begin()), std::make_move_iterator(linked.end()));
    words_ms += reading.elapsed_ms();
  }
  const std::int32_t reach = this->reach();
  const std::int32_t max_blocks = ask.most_blocks(block_size());
  for (const auto& selector : ask.selectors.all()) {
    const SelectorAsk wants = selector->asks();
    const bool wants_cues = wants.words || wants.meanings;
    if (wants.queries != goes_by_queries(moment) || (wants_cues && ask.cues.empty())) continue;
    if (moment == Moment::kWhileWriting && wants.writing == 0.0) continue;
    const Stopwatch watch;
    RecallLook look{.moment = moment, .selector = selector->name()};
    RecallEvidence evidence{.missing = missing, .max_blocks = max_blocks, .reach = reach};
    std::vector<BlockIndex> named;
    Finder::Shares scored;
    if (wants.names) evidence.named = named = named_blocks(ask.names, look.unknown_names);
    if (wants.words) evidence.words = words;
    if (wants.queries && queries != nullptr) {
      scored = finder_.score(*queries, rows, wants.form);
      evidence.shares = scored.shares;
    }
    std::vector<CueLikeness> meanings;
    if (wants.meanings) evidence.meanings = meanings = meanings_.rank(ask.cues);
    look.n_looked_at = static_cast<std::int32_t>(wants.names     ? named.size()
                                                 : wants.queries ? to_size(scored.n_scored)
                                                                 : missing.size());
    if (wants.meanings) look.n_looked_at = meanings_.n_known();
    look.told = tell(selector->select(evidence));
    look.ms = watch.elapsed_ms() + (wants.words ? words_ms : 0.0) + (wants.meanings ? meanings_.waited_ms() : 0.0);
    looks.push_back(std::move(look));
  }
  if (!goes_by_queries(moment)) meanings_.end_look();
  return looks;
}

std::vector<RecallLook> Session::look_for_words(const RecallAsk& ask, const SayingAsk& saying) {
  const Stopwatch watch;
  const auto unweighed = [](const Cue& cue) { return Cue{.text = cue.text, .about = cue.about, .where = cue.where}; };
  std::vector<Cue> cues = {saying.cue != nullptr ? unweighed(*saying.cue) : Cue{.text = std::string(saying.text)}};
  if (saying.next != nullptr) cues.push_back(unweighed(*saying.next));
  std::vector<CueRanking> words = finder_.rank(cues);
  const BlockTexts texts = texts_of(*this, finder_.words());
  std::vector<RecallLook> looks;
  if (saying.cue != nullptr) {
    RecallLook question = look_for_question(cues, words, Moment::kWhileWriting);
    leave_out_questions(cues, words, asking_blocks({&question, 1}), texts);
    if (!question.told.empty()) looks.push_back(std::move(question));
  }
  words.resize(1);
  leave_out(words, saying.asking);
  prefer_telling(std::span(cues).first(1), words, texts);
  std::vector<Scored>& ranked = words.front().ranked;
  std::erase_if(ranked, [&](const Scored& scored) { return scored.block >= saying.before; });
  if (ranked.empty()) return looks;
  const std::optional<BlockIndex> there = hot_of_best(ranked);
  if (there && saying.cue == nullptr) return looks;
  const std::vector<double> missing = missing_shares();
  const std::int32_t reach = this->reach();
  for (const auto& selector : ask.selectors.all()) {
    if (!selector->asks().reply_words) continue;
    RecallLook look{.moment = Moment::kWhileWriting,
                    .selector = selector->name(),
                    .n_looked_at = static_cast<std::int32_t>(missing.size())};
    // One passage: the block, the one before it and those behind it.
    const std::int32_t n_most = std::min(ask.most_blocks(block_size()), reach + 2);
    std::vector<Considered> chosen =
        selector->select({.missing = missing, .words = words, .max_blocks = n_most, .reach = reach});
    // What the sentence speaks of is there already: it stays before all else, and of the others what stands beside it comes.
    if (there) {
      std::erase_if(chosen, [&](const Considered& one) {
        return one.block.value() < there->value() - 1 || one.block.value() > there->value() + reach;
      });
      std::ranges::stable_partition(chosen, [&](const Considered& one) { return one.block == *there; });
    }
    look.told = tell(chosen);
    look.ms = watch.elapsed_ms();
    looks.push_back(std::move(look));
  }
  return looks;
}

// One of those that it may speak of; none: they all have left.
std::optional<BlockIndex> Session::hot_of_best(std::span<const Scored> ranked) const {
  for (const Scored& scored : ranked) {
    if (scored.score < ranked.front().score) break;
    if (hot().is_hot(scored.block)) return scored.block;
  }
  return std::nullopt;
}

std::vector<RecallLook::Told> Session::tell(const std::vector<Considered>& considered) const {
  std::vector<RecallLook::Told> told;
  for (const Considered& one : considered) told.push_back({.considered = one, .name = block_name(one.block)});
  return told;
}

std::int32_t Session::reach() const {
  return std::max(1, std::min(kReachTokens, budget_tokens() / kReachShare) / block_size());
}

// Where cues of a message may stand: what stands elsewhere in the same words answers. [from, to) of blocks, at most two.
std::vector<std::pair<BlockIndex, BlockIndex>> Session::find_ends(Span message) const {
  const std::int32_t first = hot().block_at(message.begin).value();
  const std::int32_t last = hot().block_at(std::min(message.end, end()) - 1).value();
  const auto n_bytes = [&](std::int32_t b) {
    const Result<std::string> text = block_text(BlockIndex(b));
    return text.ok() ? text->size() : to_size(block_size());
  };
  std::size_t n_first = 0;
  std::int32_t to = first;
  while (to <= last && n_first < kCueEdgeBytes) n_first += n_bytes(to++);
  // What is still to be computed has a byte a token at least.
  auto n_last = to_size(std::max(0, message.end - end()));
  std::int32_t from = last + 1;
  while (from > to && n_last < kCueEdgeBytes) n_last += n_bytes(--from);
  std::vector<std::pair<BlockIndex, BlockIndex>> ends = {{BlockIndex(first), BlockIndex(to)}};
  if (from == to) ends.front().second = BlockIndex(last + 1);
  if (from > to && from <= last) ends.emplace_back(BlockIndex(from), BlockIndex(last + 1));
  return ends;
}

// What is asked in front of what there is to read may have left by the end: whoever chooses the rest, the question is to be in sight, or as
// much of it as has a place.
RecallLook Session::look_for_question(std::span<const Cue> cues, std::span<const CueRanking> words,
                                      Moment moment) const {
  const Stopwatch watch;
  RecallLook look{.moment = moment, .selector = kQuestionLook};
  const auto& parts = said_.all();
  const auto last =
      std::find_if(parts.rbegin(), parts.rend(), [](const Part& part) { return part.source == Source::kUser; });
  if (last == parts.rend() || last->span.begin >= end()) return look;
  const std::int32_t n_most = std::max(1, budget_blocks() / kQuestionShare);
  std::vector<Considered> considered;
  const auto consider = [&](BlockIndex block) {
    if (std::ranges::find(considered, block, &Considered::block) != considered.end()) return;
    const bool has_place = moment == Moment::kWhileWriting || std::ssize(considered) < n_most;
    considered.push_back({.block = block, .score = 1.0, .verdict = has_place ? Verdict::kAsks : Verdict::kBeyond});
  };
  const auto look_in = [&](BlockIndex from, BlockIndex to, SaidWhere where) {
    look.n_looked_at += to.value() - from.value();
    for (const BlockIndex block : finder_.find_said(cues, words, {.from = from, .to = to, .where = where}))
      consider(block);
  };
  for (const auto& [from, to] : find_ends(last->span)) look_in(from, to, SaidWhere::kAtEnds);
  // Who asks is said where the message begins, before the question: without that a model takes it for something that it reads.
  const BlockIndex opening = hot().block_at(last->span.begin);
  const BlockIndex behind_opening(opening.value() + 1);
  if (std::ranges::find(considered, behind_opening, &Considered::block) != considered.end()) consider(opening);
  const auto look_in_part = [&](const Part& part, SaidWhere where) {
    const BlockIndex from = hot().block_at(part.span.begin);
    const BlockIndex back = hot().block_at(std::min(part.span.end, end()) - 1);
    look_in(from, BlockIndex(back.value() + 1), where);
  };
  const auto asks_in = [&](SaidWhere where) { return std::ranges::find(cues, where, &Cue::where) != cues.end(); };
  if (asks_in(SaidWhere::kWithin)) look_in_part(*last, SaidWhere::kWithin);
  if (asks_in(SaidWhere::kBefore)) {
    const auto of = [](Source source) { return [source](const Part& part) { return part.source == source; }; };
    if (const auto before = std::find_if(std::next(last), parts.rend(), of(Source::kUser)); before != parts.rend()) {
      look_in_part(*before, SaidWhere::kBefore);
    }
    if (const auto system = std::ranges::find_if(parts, of(Source::kSystem)); system != parts.end()) {
      look_in_part(*system, SaidWhere::kBefore);
    }
  }
  look.told = tell(considered);
  look.ms = watch.elapsed_ms();
  return look;
}

}  // namespace ebb
