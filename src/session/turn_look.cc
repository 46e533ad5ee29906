// When a turn looks for what it should have back, and what comes of it: before its prompt, before and behind the tail, while its reply
// is written.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/to_size.h"
#include "session/question_span.h"
#include "session/turn.h"

namespace ebb {
namespace {

// The share of the budget that a prompt's tail has at most, beside what comes back for it, which may have half. More: in small
// budgets one leaves for the other.
constexpr std::int32_t kTailShare = 4;

// What of a prompt's end stays since it asks: of the budget that share, and so many tokens; the last of it. More: in small budgets what answers has
// no room beside it. Less: of many questions those in front are not seen when it is their turn.
constexpr double kAskingShare = 0.375;
constexpr std::int32_t kMostAsking = 1024;

// Of a reply's tokens, the last of which are asked at each look. More: a look takes longer, and comes less often. Less: a head that looks at
// cold blocks whatever is said cannot be told.
constexpr std::int32_t kWritingQueries = 4;

// As many tokens of a reply take as long as looks may before the reply has tokens to show for it: an advance, which is paid back before there
// are more. More: short turns of long sessions take longer. Less: of short answers, whose value is the next word, nothing is found.
constexpr double kEarlyTokens = 16.0;

// Of the early ones so many come after each token, and the others a few apart. More: of an answer to several questions only the first is looked
// after. Less: of a short one, whose value is the next word, nothing is found.
constexpr std::int32_t kEachToken = 12;
constexpr std::int32_t kEarlyStride = 3;

// Tokens between two of them at least, once the early ones are over. More: a second fact is found late in the sentence that wants it. Less:
// the same queries are asked twice.
constexpr std::int32_t kLeastStride = 2;

// And at most, which no reply has.
constexpr double kMostStride = 1e8;

// The share of writing that looks by words take, and how many tokens' worth of them there is at first. More: names in a long text are each looked
// for. Less: of an answer that tells ten things some are not.
constexpr double kWordShare = 0.02;
constexpr double kFirstWordTokens = 4.0;

// What a token of a prompt takes, beside one that is computed alone.
constexpr double kPromptToken = 0.2;

// What is named comes, whoever chooses the rest, and where nobody does.
RecallAsk bringing_named(RecallAsk ask) {
  const auto by_name = [](const auto& selector) { return selector->asks().names; };
  if (ask.names.empty() || std::ranges::any_of(ask.selectors.all(), by_name)) return ask;
  std::string list(kIdentity);
  if (ask.selectors.all().empty()) {
    ask.max_blocks = 0;
  } else {
    list += "+" + ask.selectors.text();
  }
  ask.selectors = SelectorList::parse(list).value();
  return ask;
}

// A part of the prompt under way has no name before it is there: what a later look knows is not unknown.
void forget_unknown(std::span<RecallLook> looks, const RecallLook& later) {
  if (later.selector != kIdentity) return;
  for (RecallLook& look : looks) {
    std::erase_if(look.unknown_names, [&](const std::string& name) {
      return std::ranges::find(later.unknown_names, name) == later.unknown_names.end();
    });
  }
}

}  // namespace

std::int32_t Turn::n_tail_tokens(const Session& session) {
  return std::min(kTailTokens, session.budget_tokens() / kTailShare);
}

void Turn::recall(RecallAsk ask) {
  ask_ = bringing_named(std::move(ask));
  has_looked_ = false;
  // What fits its budget is not looked through.
  const bool lets_go = session_->has_cold() || n_blocks_to_come() > session_->budget_blocks();
  if (lets_go && ask_.selectors.asks_meanings() && !ask_.cues.empty()) session_->begin_meanings(ask_.cues);
  const bool asks_queries = asks_before() && ask_.max_blocks != 0 && ask_.selectors.asks_queries();
  queries_ = asks_queries ? session_->make_tail_queries(kTailQueries) : nullptr;
  n_tail_looks_left_ = kMostTailLooks;
  // What came back must not leave for the rest; and a border, so that whole blocks of others may follow.
  const std::int32_t size = session_->block_size();
  const std::int32_t n_before = (session_->end() + n_pending()).value() - n_tail_tokens(*session_);
  const Position begin(std::max(0, n_before) / size * size);
  tail_begin_ = std::max(begin, session_->end());
  looks_at_tail_ = begin > session_->end();
}

void Turn::recall(std::span<const BlockIndex> blocks) {
  if (session_->options().remains == Remains::kNothing) return;
  std::vector<BlockIndex>& kept = session_->holds().kept;
  std::int32_t n_left = n_most_recalled() * session_->shape().frames_per_block();
  for (const BlockIndex block : kept) n_left -= n_frames_kept(block);
  std::vector<BlockIndex> wanted;
  for (const BlockIndex block : blocks) {
    if (std::ranges::find(kept, block) != kept.end()) continue;
    if (n_left <= 0) {
      away_.try_emplace(block, Away::kNoRoom);
      continue;
    }
    kept.push_back(block);
    n_left -= n_frames_kept(block);
    if (!missing_heads(block).empty()) wanted.push_back(block);
  }
  if (session_->options().remains == Remains::kTokens) return recompute_.add(wanted);
  to_recall_.insert(to_recall_.end(), wanted.begin(), wanted.end());
}

// Where it is wanted and is not.
HeadSet Turn::missing_heads(BlockIndex block) const {
  const HeadSet missing = session_->hot().missing_heads(block);
  const auto found = in_heads_.find(block);
  return found == in_heads_.end() ? missing : missing & found->second;
}

// All of its own, or those that it has and those that are to come.
std::int32_t Turn::n_frames_kept(BlockIndex block) const {
  const std::int32_t n_hot = session_->hot().n_hot_frames(block);
  return in_heads_.contains(block) ? n_hot + missing_heads(block).count() : session_->shape().frames_per_block();
}

// Those that chose it say in which heads, from now on.
void Turn::note_heads(std::span<const RecallLook> looks, BlockIndex block) {
  const std::vector<std::int32_t> heads = chosen_heads(looks, block);
  in_heads_.erase(block);
  // What is computed again in a block is written in all of them.
  if (heads.empty() || session_->can_renew()) return;
  HeadSet& own = in_heads_.try_emplace(block, session_->shape().n_heads()).first->second;
  for (const std::int32_t head : heads) own.add(to_size(head));
}

// Half of the budget stays for what the turn brings, until only the tail is left of that: then the room of the tail and of the reply's
// first block does.
std::int32_t Turn::n_most_recalled() const {
  const std::int32_t n_blocks = session_->budget().n_blocks(session_->hot().shape());
  const std::int32_t n_half = std::max(1, n_blocks / 2);
  if (session_->end() < tail_begin_) return n_half;
  const std::int32_t n_before = tail_begin_.value() / session_->block_size();
  return std::max(n_half, n_blocks - (n_blocks_to_come() - n_before) - 1);
}

// What the turn asks for does not leave for its prompt; and what its prompt let go comes back before its last tokens.
std::optional<Turn::Ready> Turn::look() {
  if (reply_begin_) return look_while_writing();
  const bool is_tail = has_looked_ && looks_at_tail_ && session_->end() >= tail_begin_;
  if (!asks_before() || (has_looked_ && !is_tail)) return std::nullopt;
  const bool lost_none = is_tail && stats_.acts.evicted.size() == n_evicted_at_look_;
  if (!lost_none && !session_->has_meanings_for(ask_)) return Ready::kWaits;
  has_looked_ = true;
  if (is_tail) {
    looks_at_tail_ = false;
    if (lost_none) return std::nullopt;
    // Chosen anew: what was asked back for the prompt's sake may be of no use to its end.
    session_->holds().kept.clear();
  }
  recall_found(session_->look(ask_, is_tail ? Moment::kBeforeTail : Moment::kBeforePrompt), {});
  n_evicted_at_look_ = stats_.acts.evicted.size();
  return Ready::kMore;
}

// Beside what earlier looks found, which are to choose once more.
void Turn::recall_found(std::vector<RecallLook> looks, std::span<const RecallLook> earlier) {
  note_came();
  std::vector<RecallLook> all(earlier.begin(), earlier.end());
  all.insert(all.end(), looks.begin(), looks.end());
  const std::vector<BlockIndex> wanted = full_of(all);
  for (const BlockIndex block : wanted) note_heads(all, block);
  recall(wanted);
  note_asking(looks);
  add_looks(std::move(looks));
}

void Turn::add_looks(std::vector<RecallLook> looks) {
  for (const RecallLook& look : looks) forget_unknown(stats_.looks, look);
  stats_.looks.insert(stats_.looks.end(), std::make_move_iterator(looks.begin()), std::make_move_iterator(looks.end()));
}

// What came back since the last looks came for them.
void Turn::note_came() {
  const std::span recalled = std::span(stats_.acts.recalled).subspan(n_recalls_told_);
  const std::span recomputed = std::span(stats_.acts.recomputed).subspan(n_recomputed_told_);
  for (RecallLook& look : std::span(stats_.looks).subspan(n_looks_told_)) {
    for (RecallLook::Told& told : look.told) {
      const auto came_in = [&](std::span<const BlockIndex> blocks) {
        return std::ranges::find(blocks, told.considered.block) != blocks.end();
      };
      told.came = came_in(recalled) || came_in(recomputed);
      const auto away = away_.find(told.considered.block);
      const bool is_wanted = told.considered.verdict == Verdict::kRecall || told.considered.verdict == Verdict::kAsks;
      if (is_wanted && !told.came && away != away_.end()) told.away = away->second;
    }
  }
  away_.clear();
  n_looks_told_ = stats_.looks.size();
  n_recalls_told_ = stats_.acts.recalled.size();
  n_recomputed_told_ = stats_.acts.recomputed.size();
}

// What the prompt's end asks stays until the reply has answered it: one that no longer sees which things it was asked leaves some out.
void Turn::hold_question() {
  if (!ask_.looks()) return;
  const auto n_most = static_cast<std::int32_t>(kAskingShare * session_->budget_tokens());
  const std::int32_t n_last = std::min({n_most, kMostAsking, session_->end().value()});
  const std::span<const Token> last = session_->tokens().last(to_size(n_last));
  const std::int32_t n_asking = n_asking_tokens(last, session_->vocabulary(), ask_.cues);
  if (n_asking > 0) session_->holds().question = {session_->end() - n_asking, session_->end()};
}

// The prompt's last tokens are computed: where their queries look for what is cold, it is brought in and they are pending again.
bool Turn::look_behind_tail() {
  if (queries_ == nullptr || queries_->n_rows() == 0 || n_tail_looks_left_ == 0) return false;
  --n_tail_looks_left_;
  const Position begin = std::max(first_, queries_->rows().begin);
  std::vector<RecallLook> looks = session_->look(ask_, Moment::kBehindTail, queries_.get(), {begin, session_->end()});
  const std::size_t n_before = to_recall_.size() + recompute_.n_blocks();
  // What words found may have to make room for what the queries are sure of.
  const std::vector<RecallLook>& told = stats_.looks;
  const auto first =
      std::ranges::find(told, told.empty() ? Moment::kBehindTail : told.back().moment, &RecallLook::moment);
  const std::vector<RecallLook> earlier(first, told.end());
  std::erase_if(session_->holds().kept, [&](BlockIndex block) { return is_told(earlier, block); });
  recall_found(std::move(looks), earlier);
  if (to_recall_.size() + recompute_.n_blocks() == n_before) {
    n_tail_looks_left_ = 0;
    return false;
  }
  take_back(begin);
  return true;
}

void Turn::take_back(Position begin) {
  const std::int32_t n_tokens = session_->end() - begin;
  stats_.acts += session_->take_back(begin);
  pending_.untake(n_tokens);
  end_ = begin;
  stats_.n_computed_again += n_tokens;
  std::int32_t n_taken = 0;
  for (Taken& taken : taken_) {
    n_taken += intersect(taken.span, {begin, begin + n_tokens}).n_tokens();
    taken.span = intersect(taken.span, {first_, begin});
  }
  n_new_ -= n_tokens - n_taken;
}

// --- while writing ---

// The queries that the step under way adds to: of a prompt's last tokens, and of a reply's those that the next look will ask.
TailQueries* Turn::queries_of_step(std::int32_t n_tokens) const {
  if (!reply_begin_) return n_pending() - n_tokens < kTailQueries ? queries_.get() : nullptr;
  const bool is_asked = session_->end() + n_tokens + kWritingQueries > next_look_;
  return is_asked && ask_.selectors.writing_share() > 0.0 ? queries_.get() : nullptr;
}

double Turn::cost_of_look() const { return session_->cost_of_look(kWritingQueries); }

void Turn::begin_writing() {
  word_tokens_ = kFirstWordTokens;
  if (ask_.selectors.writing_share() > 0.0) wait_for_look();
}

// A short answer to a long prompt finds what its own words look for: that is a small part of what the prompt took. Whatever came early, all
// looks together then wait until the turn pays for them.
void Turn::wait_for_look() {
  const double share = ask_.selectors.writing_share();
  const double n_of_prompt = kPromptToken * n_new_;
  look_tokens_ += cost_of_look();
  if (look_tokens_ <= kEarlyTokens + share * n_of_prompt) {
    next_look_ = session_->end() + (n_looks_due_ < kEachToken ? 1 : kEarlyStride);
  } else {
    const double n_written = std::clamp(look_tokens_ / share - n_of_prompt, 0.0, kMostStride);
    next_look_ = std::max(session_->end() + kLeastStride, *reply_begin_ + static_cast<std::int32_t>(n_written));
  }
  ++n_looks_due_;
}

// Words whose sentence was looked for are not looked for again in it: they have ended once. And where a sentence goes on as what was asked,
// not each of its words is.
void Turn::note_said(Token token) {
  // To compute what words find again takes longer than writing on.
  const bool has_bytes = session_->options().remains == Remains::kBytes;
  if (!has_bytes || !asks_before() || ask_.max_blocks == 0 || !ask_.selectors.asks_reply_words()) return;
  word_tokens_ += kWordShare;
  const Result<std::string> piece = session_->vocabulary().piece(token);
  if (!piece.ok()) return;
  saying_.add(*piece);
  if (session_->has_cold()) saying_.end_words([this](const std::string& word) { return session_->is_rare(word); });
}

// An answer that goes on to a second fact looks for it. What comes is seen by the next token; those that asked are said already.
std::optional<Turn::Ready> Turn::look_while_writing() {
  std::vector<RecallLook> by_words = look_for_words();
  return recall_now(std::move(by_words), look_by_queries());
}

std::vector<RecallLook> Turn::look_for_words() {
  if (!saying_.has_ended_words() || word_tokens_ < session_->cost_of_words()) return {};
  const std::optional<Saying::News> news =
      saying_.find_news(ask_.cues, [this](const std::string& word) { return session_->rarity(word); });
  if (!news) return {};
  word_tokens_ -= session_->cost_of_words();
  const Stopwatch watch;
  SayingAsk saying{.text = saying_.sentence(),
                   .before = BlockIndex(session_->shape().n_blocks(tail_begin_.value())),
                   .asking = asking_};
  if (news->cue) {
    const Cue& cue = ask_.cues[*news->cue];
    saying.text = cue.text;
    saying.cue = &cue;
    saying.next = next_cue(ask_.cues, cue.place);
  }
  std::vector<RecallLook> looks = session_->look_for_words(ask_, saying);
  told_now_ = full_of(looks);
  ++stats_.writing.n;
  stats_.writing.ms += watch.elapsed_ms();
  return looks;
}

std::vector<RecallLook> Turn::look_by_queries() {
  if (queries_ == nullptr || session_->end() < next_look_ || ask_.selectors.writing_share() == 0.0) return {};
  wait_for_look();
  if (!session_->has_cold() || queries_->n_rows() == 0) return {};
  const Stopwatch watch;
  const Position begin = std::max(queries_->rows().begin, session_->end() - kWritingQueries);
  std::vector<RecallLook> looks = session_->look(ask_, Moment::kWhileWriting, queries_.get(), {begin, session_->end()});
  ++stats_.writing.n;
  stats_.writing.ms += watch.elapsed_ms();
  return looks;
}

// What was chosen: what is said now is not all there yet.
std::vector<BlockIndex> Turn::full_of(std::span<const RecallLook> looks) const {
  std::vector<BlockIndex> full = chosen_blocks(looks);
  std::erase_if(full, [&](BlockIndex block) { return !session_->hot().is_full(block); });
  return full;
}

void Turn::note_asking(std::span<const RecallLook> looks) {
  for (const RecallLook& look : looks) {
    if (look.selector != kQuestionLook) continue;
    asked_now_ = full_of({&look, 1});
    for (const BlockIndex block : asking_blocks({&look, 1})) {
      if (std::ranges::find(asking_, block) == asking_.end()) asking_.push_back(block);
    }
  }
}

// What is being answered stays, and what tells of it; then what the queries use, hot or not, before what was wanted for the words before. But a sentence
// that says other words than were asked with may yet speak of what was asked: what that found stays before what these find.
std::optional<Turn::Ready> Turn::recall_now(std::vector<RecallLook> by_words, std::vector<RecallLook> by_queries) {
  const bool is_said_anew = !by_words.empty();
  const std::vector<BlockIndex> used = full_of(by_queries);
  std::vector<BlockIndex> seen = used;
  std::erase_if(seen, [this](BlockIndex block) { return is_hot(block); });
  if (!is_said_anew && seen.empty()) return std::nullopt;
  const bool is_there = std::ranges::all_of(told_now_, [this](BlockIndex block) { return is_hot(block); });
  const bool any_cold = !seen.empty() || (is_said_anew && !is_there);
  note_asking(by_words);
  std::vector<RecallLook> looks = std::move(by_words);
  looks.insert(looks.end(), std::make_move_iterator(by_queries.begin()), std::make_move_iterator(by_queries.end()));
  if (is_said_anew) {
    for (const BlockIndex block : told_now_) note_heads(looks, block);
  }
  for (const BlockIndex block : seen) note_heads(looks, block);
  note_came();
  const std::vector<BlockIndex> before = std::exchange(session_->holds().kept, {});
  recall(asked_now_);
  if (saying_.repeats_cue()) {
    recall(told_now_);
    recall(used);
  } else {
    std::vector<BlockIndex> found = before;
    std::erase_if(found, [&](BlockIndex block) { return !is_found_for_what_is_asked(stats_.looks, block); });
    recall(used);
    recall(found);
    recall(told_now_);
  }
  recall(before);
  if (any_cold && ++stats_.writing.n_found <= WritingLooks::kMostTold) add_looks(std::move(looks));
  return Ready::kMore;
}

}  // namespace ebb
