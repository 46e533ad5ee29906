#include "session/renewal.h"

#include <algorithm>

namespace ebb {

void Renewal::add(std::span<const BlockIndex> recalled) {
  const HotSet& hot = session_->hot();
  for (const BlockIndex block : recalled) {
    const bool is_whole = block.value() < hot.n_blocks() && hot.is_full(block) && hot.is_hot(block);
    const bool is_known = std::ranges::find(queue_, block) != queue_.end();
    if (!is_whole || is_known || hot.is_renewed(block)) continue;
    const auto first = queue_.begin() + (n_done_ > 0 ? 1 : 0);
    queue_.insert(std::ranges::upper_bound(first, queue_.end(), block), block);
  }
}

std::int32_t Renewal::n_rows(BlockIndex block) const {
  return std::min(session_->options().renewed_tokens, session_->hot().span(block).n_tokens());
}

std::optional<SequenceInput> Renewal::begin_step(std::int32_t max_rows, Acts& acts) {
  const HotSet& hot = session_->hot();
  while (!queue_.empty()) {
    const BlockIndex block = queue_.front();
    // It may have left since, to make room for others or for another session's; half of it is nothing's bytes.
    const bool is_there =
        block.value() < hot.n_blocks() && hot.is_hot(block) && (n_done_ == 0 || hot.is_renewed(block));
    if (!is_there && n_done_ > 0) session_->drop_renewal(block);
    if (!is_there || (n_done_ == 0 && !session_->begin_renewal(block, n_rows(block), acts).ok())) {
      drop_front();
      continue;
    }
    session_->holds().computing = {block};
    const auto tokens = hot.block_tokens(block).first(static_cast<std::size_t>(n_rows(block)));
    n_step_ = std::min(max_rows, n_rows(block) - n_done_);
    return SequenceInput{.tokens = tokens.subspan(static_cast<std::size_t>(n_done_), static_cast<std::size_t>(n_step_)),
                         .first = hot.span(block).begin + n_done_,
                         .anchor = hot.anchor(block) + n_done_,
                         .tables = &hot.tables(),
                         .n_outputs = 0};
  }
  return std::nullopt;
}

void Renewal::end_step() {
  n_tokens_ += n_step_;
  n_done_ += n_step_;
  n_step_ = 0;
  if (n_done_ == n_rows(queue_.front())) drop_front();
}

void Renewal::abandon_step() {
  n_step_ = 0;
  session_->drop_renewal(queue_.front());
  drop_front();
}

void Renewal::stop() {
  if (n_done_ > 0) session_->drop_renewal(queue_.front());
  while (!queue_.empty()) drop_front();
}

void Renewal::drop_front() {
  queue_.pop_front();
  n_done_ = 0;
  session_->holds().computing.clear();
  Acts none;
  session_->look_from(session_->end(), none);
}

}  // namespace ebb
