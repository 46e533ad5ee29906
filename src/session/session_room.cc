// What a session's budget and policy decide: what leaves, and where what stays goes.
#include <algorithm>

#include "session/session.h"

namespace ebb {
namespace {

// The share of the trained context that hot blocks may fill after a rebase. More: rebases come often. Less: a session with a large
// budget loses much at once.
constexpr std::int32_t kRebaseShare = 2;

}  // namespace

// --- room ---

RoomState Session::room() const {
  return {.n_hot_frames = hot().n_hot_frames(),
          .budget = budget_,
          .watermarks = options_.watermarks,
          .n_pool_free = deps_.pool.n_free()};
}

std::int32_t Session::n_free_frames() const {
  return std::min(budget_.n_frames - hot().n_hot_frames(), deps_.pool.n_free());
}

void Session::make_room(std::int32_t n_frames, Acts& acts) { make_room(plan_room(room(), n_frames), acts); }

void Session::make_room(const RoomPlan& plan, Acts& acts) {
  const std::size_t n_before = acts.evicted.size();
  if (plan.n_evict_wanted > 0) {
    Evidence now = evidence_for_choice();
    now.n_new_frames = plan.n_new_frames;
    evict(choose_victims(*policy_, now, plan.n_evict_wanted, plan.n_evict_needed), acts);
  }
  evict_for_pool(plan.n_new_frames, acts);
  if (options_.removal == Removal::kCompact && acts.evicted.size() > n_before) compact(acts);
}

// Until the pool has so many frames.
void Session::evict_for_pool(std::int32_t n_frames, Acts& acts) { give_back(n_frames - deps_.pool.n_free(), acts); }

// What others use too gives none back.
void Session::give_back(std::int32_t n_frames, Acts& acts) {
  if (n_frames <= 0) return;
  evict(choose_victims(*policy_, evidence_for_choice(CountedFrames::kOwn), n_frames, n_frames), acts);
}

std::vector<Victim> Session::find_victims(std::int32_t n_frames) {
  return choose_victims(*policy_, evidence_for_choice(), n_frames, n_frames);
}

HeadSet Session::heads_of(const Victim& victim) const {
  const Scope scope = policy_->asks().scope;
  if (scope == Scope::kSession) return deps_.shape.all_heads();
  const std::int32_t n_heads = scope == Scope::kLayer ? deps_.shape.n_kv_heads : 1;
  HeadSet heads(deps_.shape.n_heads());
  for (std::int32_t i = 0; i < n_heads; ++i) heads.add(static_cast<std::size_t>(victim.scope * n_heads + i));
  return heads;
}

// A block leaves once, from all heads that give it up.
void Session::evict(std::span<const Victim> victims, Acts& acts) {
  std::vector<Victim> by_block(victims.begin(), victims.end());
  std::ranges::stable_sort(by_block, {}, &Victim::block);
  for (auto first = by_block.begin(); first != by_block.end();) {
    HeadSet heads = heads_of(*first);
    const BlockIndex block = first->block;
    for (++first; first != by_block.end() && first->block == block; ++first) heads |= heads_of(*first);
    finder_.note_leaving(block);
    keeper_.evict(block, heads, acts);
  }
}

Acts Session::evict(std::span<const BlockIndex> blocks) { return evict(blocks, deps_.shape.all_heads()); }

Acts Session::evict(std::span<const BlockIndex> blocks, const HeadSet& heads) {
  Acts acts;
  for (const BlockIndex block : blocks) {
    const bool is_computing = std::ranges::find(holds_.computing, block) != holds_.computing.end();
    if (!hot().is_full(block) || is_computing) continue;
    finder_.note_leaving(block);
    keeper_.evict(block, heads, acts);
  }
  if (options_.removal == Removal::kCompact && !acts.evicted.empty()) compact(acts);
  return acts;
}

bool Session::may_open() const {
  return deps_.open_pool == nullptr || deps_.open_pool->n_free() >= deps_.shape.frames_per_block();
}

std::int32_t Session::n_most_open_blocks() const {
  return deps_.open_pool == nullptr ? 0 : deps_.open_pool->n_frames() / deps_.shape.frames_per_block();
}

Status Session::save() {
  if (keeper_.snapshots()) keeper_.snapshots()->save();
  finder_.keep();
  Status first_error;
  for (const BlockIndex block : hot().hot_blocks()) {
    const Status status = keeper_.save(block);
    if (first_error.ok()) first_error = status;
  }
  return first_error;
}

void Session::save_behind() {
  for (const BlockIndex block : hot().hot_blocks()) keeper_.save_behind(block);
}

void Session::save_for_image() {
  save_behind();
  finder_.keep();
  if (keeper_.snapshots()) keeper_.snapshots()->save();
  if (n_blocks() == 0) return;
  const BlockIndex last = hot().last_block();
  // What cannot be saved is computed again (law 8).
  if (!hot().is_full(last) && hot().is_hot(last)) (void)keeper_.save(last);
}

// --- anchors ---

Status Session::make_anchors_for(std::int32_t n_tokens, Acts& acts) {
  if (hot().next_anchor().value() + n_tokens <= n_ctx_train()) return {};
  if (!can_rebase()) {
    return error(Code::kOutOfBudget,
                 "the session has {} tokens, as many as the model was trained for; start a new one, or allow rebasing, "
                 "which goes on with approximate positions",
                 end().value());
  }
  rebase(acts);
  if (hot().next_anchor().value() + n_tokens <= n_ctx_train()) return {};
  return error(Code::kOutOfBudget,
               "{} hot tokens are held, and the model was trained for {}; unpin some, or lower the budget",
               n_hot_tokens(), n_ctx_train());
}

void Session::rebase(Acts& acts) {
  const std::int32_t n_most = n_ctx_train() / kRebaseShare / block_size();
  const auto n_hot = static_cast<std::int32_t>(hot().hot_blocks().size());
  if (n_hot > n_most) {
    // Anchors are taken by blocks, however many of their heads are hot.
    for (const BlockIndex block : choose_blocks(*policy_, evidence_for_choice(), n_hot - n_most)) {
      finder_.note_leaving(block);
      keeper_.evict(block, deps_.shape.all_heads(), acts);
    }
  }
  ++keeper_.stats().n_rebases;
  compact(acts);
}

// Frames that others use are turned in copies.
void Session::compact(Acts& acts) {
  std::int32_t n_copies = 0;
  for (const BlockIndex block : hot().hot_blocks()) n_copies += hot().n_hot_frames(block) - hot().n_own_frames(block);
  if (n_copies > 0) evict_for_pool(n_copies, acts);
  keeper_.compact(options_.removal == Removal::kCompact, acts);
}

void Session::settle_anchors(Acts& acts) {
  if (options_.recall_place == RecallPlace::kCompacted && !(acts.recalled.empty() && acts.recomputed.empty())) {
    return compact(acts);
  }
  keeper_.move_last_block(acts);
}

Position Session::find_exact_end(Position end) const {
  for (std::int32_t b = 0; moved() && b < deps_.shape.n_blocks(end.value()); ++b) {
    const BlockIndex block(b);
    const BlockRecordInfo& info = hot().info(block);
    const Span span = hot().span(block);
    const bool is_split = end < span.begin + block_size();
    if (!info.is_exact || (is_split && hot().is_moved(block))) return span.begin;
  }
  return end;
}

Acts Session::cut_anew(Position end) {
  Acts acts;
  HotSet& blocks = keeper_.hot();
  blocks.begin_epoch();
  for (std::int32_t b = 0; b < n_blocks(); ++b) {
    const BlockIndex block(b);
    const Position begin = hot().span(block).begin;
    if (hot().is_moved(block) && hot().n_hot_frames(block) > 0) {
      finder_.note_leaving(block);
      keeper_.evict(block, deps_.shape.all_heads(), acts);
    }
    blocks.set_anchor(block, begin);
    blocks.join_epoch(block);
  }
  // Before the cut: one that it splits goes on where it is.
  blocks.set_next_anchor(this->end());
  acts += cut(end);
  blocks.set_next_anchor(this->end());
  return acts;
}

// --- forgetting ---

Acts Session::cut(Position end) {
  Acts acts = take_back(end);
  said_.truncate(end);
  return acts;
}

Acts Session::take_back(Position end) {
  EBB_CHECK(end.value() >= 0 && end <= this->end(), "a cut at {} of {}", end.value(), this->end().value());
  Acts acts;
  const Position stays = keeper_.roll_back(end);
  const auto again = tokens().subspan(stays.index(), static_cast<std::size_t>(end - stays));
  unfinished_.assign(again.begin(), again.end());
  const std::int32_t per_block = deps_.shape.frames_per_block();
  // What is forgotten makes room before anything that stays does.
  keeper_.leave_from(stays);
  const BlockIndex open = hot().block_at(stays);
  const bool is_split = stays.value() % block_size() > 0 && stays < this->end();
  const std::int32_t n_missing = is_split ? per_block - hot().n_hot_frames(open) : 0;
  if (n_free_frames() < n_missing) make_room(n_missing, acts);
  // Its copy, where others use it too.
  if (is_split && hot().is_shared(open)) evict_for_pool(per_block, acts);
  const std::int32_t n_kept = deps_.shape.n_blocks(stays.value()) - (is_split ? 1 : 0);
  finder_.forget_from(BlockIndex(n_kept), n_blocks());
  meanings_.forget_from(BlockIndex(n_kept));
  if (attention_) attention_->forget(BlockIndex(n_kept), is_split ? stays.value() % block_size() : 0);
  unread_ = intersect(unread_, {Position(0), stays});
  if (reliances_) reliances_->cut(stays);
  frame_notes_.erase(frame_notes_.lower_bound(BlockIndex(n_kept)), frame_notes_.end());
  n_noted_ahead_ = std::min(n_noted_ahead_, n_kept);
  for (auto& expected : expected_) expected.erase(expected.lower_bound(BlockIndex(n_kept)), expected.end());
  keeper_.cut(stays, n_free_frames() >= n_missing, acts);
  recall_window(acts);
  return acts;
}

}  // namespace ebb
