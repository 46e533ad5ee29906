#include "session/turn.h"

#include <algorithm>
#include <utility>

namespace ebb {
namespace {

// Tokens that a grafted run has at least. Fewer: steps are cut into small ones for little. More: short unchanged stretches
// between edits are computed again.
constexpr std::int32_t kLeastGraft = 32;

}  // namespace

std::optional<Reuse> find_reuse(std::string_view name) {
  const auto* const found = std::ranges::find(kReuseNames, name, &std::pair<std::string_view, Reuse>::first);
  return found == kReuseNames.end() ? std::nullopt : std::optional(found->second);
}

std::string_view name_of(Reuse reuse) {
  return std::ranges::find(kReuseNames, reuse, &std::pair<std::string_view, Reuse>::second)->first;
}

Turn::Turn(Session& session, Prompt prompt) : Turn(session, std::move(prompt), 0, session.take_unfinished()) {}

// The first n_held tokens of the prompt stand in the session or wait in it.
Turn::Turn(Session& session, Prompt prompt, std::int32_t n_held, std::vector<Token> waiting)
    : session_(&session),
      pending_(std::move(waiting), prompt, n_held),
      first_(session.end()),
      end_(session.end()),
      recompute_(session),
      renewal_(session),
      reread_(session) {
  n_prompt_ = n_pending();
  session.holds() = Holds();
  session.begin_prompt(n_prompt_);
  session.say(prompt, n_held, session.end() + (n_pending() - (prompt.n_tokens() - n_held)));
  session.let_go_cleared({Position(0), session.end()}, stats_.acts);
}

// A message that was answered before and is to be answered again would see what is hot now. Its end is computed once more, with what it asks for
// in sight, as that of a new one is.
Match Turn::leave_tail(const Session& session, const Prompt& history, std::span<const Token> held, Match match) {
  // What fits comes back whole.
  const bool fits = history.n_tokens() <= session.budget_tokens();
  if (fits || !session.has_cold() || session.has_state()) return match;
  // What was said since the assistant last spoke: what a tool has returned beside it is new, and its calls are not.
  std::int32_t begin = 0;
  std::int32_t end = 0;
  bool was_assistant = false;
  for (const PromptPart& part : history.parts()) {
    const bool is_assistant = part.source == Source::kAssistant;
    if (was_assistant && !is_assistant) begin = end;
    was_assistant = is_assistant;
    end += part.n_tokens;
  }
  // What it began to say goes on as it was written.
  if (was_assistant) return match;
  const std::int32_t n_back = match.n_said - std::max(begin, history.n_tokens() - n_tail_tokens(session));
  if (n_back <= 0 || n_back > match.n_held) return match;
  const auto n = static_cast<std::size_t>(n_back);
  const std::span<const Token> said = history.tokens().first(static_cast<std::size_t>(match.n_said));
  const bool is_same = std::ranges::equal(said.last(n), held.first(static_cast<std::size_t>(match.n_held)).last(n));
  return is_same ? Match{.n_held = match.n_held - n_back, .n_said = match.n_said - n_back} : match;
}

Turn Turn::resume(Session& session, const Prompt& history, const ResumeOptions& options) {
  EBB_CHECK(history.n_tokens() > 0, "a history without a token");
  std::vector<Token> held(session.tokens().begin(), session.tokens().end());
  held.insert(held.end(), session.unfinished().begin(), session.unfinished().end());
  std::vector<Span> replies;
  for (const Part& part : session.parts()) {
    if (part.source == Source::kAssistant) replies.push_back(part.span);
  }
  // The last one is computed, for its logits.
  const std::span<const Token> said = history.tokens().first(history.tokens().size() - 1);
  Match match = match_history(session.vocabulary(), held, replies, said, options.same_reply);
  const Match whole = match;
  if (options.looks_again) match = leave_tail(session, history, held, match);
  // What is taken back is to be computed.
  const bool may_graft = options.reuse != Reuse::kExact && match == whole && session.can_graft();
  const Position end = session.end();
  Acts acts;
  std::vector<Token> waiting = session.take_unfinished();
  std::optional<std::vector<Donor>> donors;
  std::vector<Token> before;
  std::optional<Reliances> reliances;
  if (options.reuse == Reuse::kFresh) session.note_reliances();
  if (match.n_held < end.value()) {
    // What remains may fit the trained context again though the session once outgrew it: then positions are exact again from
    // the store's records, and what was computed beside moved blocks is computed anew.
    const Position exact = session.find_exact_end(Position(match.n_held));
    const bool fits = history.n_tokens() + session.block_size() <= session.n_ctx_train();
    const std::int32_t n_same = count_common(held, {}, said);
    const bool begins_anew = fits && session.moved() && exact.value() <= n_same;
    if (begins_anew) match = {.n_held = exact.value(), .n_said = exact.value()};
    if (may_graft) {
      reliances = session.reliances();
      if (reliances) reliances->end_at(end);
      before.assign(held.begin() + match.n_held, held.begin() + end.value());
      donors = session.donors(Position(match.n_held));
    }
    const Position stays(match.n_held);
    acts += begins_anew ? session.cut_anew(stays) : session.cut(stays);
    // What a state lacks up to there, first.
    waiting = session.take_unfinished();
  } else {
    session.forget_parts(Position(match.n_held));
    waiting.resize(static_cast<std::size_t>(match.n_held - end.value()));
  }
  Turn turn(session, history, match.n_said, std::move(waiting));
  turn.stats_.acts += acts;
  if (donors) {
    turn.donors_ = *std::move(donors);
    std::vector<TokenRun> runs =
        find_runs(before, history.tokens().subspan(static_cast<std::size_t>(match.n_said)), kLeastGraft);
    for (TokenRun& run : runs) {
      run.from += match.n_held;
      run.to += match.n_held;
    }
    if (options.reuse == Reuse::kFresh) {
      const Span edited = {Position(match.n_held), end};
      turn.freshness_.emplace(reliances ? *std::move(reliances) : Reliances(session.block_size()), edited, runs);
    }
    // Of fresh reuse what is computed is what is stale.
    const std::int32_t n_recomputed = options.reuse == Reuse::kFresh ? 0 : options.n_recomputed;
    for (const TokenRun& run : runs) turn.add_graft(run, n_recomputed);
  }
  return turn;
}

// --- what comes before the prompt ---

void Turn::refill(std::int32_t n_reply_blocks, std::vector<Cue> cues, Holes holes) {
  refill_ = Refill{.n_reply_blocks = n_reply_blocks, .cues = std::move(cues), .holes = holes};
}

// --- steps ---

StepState Turn::step_state(std::int32_t max_rows) const {
  const HotSet& hot = session_->hot();
  return {.n_pending = n_pending(),
          .n_to_compute = std::min(n_ungrafted(), n_before_look()),
          .max_rows = hot.sight().fit(session_->end(), max_rows),
          .n_rows_left = hot.room_in_last_block(),
          .n_anchors_left = session_->n_ctx_train() - hot.next_anchor().value(),
          .may_open = session_->may_open(),
          .adopts = session_->options().adopts,
          .room = session_->room()};
}

std::int32_t Turn::n_frames_from_pool(std::int32_t max_rows) const {
  const HotSet& hot = session_->hot();
  const std::int32_t per_block = hot.shape().frames_per_block();
  std::int32_t n_frames = recompute_.n_frames();
  if (wave_) n_frames += session_->n_frames(*wave_);
  if (adoption_) n_frames += static_cast<std::int32_t>(adoption_->names.size()) * per_block;
  RoomPlan room = plan_room(session_->room(), n_frames);
  std::int32_t n_owed = 0;
  if (n_frames == 0 && n_pending() > 0) {
    const StepPlan step = plan_step(step_state(max_rows), hot.shape());
    room = step.room;
    if (step.n_tokens == n_pending()) n_owed = session_->n_frames_owed(room.n_new_frames);
  }
  const std::int32_t n_needed = std::max(n_owed, room.n_new_frames - room.n_evict_wanted);
  if (!refill_) return n_needed;
  // Filling holes lets nothing go: it takes what others leave free, up to the budget.
  const std::int32_t n_blocks = hot.n_blocks() + n_left_free();
  const std::int32_t n_most = session_->budget().n_frames - hot.n_hot_frames();
  return std::max(n_needed, std::min(n_blocks * per_block - hot.n_hot_frames(), n_most));
}

Result<SequenceInput> Turn::begin_step(std::int32_t max_rows) {
  EBB_CHECK(n_step_ == 0 && n_pending() + n_recomputing() + n_rereading() + static_cast<int>(to_recall_.size()) > 0 &&
                max_rows > 0,
            "{} tokens under way, {} pending, {} blocks to compute again", n_step_, n_pending(), n_recomputing());
  EBB_CHECK(session_->end() == end_, "two turns of one session: it ends at {}, this turn left it at {}",
            session_->end().value(), end_.value());
  prepare_all(max_rows);
  if (std::optional<SequenceInput> input = reread_.begin_step(max_rows, stats_.acts)) {
    n_step_ = static_cast<std::int32_t>(input->tokens.size());
    step_kind_ = StepKind::kReread;
    return *input;
  }
  if (reply_begin_) end_prompt();
  if (std::optional<SequenceInput> input = recompute_.begin_step(max_rows, stats_.acts)) {
    n_step_ = static_cast<std::int32_t>(input->tokens.size());
    step_kind_ = StepKind::kRecompute;
    return *input;
  }
  if (n_pending() == 0) return no_room();
  if (std::optional<SequenceInput> input = renewal_.begin_step(max_rows, stats_.acts)) {
    n_step_ = static_cast<std::int32_t>(input->tokens.size());
    step_kind_ = StepKind::kRenewal;
    return *input;
  }
  const HotSet& hot = session_->hot();
  // Tokens can't go behind a block whose own are not there.
  if (hot.n_blocks() > 0 && !hot.is_full(hot.last_block()) && !hot.is_hot(hot.last_block())) {
    was_refused_ = false;  // whoever asks again may find room that others gave back
    return session_->may_open() ? no_room() : no_open_block();
  }
  EBB_RETURN_IF_ERROR(session_->make_anchors_for(1, stats_.acts));
  const StepPlan plan = plan_step(step_state(max_rows), hot.shape());
  if (plan.n_tokens < 1) return no_open_block();
  if (plan.room.n_new_frames > 0) session_->make_room(plan.room, stats_.acts);
  // What is held more firmly than the policy would have it leaves room for fewer.
  const std::int32_t n_tokens =
      fit_rows(plan.n_tokens, hot.room_in_last_block(), session_->n_free_frames(), hot.shape());
  if (n_tokens < 1) return no_room();
  const std::int32_t n_mass_rows = n_observed(n_tokens, max_rows);
  EBB_RETURN_IF_ERROR(session_->open(n_tokens));
  n_step_ = n_tokens;
  step_anchor_ = hot.next_anchor();
  return SequenceInput{.tokens = pending_.first(n_tokens),
                       .first = session_->end(),
                       .anchor = hot.next_anchor(),
                       .tables = &hot.tables(),
                       .sight = hot.sight(),
                       .n_outputs = n_tokens == n_pending() ? 1 : 0,
                       .n_mass_rows = n_mass_rows,
                       .n_window_rows = session_->policy().asks().window,
                       .queries = session_->queries(),
                       .tail_queries = queries_of_step(n_tokens),
                       .n_slices = session_->policy().asks().n_slices(session_->block_size()),
                       .reliances = session_->begin_reliances()};
}

// Of the next n_tokens, before they are opened.
std::int32_t Turn::n_observed(std::int32_t n_tokens, std::int32_t max_rows) const {
  StepState step = step_state(max_rows);
  step.max_rows = session_->hot().sight().fit(session_->end() + n_tokens, max_rows);
  return session_->n_observed(n_tokens, {.n_tokens = n_pending() - n_tokens,
                                         .n_next_queries = plan_next_queries(step, n_tokens, session_->shape())});
}

void Turn::end_step(const std::optional<SequenceMass>& mass) {
  EBB_CHECK(n_step_ > 0, "no step under way");
  const std::int32_t n_tokens = std::exchange(n_step_, 0);
  const StepKind kind = std::exchange(step_kind_, StepKind::kPending);
  if (kind == StepKind::kReread) return reread_.end_step(mass);
  session_->end_step(mass);
  if (kind == StepKind::kRecompute) {
    recompute_.end_step(stats_.acts);
    if (recompute_.empty()) session_->settle_anchors(stats_.acts);
    return;
  }
  if (kind == StepKind::kRenewal) return renewal_.end_step();
  if (TailQueries* const queries = queries_of_step(n_tokens)) {
    queries->end_step(session_->end(), step_anchor_, n_tokens);
  }
  session_->append(pending_.first(n_tokens));
  take(n_tokens, std::nullopt);
  compare_passed();
  if (!reply_begin_) session_->note_unread(n_tokens);
  if (n_pending() > 0) return;
  if (!reply_begin_) {
    hold_question();
    if (look_behind_tail()) return;
  }
  count_origins();
  if (n_rereading() == 0) end_prompt();
}

void Turn::abandon_step() {
  switch (std::exchange(step_kind_, StepKind::kPending)) {
    case StepKind::kPending: session_->drop_rows(); break;
    case StepKind::kRecompute: recompute_.abandon_step(); break;
    case StepKind::kRenewal: renewal_.abandon_step(); break;
    case StepKind::kReread: reread_.abandon_step(); break;
  }
  n_step_ = 0;
}

void Turn::push(Token token) {
  if (n_rereading() == 0) end_prompt();
  if (!reply_begin_) {
    reply_begin_ = session_->end() + n_pending();
    session_->begin_reply(*reply_begin_);
    begin_writing();
  }
  session_->extend_reply(1);
  session_->holds().reply = {*reply_begin_, session_->end() + n_pending() + 1};
  ++stats_.n_generated;
  pending_.push(token);
  note_said(token);
}

const TurnStats& Turn::settle() {
  EBB_CHECK(n_step_ == 0, "{} tokens under way", n_step_);
  recompute_.stop();
  renewal_.stop();
  stats_.n_renewed = renewal_.n_tokens();
  // Blocks may have come whose turn ends before its next step.
  if (std::exchange(came_, false)) session_->settle_anchors(stats_.acts);
  count_origins();
  stats_.n_computed = n_computed();
  note_came();
  end_prompt();
  stats_.reply = session_->take_budget_use();
  session_->holds() = Holds();
  session_->put_unfinished(pending_.rest());
  pending_.take(n_pending());
  return stats_;
}

// Pending tokens before the next graft.
std::int32_t Turn::n_ungrafted() const {
  return grafts_.empty() ? n_pending() : std::min(n_pending(), grafts_.front().to.begin - session_->end());
}

// Pending tokens before those that look again; all of them where nothing will have left by then.
std::int32_t Turn::n_before_look() const {
  if (!looks_at_tail_ || !asks_before() || tail_begin_ <= session_->end()) return n_pending();
  const HotSet& hot = session_->hot();
  const std::int32_t n_blocks = hot.shape().n_blocks(tail_begin_.value()) - session_->n_blocks();
  const bool lets_go = stats_.acts.evicted.size() > n_evicted_at_look_ ||
                       session_->n_free_frames() < n_blocks * hot.shape().frames_per_block();
  return lets_go ? tail_begin_ - session_->end() : n_pending();
}

// The next n_tokens stand in the session now; computed, where no origin is given.
void Turn::take(std::int32_t n_tokens, std::optional<Origin> origin) {
  const Span span = intersect({end_, end_ + n_tokens}, {first_, first_ + n_prompt_});
  if (origin) {
    taken_.push_back({.span = span, .origin = *origin});
  } else {
    n_new_ += span.n_tokens();
  }
  pending_.take(n_tokens);
  end_ = end_ + n_tokens;
  session_->let_go_cleared({end_ - n_tokens, end_}, stats_.acts);
}

Status Turn::no_room() const {
  const HotSet& hot = session_->hot();
  std::int32_t n_pinned = 0;
  for (const BlockIndex block : hot.hot_blocks()) n_pinned += session_->is_pinned(block) ? 1 : 0;
  return error(
      Code::kOutOfBudget,
      "no room for a token: this session has {} hot frames of its {} ({} blocks of {} frames pinned, policy {}); "
      "raise the budget, unpin, or end other sessions",
      hot.n_hot_frames(), session_->budget().n_frames, n_pinned, hot.shape().frames_per_block(),
      session_->policy().name());
}

Status Turn::no_open_block() const {
  return error(
      Code::kOutOfBudget,
      "all {} blocks that may be open at once are, each of another session; end some, or open the engine with more "
      "open blocks",
      session_->n_most_open_blocks());
}

// --- counts ---

std::int32_t Turn::n_computed() const {
  std::int32_t n_tokens = n_new_ + recompute_.n_done();
  for (const BlockIndex block : stats_.acts.recomputed) n_tokens += session_->hot().span(block).n_tokens();
  return n_tokens;
}

std::int32_t Turn::n_to_compute() const { return std::max(0, n_prompt_ - (end_ - first_)) + recompute_.n_left(); }

std::int32_t Turn::n_unseen() const {
  if (!origins_counted_) return std::max(0, session_->end().value() - session_->n_visible_tokens() - n_computed());
  const std::int32_t n_left_again = n_computed() - stats_.from.n_computed();
  return stats_.from.n_unseen() - n_left_again;
}

// Before the first step of the reply; what was counted stands as it did when its first token was sampled.
void Turn::end_prompt() {
  if (std::exchange(in_prompt_, false)) stats_.prompt = session_->end_prompt(stats_.acts);
}

// Law 7: every token that was there before the turn and every one of its prompt is counted once, as it stands now.
void Turn::count_origins() {
  if (std::exchange(origins_counted_, true)) return;
  const Position prompt_end = std::min(end_, first_ + n_prompt_);
  auto taken = taken_.begin();
  for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
    const BlockIndex block(b);
    const Span span = session_->hot().span(block);
    const bool is_cleared = session_->is_cleared(block);
    const bool is_unseen = session_->is_unseen(block);
    if (is_cleared && !is_unseen) stats_.n_cleared_back += intersect(span, {Position(0), prompt_end}).n_tokens();
    const bool is_hole = is_unseen && !is_cleared;
    if (is_hole && session_->source(block) == Source::kSystem) stats_.n_instruction_holes += span.n_tokens();
    if (const Span before = intersect(span, {Position(0), first_}); !before.empty()) {
      stats_.from[session_->origin(block, stats_.acts)] += before.n_tokens();
    }
    const Span prompt = intersect(span, {first_, prompt_end});
    if (prompt.empty()) continue;
    if (is_unseen) {
      stats_.from[is_cleared ? Origin::kCleared : Origin::kHole] += prompt.n_tokens();
      continue;
    }
    std::int32_t n_new = prompt.n_tokens();
    while (taken != taken_.end() && taken->span.end <= prompt.begin) ++taken;
    for (auto run = taken; run != taken_.end() && run->span.begin < prompt.end; ++run) {
      const std::int32_t n = intersect(run->span, prompt).n_tokens();
      stats_.from[run->origin] += n;
      n_new -= n;
    }
    stats_.from[Origin::kNew] += n_new;
  }
}

}  // namespace ebb
