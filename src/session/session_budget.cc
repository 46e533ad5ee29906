// Which budget of a session is in force: its own, or, while a turn's prompt is computed, the prompt's.
#include <algorithm>
#include <utility>

#include "session/session.h"

namespace ebb {

// What a prompt has beside the session's own is lent by the pool, where that has any beside its limit. What is over leaves before
// the pool has its frames back, so that law 1 holds at every moment.
void Session::apply_budgets(Acts& acts) {
  const std::int32_t per_block = deps_.shape.frames_per_block();
  // Where nothing leaves, what a prompt has beyond the session's own budget would stay in it.
  const bool has_more = is_in_prompt_ && policy_->lets_go();
  const FrameBudget wanted = has_more ? std::max(own_budget_, prompt_budget_) : own_budget_;
  const std::int32_t n_more = wanted.n_frames - own_budget_.n_frames;
  if (n_more > lent_.n_frames()) lent_.set(n_more);
  budget_ = wanted;
  make_room(0, acts);
  if (n_more < lent_.n_frames()) lent_.set(n_more);
  const std::int32_t n_whole = (hot().n_hot_frames() + per_block - 1) / per_block * per_block;
  budget_.n_frames = std::max(budget_.n_frames, n_whole);
  n_held_over_ = budget_.n_frames - wanted.n_frames;
  largest_budget_ = std::max(largest_budget_, budget_);
}

FrameBudget Session::set_budget(FrameBudget budget) {
  const std::int32_t per_block = deps_.shape.frames_per_block();
  own_budget_.n_frames = std::clamp(budget.n_frames / per_block, 1, deps_.pool.n_frames() / per_block) * per_block;
  Acts acts;
  apply_budgets(acts);
  return budget_;
}

void Session::set_prompt_budget(FrameBudget budget) {
  const std::int32_t per_block = deps_.shape.frames_per_block();
  prompt_budget_.n_frames = budget.n_frames / per_block * per_block;
  Acts acts;
  if (is_in_prompt_) apply_budgets(acts);
}

void Session::begin_prompt(std::int32_t n_tokens) {
  is_in_prompt_ = true;
  keeper_.hot().set_sight(plan_sight(options_.sparse_prompt, end(), n_tokens, block_size()));
  Acts acts;
  if (prompt_budget_ > own_budget_) apply_budgets(acts);
  (void)take_budget_use();
}

BudgetUse Session::end_prompt(Acts& acts) {
  is_in_prompt_ = false;
  const BudgetUse use = take_budget_use();
  if (prompt_budget_ <= own_budget_) return use;
  apply_budgets(acts);
  const std::size_t n_before = acts.evicted.size();
  // Frames that others held beside what was lent.
  give_back(deps_.pool.n_over(), acts);
  if (options_.removal == Removal::kCompact && acts.evicted.size() > n_before) compact(acts);
  (void)take_budget_use();
  return use;
}

std::int32_t Session::n_frames_owed(std::int32_t n_new_frames) const {
  if (lent_.n_frames() == 0) return 0;
  const std::int32_t n_after = std::min(hot().n_hot_frames() + n_new_frames, own_budget_.n_frames);
  return std::max(0, lent_.n_frames() + n_after - hot().n_hot_frames());
}

BudgetUse Session::take_budget_use() {
  return {.budget = std::exchange(largest_budget_, budget_), .peak_frames = keeper_.take_peak()};
}

}  // namespace ebb
