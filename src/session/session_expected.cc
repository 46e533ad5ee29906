// What a session's policy is told of queries to come: what is expected of them, by the queries that were.
#include <algorithm>

#include "base/for_each_parallel.h"
#include "base/to_size.h"
#include "model/frame_rows.h"
#include "session/session.h"

namespace ebb {

void Session::begin_queries() {
  queries_.reset();
  expected_.clear();
  if (policy_->asks().expected == 0) return;
  EBB_CHECK(policy_->asks().scope == Scope::kHead, "policy {} asks by more than a head what is expected",
            policy_->name());
  EBB_CHECK(deps_.forecaster != nullptr, "policy {} asks for what is expected of queries, which nobody can tell",
            policy_->name());
  queries_.emplace(deps_.forecaster->make_moments(Position(options_.sink_tokens)));
}

// What any head's blocks are expected to get depends on all of them and on every query so far: it is computed anew for each
// choice, each head by itself, so that threads change no bit.
void Session::note_expected() {
  if (!queries_) return;
  expected_.resize(deps_.shape.n_heads());
  // Frames of a device are read by one thread at a time.
  const std::int32_t n_threads = keeper_.io().is_on_host() ? deps_.forecaster->n_threads() : 1;
  for_each_parallel(expected_.size(), n_threads, [&](std::size_t head) { expect(head); });
}

void Session::expect(std::size_t head) {
  const Ask ask = policy_->asks();
  const FrameLayout& layout = deps_.memory.layout();
  ExpectedAttention expected(deps_.forecaster->forecast(
      *queries_, head, {.first = hot().next_anchor(), .n_anchors = ask.expected, .with_spread = ask.expected_spread}));
  HeadSet one(deps_.shape.n_heads());
  one.add(head);
  std::vector<BlockIndex> blocks;
  std::vector<std::byte> frame(layout.frame_bytes());
  for (const BlockIndex block : hot().hot_blocks()) {
    // The rows of one that is written to, or computed again, are not all there yet. It stays anyway.
    const bool is_computing = std::ranges::find(holds_.computing, block) != holds_.computing.end();
    if (!hot().is_full(block) || is_computing || !hot().is_hot(block, head)) continue;
    read_frames(block, one, frame);
    const FrameRows keys = FrameRows::keys_of(layout, frame, block_size());
    const FrameRows values = FrameRows::values_of(layout, frame, block_size());
    const auto n_sinks =
        static_cast<std::size_t>(std::clamp(options_.sink_tokens - hot().span(block).begin.value(), 0, block_size()));
    expected.add({.n_tokens = keys.n_tokens() - n_sinks,
                  .keys = keys.rows().subspan(n_sinks * keys.n_dims()),
                  .values = values.rows().subspan(n_sinks * values.n_dims())});
    blocks.push_back(block);
  }
  const std::vector<ExpectedBlock> found = expected.finish();
  expected_[head].clear();
  for (std::size_t i = 0; i < blocks.size(); ++i) expected_[head].emplace(blocks[i], found[i]);
}

// Zeros of a block that no choice has seen yet.
void Session::fill_expected(std::size_t head, const Evidence& evidence, ScopeEvidence& scope) const {
  for (const ScopeRow& row : scope.rows) {
    ExpectedBlock block;
    if (head < expected_.size()) {
      const auto known = expected_[head].find(evidence.block(row).block);
      if (known != expected_[head].end()) block = known->second;
    }
    scope.expected.push_back(block.attention);
    scope.expected_value.push_back(block.weighted_value);
    scope.value_length.push_back(block.value_length);
  }
}

}  // namespace ebb
