#include "session/reread.h"

#include <algorithm>

#include "base/to_size.h"

namespace ebb {
namespace {

constexpr std::int32_t kLeadTokens = 8;

}  // namespace

std::int32_t Reread::make_room(std::int32_t max_rows, Acts& acts) {
  const HotSet& hot = session_->hot();
  const auto n_rows = static_cast<std::int32_t>(piece_.size());
  const StepPlan plan = plan_step({.n_pending = n_rows,
                                   .n_to_compute = n_rows,
                                   .max_rows = max_rows,
                                   .n_rows_left = hot.room_in_last_block(),
                                   .n_anchors_left = session_->n_ctx_train() - hot.next_anchor().value(),
                                   .may_open = session_->may_open(),
                                   .room = session_->room()},
                                  hot.shape());
  if (plan.n_tokens <= n_lead_) return 0;
  if (plan.room.n_new_frames > 0) session_->make_room(plan.room, acts);
  return fit_rows(plan.n_tokens, hot.room_in_last_block(), session_->n_free_frames(), hot.shape());
}

std::optional<SequenceInput> Reread::begin_step(std::int32_t max_rows, Acts& acts) {
  const Span unread = session_->unread();
  // A step that has no rows to spare is followed by others.
  if (unread.empty() || max_rows <= kLeadTokens) return std::nullopt;
  n_lead_ = std::min(kLeadTokens, unread.begin.value());
  const auto begin = unread.begin.index() - to_size(n_lead_);
  const std::size_t n = std::min(to_size(unread.n_tokens() + n_lead_), to_size(std::min(kRereadRows, max_rows)));
  const auto tokens = session_->tokens().subspan(begin, n);
  piece_.assign(tokens.begin(), tokens.end());
  const std::int32_t n_rows = make_room(max_rows, acts);
  if (n_rows <= n_lead_ || !session_->open(n_rows).ok()) {
    session_->note_read(unread.end);
    return std::nullopt;
  }
  n_step_ = n_rows;
  const HotSet& hot = session_->hot();
  return SequenceInput{.tokens = std::span(piece_).first(to_size(n_rows)),
                       .first = session_->end(),
                       .anchor = hot.next_anchor(),
                       .tables = &hot.tables(),
                       .n_outputs = 0,
                       .n_mass_rows = n_rows - n_lead_,
                       .n_window_rows = n_rows - n_lead_};
}

void Reread::end_step(const std::optional<SequenceMass>& mass) {
  if (mass) session_->note_reread(*mass);
  session_->drop_rows();
  session_->note_read(session_->unread().begin + (n_step_ - n_lead_));
  n_step_ = 0;
}

void Reread::abandon_step() {
  session_->drop_rows();
  n_step_ = 0;
}

}  // namespace ebb
