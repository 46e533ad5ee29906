// What a turn does before its steps: waves of blocks that come, rows that are copied, grafts.
#include <algorithm>
#include <utility>

#include "session/turn.h"

namespace ebb {

void Turn::prepare_all(std::int32_t max_rows) {
  for (Ready ready = prepare(max_rows); ready != Ready::kNow; ready = prepare(max_rows)) {
    if (ready == Ready::kWaits) session_->wait_for_meanings();
    if (ready == Ready::kWaits && wave_ && wave_->fetch != nullptr) wave_->fetch->wait();
    if (ready == Ready::kWaits && adoption_ && adoption_->fetch != nullptr) adoption_->fetch->wait();
  }
}

Turn::Ready Turn::prepare(std::int32_t max_rows) {
  if (n_step_ > 0) return Ready::kNow;
  if (const std::optional<Ready> done = look()) return *done;
  if (const std::optional<Ready> done = end_waves()) return *done;
  if (const std::optional<Ready> done = wake_last()) return *done;
  if (recompute_.n_done() > 0 || renewal_.n_done() > 0) return Ready::kNow;
  if (recompute_.empty()) {
    if (const std::optional<Ready> done = adopt(max_rows)) return *done;
  }
  if (const std::optional<Ready> done = recall_next()) return *done;
  if (recompute_.empty()) {
    if (const std::optional<Ready> done = graft_next()) return *done;
  }
  if (const std::optional<Ready> done = refill_next()) return *done;
  if (std::exchange(came_, false)) session_->settle_anchors(stats_.acts);
  // Where they lie now, their first tokens may be computed again.
  const std::span<const BlockIndex> recalled = stats_.acts.recalled;
  if (recompute_.empty() && n_renewal_seen_ < recalled.size() && session_->can_renew()) {
    renewal_.add(recalled.subspan(std::exchange(n_renewal_seen_, recalled.size())));
  }
  return Ready::kNow;
}

// Records that were read bring their blocks in.
std::optional<Turn::Ready> Turn::end_waves() {
  if (wave_) {
    if (!wave_->is_ready()) return Ready::kWaits;
    Acts acts;
    if (!wave_refills_) {
      recall_time_.waited_ms += wave_since_.elapsed_ms();
      recall_time_.n_blocks += wave_->blocks.size();
    }
    session_->end_wave(*std::exchange(wave_, std::nullopt), acts);
    // What only fills some holes of many is not computed again.
    if (!std::exchange(wave_refills_, false) || n_blocks_to_come() <= session_->budget_blocks()) {
      recompute_.add(acts.lost);
    }
    for (const BlockIndex block : acts.lost) away_.insert_or_assign(block, Away::kLost);
    came_ |= !acts.recalled.empty();
    stats_.acts += acts;
    return Ready::kMore;
  }
  if (adoption_) {
    if (!adoption_->is_ready()) return Ready::kWaits;
    const auto n_most = static_cast<std::int32_t>(adoption_->names.size()) * session_->block_size();
    const Adopted adopted =
        session_->adopt(*std::exchange(adoption_, std::nullopt), pending_.first(n_most), stats_.acts);
    stats_.n_adopted += adopted.n_tokens();
    // In the order of the blocks, since what is shared and what is read may alternate.
    for (std::int32_t n = 0; n < adopted.n_tokens(); n += session_->block_size()) {
      const BlockIndex block = session_->hot().block_at(end_);
      const std::vector<BlockIndex>& shared = stats_.acts.shared;
      const bool is_shared = std::ranges::find(shared, block) != shared.end();
      take(session_->block_size(), is_shared ? Origin::kShared : Origin::kRecalledExact);
    }
    if (adopted.n_tokens() == 0) adopts_ = false;
    return Ready::kMore;
  }
  return std::nullopt;
}

// The block that new tokens join must be hot before any comes; a session that goes on has it in the cold store.
std::optional<Turn::Ready> Turn::wake_last() {
  const HotSet& hot = session_->hot();
  if (n_pending() == 0 || hot.n_blocks() == 0 || hot.is_full(hot.last_block()) || hot.is_hot(hot.last_block())) {
    return std::nullopt;
  }
  if (recompute_.contains(hot.last_block()) || was_refused_) return std::nullopt;
  const BlockIndex last = hot.last_block();
  const Status woken = session_->wake_last(stats_.acts);
  if (woken.code() == Code::kNotFound) recompute_.add({&last, 1});
  was_refused_ = woken.code() == Code::kOutOfBudget;
  return Ready::kMore;
}

// Whole blocks by their exact names, as long as another session has them hot (then its frames serve both) or the cold store
// has them: what any session computed for the same tokens behind the same visible blocks. Of the block that is open before
// and behind them, a copy of the rows that go on as another's do. At least one token stays pending.
std::optional<Turn::Ready> Turn::adopt(std::int32_t max_rows) {
  const std::int32_t block_size = session_->block_size();
  if (!session_->options().adopts || n_pending() < 2 || n_step_ > 0) return std::nullopt;
  // What is computed again is to see what came, and not to be had as it was.
  if (stats_.n_computed_again > 0) return std::nullopt;
  const HotSet& hot = session_->hot();
  if (hot.end().value() % block_size == 0 && n_pending() > block_size && adopts_) {
    const auto n_most = static_cast<std::int32_t>(
        std::min<std::size_t>(kWaveBlocks, static_cast<std::size_t>((n_pending() - 1) / block_size)));
    const auto look = [&] {
      Adoption found = session_->find_adoption(pending_.first(n_most * block_size), n_most);
      if (!found.names.empty()) adoption_ = std::move(found);
      return adoption_.has_value();
    };
    if (look()) return Ready::kMore;
    // What the step will evict anyway leaves first: a history longer than the budget was computed so, and has its names
    // from what was visible then.
    const StepPlan plan = plan_step(step_state(max_rows), hot.shape());
    if (plan.room.n_evict_wanted > 0 && plan.n_tokens > 0) {
      session_->make_room(plan.room, stats_.acts);
      if (look()) return Ready::kMore;
    }
  }
  const std::int32_t n_rows = session_->copy_alike(pending_.first(std::min(n_pending() - 1, block_size)), stats_.acts);
  if (n_rows == 0) return std::nullopt;
  take(n_rows, Origin::kRecalledExact);
  stats_.n_adopted += n_rows;
  adopts_ = true;
  return Ready::kMore;
}

std::optional<Turn::Ready> Turn::recall_next() {
  if (to_recall_.empty()) return std::nullopt;
  const std::size_t n_most = plan_wave(recall_time_, ask_.most_ms, std::min(kWaveBlocks, to_recall_.size()));
  std::vector<BlockIndex> some;
  for (; some.size() < n_most && !to_recall_.empty(); to_recall_.pop_front()) {
    if (!missing_heads(to_recall_.front()).empty()) some.push_back(to_recall_.front());
  }
  if (n_most == 0) leave_late();
  if (some.empty()) return Ready::kMore;
  // Neighbours that move together stay neighbours.
  std::ranges::sort(some);
  std::vector<HeadSet> heads;
  for (const BlockIndex block : some) heads.push_back(missing_heads(block));
  wave_ = session_->begin_wave(some, ReadBy::kThread, heads);
  wave_since_.restart();
  return Ready::kMore;
}

// What would take longer than may be waited stays where it is, and nothing is held for it.
void Turn::leave_late() {
  const std::deque<BlockIndex> late = std::exchange(to_recall_, {});
  for (const BlockIndex block : late) {
    if (missing_heads(block).empty()) continue;
    ++stats_.n_late;
    away_.insert_or_assign(block, Away::kLate);
    std::erase(session_->holds().kept, block);
  }
}

std::optional<Turn::Ready> Turn::refill_next() {
  if (!refill_) return std::nullopt;
  const HotSet& hot = session_->hot();
  std::int32_t n_free = session_->n_free_frames() - n_left_free() * hot.shape().frames_per_block();
  if (!refill_chosen_) {
    refill_chosen_ = true;
    if (n_free > 0) to_refill_ = session_->choose_holes(refill_->cues, refill_->holes);
    std::ranges::reverse(to_refill_);
    if (n_free > 0 && n_blocks_to_come() <= session_->budget_blocks()) {
      recompute_.add(session_->find_missing(refill_->holes));
    }
  }
  std::vector<BlockIndex> some;
  while (!to_refill_.empty() && some.size() < kWaveBlocks) {
    n_free -= hot.missing_heads(to_refill_.back()).count();
    if (n_free < 0) break;
    some.push_back(to_refill_.back());
    to_refill_.pop_back();
  }
  if (some.empty()) {
    refill_.reset();
    return Ready::kMore;
  }
  std::ranges::sort(some);
  wave_ = session_->begin_wave(some);
  wave_refills_ = true;
  return Ready::kMore;
}

std::int32_t Turn::n_blocks_to_come() const {
  return session_->shape().n_blocks(session_->end().value() + n_pending() + 1);
}

// Beside what is pending, and for the reply.
std::int32_t Turn::n_left_free() const {
  return plan_left_free(session_->n_blocks(), n_blocks_to_come() - session_->n_blocks(), refill_->n_reply_blocks,
                        session_->budget_blocks());
}

// --- grafts ---

// A run of what the history says now that stood in the session before the edit, in pieces of a block; where some of it may be
// stale, of a slice of before.
void Turn::add_graft(const TokenRun& run, std::int32_t n_recomputed) {
  const std::int32_t block_size = session_->block_size();
  const std::int32_t shift = run.from - run.to;
  const Span to = {Position(run.to), std::min(Position(run.to + run.n_tokens), first_ + n_pending() - 1)};
  for (std::int32_t b = to.begin.value() / block_size; Position(b * block_size) < to.end; ++b) {
    Span piece = intersect(to, {Position(b * block_size), Position((b + 1) * block_size)});
    piece.begin = piece.begin + n_recomputed;
    while (piece.begin < piece.end) {
      const Span before = {piece.begin + shift, piece.end + shift};
      const std::int32_t n_tokens = (freshness_ ? freshness_->first_piece(before) : before).n_tokens();
      grafts_.push_back({.to = {piece.begin, piece.begin + n_tokens}, .from = before.begin});
      piece.begin = piece.begin + n_tokens;
    }
  }
}

// Of the next ones, what stands in the session already: it was computed, or another session had it.
void Turn::pass_grafts() {
  while (!grafts_.empty() && grafts_.front().to.begin < session_->end()) {
    Graft& graft = grafts_.front();
    const Position end = std::min(graft.to.end, session_->end());
    if (freshness_) to_compare_.push_back({.to = {graft.to.begin, end}, .from = graft.from});
    go_on(graft, end - graft.to.begin);
  }
  compare_passed();
}

// What is stale from where the session ends on is computed instead, as much at once as is known to be.
void Turn::leave_stale() {
  if (!freshness_) return;
  for (Position at = session_->end(); !grafts_.empty() && grafts_.front().to.begin == at; grafts_.pop_front()) {
    const Graft& graft = grafts_.front();
    if (!freshness_->is_stale({graft.from, graft.from + graft.to.n_tokens()}, graft.to.begin)) return;
    to_compare_.push_back(graft);
    at = graft.to.end;
  }
}

// Of what was not grafted and stands there now, what is another than it was.
void Turn::compare_passed() {
  for (; !to_compare_.empty() && to_compare_.front().to.end <= session_->end(); to_compare_.pop_front()) {
    if (grafts_.empty()) continue;
    const Graft& graft = to_compare_.front();
    const Donor& donor = donors_[static_cast<std::size_t>(graft.from.value() / session_->block_size())];
    const Result<double> change = session_->change_of(donor, graft.from - donor.begin, graft.to);
    if (!change.ok() || *change > kMostSame) {
      freshness_->note_changed({graft.from, graft.from + graft.to.n_tokens()});
    }
  }
}

// Behind its first tokens.
void Turn::go_on(Graft& graft, std::int32_t n_tokens) {
  graft = {.to = {graft.to.begin + n_tokens, graft.to.end}, .from = graft.from + n_tokens};
  if (graft.to.empty()) grafts_.pop_front();
}

// As far as they go on from where the session ends: what of the next one donor has and the block under way holds. What is
// not to be had is left to be computed.
std::optional<Turn::Ready> Turn::graft_next() {
  pass_grafts();
  leave_stale();
  if (grafts_.empty() || grafts_.front().to.begin > session_->end()) return std::nullopt;
  Graft& graft = grafts_.front();
  const HotSet& hot = session_->hot();
  const std::int32_t block_size = session_->block_size();
  if (!session_->make_anchors_for(graft.to.n_tokens(), stats_.acts).ok()) return std::nullopt;
  // Before the donor is turned: what leaves may close up, and what comes then has other anchors.
  if (hot.room_in_last_block() == 0) session_->make_room(hot.shape().frames_per_block(), stats_.acts);
  const Donor& donor = donors_[static_cast<std::size_t>(graft.from.value() / block_size)];
  const std::int32_t from = graft.from - donor.begin;
  const std::int32_t room = hot.room_in_last_block() > 0 ? hot.room_in_last_block() : block_size;
  const std::int32_t n_tokens = std::min({graft.to.n_tokens(), block_size - from, room});
  if (const Status taken = session_->graft(donor, from, pending_.first(n_tokens)); !taken.ok()) {
    if (taken.code() == Code::kOutOfBudget) return std::nullopt;
    // What is not to be had is computed: of fresh reuse, and compared.
    if (freshness_) to_compare_.push_back({.to = {graft.to.begin, graft.to.begin + n_tokens}, .from = graft.from});
    go_on(graft, n_tokens);
    return Ready::kMore;
  }
  if (freshness_) {
    const Span before = {graft.from, graft.from + n_tokens};
    session_->rely({end_, end_ + n_tokens}, freshness_->reliances_now(before));
  }
  go_on(graft, n_tokens);
  take(n_tokens, Origin::kRecalledApproximate);
  stats_.n_grafted += n_tokens;
  return Ready::kMore;
}

}  // namespace ebb
