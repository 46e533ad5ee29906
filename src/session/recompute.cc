#include "session/recompute.h"

#include <algorithm>

namespace ebb {

bool Recompute::contains(BlockIndex block) const {
  return std::ranges::find(queue_, block, &Block::block) != queue_.end();
}

void Recompute::add(std::span<const BlockIndex> blocks) {
  for (const BlockIndex block : blocks) {
    if (contains(block)) continue;
    const auto first = queue_.begin() + (n_done() > 0 ? 1 : 0);
    queue_.insert(std::ranges::upper_bound(first, queue_.end(), block, {}, &Block::block), {.block = block});
  }
  note_holds();
}

void Recompute::cut(std::int32_t n_blocks) {
  std::erase_if(queue_, [&](const Block& b) { return b.block.value() >= n_blocks; });
  note_holds();
}

void Recompute::note_holds() {
  session_->holds().computing.clear();
  for (const Block& b : queue_) session_->holds().computing.push_back(b.block);
}

std::int32_t Recompute::n_left() const {
  std::int32_t n_tokens = 0;
  for (const Block& b : queue_) n_tokens += session_->hot().span(b.block).n_tokens() - b.n_done;
  return n_tokens;
}

std::int32_t Recompute::n_frames() const {
  if (queue_.empty() || queue_.front().n_done > 0) return 0;
  return session_->hot().shape().frames_per_block() - session_->hot().n_hot_frames(queue_.front().block);
}

std::optional<SequenceInput> Recompute::begin_step(std::int32_t max_rows, Acts& acts) {
  const HotSet& hot = session_->hot();
  while (!queue_.empty()) {
    const Block& next = queue_.front();
    const Span span = hot.span(next.block);
    if (next.n_done == 0) {
      if (hot.is_hot(next.block)) {
        drop_front();
        continue;
      }
      session_->look_from(span.begin, acts);
      // Its rows must outlive the step if one is not enough, or more are to join them.
      const bool keeps_open = span.n_tokens() > max_rows || !hot.is_full(next.block);
      if (!session_->begin_recompute(next.block, keeps_open, acts).ok()) {
        drop_front();
        continue;
      }
    }
    const auto tokens = hot.block_tokens(next.block).subspan(static_cast<std::size_t>(next.n_done));
    n_step_ = std::min(max_rows, static_cast<std::int32_t>(tokens.size()));
    return SequenceInput{.tokens = tokens.first(static_cast<std::size_t>(n_step_)),
                         .first = span.begin + next.n_done,
                         .anchor = hot.anchor(next.block) + next.n_done,
                         .tables = &hot.tables(),
                         .n_outputs = 0};
  }
  return std::nullopt;
}

void Recompute::end_step(Acts& acts) {
  const HotSet& hot = session_->hot();
  Block& done = queue_.front();
  done.lineage.add(hot.visible_before(done.block), n_step_);
  done.n_done += n_step_;
  n_step_ = 0;
  if (done.n_done < hot.span(done.block).n_tokens()) return;
  session_->end_recompute(done.block, std::move(done.lineage), acts);
  drop_front();
}

void Recompute::abandon_step() {
  n_step_ = 0;
  session_->drop_recompute(queue_.front().block);
  queue_.front() = {.block = queue_.front().block};
}

void Recompute::stop() {
  if (n_done() > 0) session_->drop_recompute(queue_.front().block);
  while (!queue_.empty()) drop_front();
}

void Recompute::drop_front() {
  queue_.pop_front();
  note_holds();
  Acts none;
  session_->look_from(session_->end(), none);
}

}  // namespace ebb
