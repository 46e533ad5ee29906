#include "replay/areas_replay.h"

#include <algorithm>
#include <utility>

#include "base/to_size.h"
#include "policy/areas_release.h"
#include "policy/areas_usage.h"

namespace ebb {
namespace {

std::int64_t n_tokens_of_scores(const AreasReplayStep& step, std::int32_t block_size) {
  const std::size_t n_scores = step.scores.empty() ? 0 : step.scores.front().size();
  return static_cast<std::int64_t>(n_scores) + static_cast<std::int64_t>(step.skipped.size()) * block_size;
}

std::int32_t n_blocks_of(std::int32_t n_tokens, std::int32_t block_size) {
  return (n_tokens + block_size - 1) / block_size;
}

// Runs one recording; its members are what the steps change.
class AreasRun {
 public:
  AreasRun(const AreasReplay& replay, AreasSequence sequence)
      : replay_(replay), sequence_(std::move(sequence)), n_pool_blocks_(replay.n_pool_blocks) {
    if (n_pool_blocks_ > 0) return;
    const std::int32_t block_size = replay.shape.block_size;
    n_pool_blocks_ = n_blocks_of(std::max(replay.n_prompt, replay.config.max_tokens + block_size), block_size);
  }

  Status take(const AreasReplayStep& step);
  AreasReplayReport finish() &&;

 private:
  [[nodiscard]] Result<std::int32_t> scheduled(const AreasReplayStep& step) const;
  Status sample_usage(std::int32_t n_cached);
  Status add_shifts(AreasReplayRow& row) const;

  const AreasReplay& replay_;
  AreasSequence sequence_;
  std::int32_t n_pool_blocks_;
  UsageMeter usage_;
  AreasReplayReport report_;
};

Result<std::int32_t> AreasRun::scheduled(const AreasReplayStep& step) const {
  if (step.n_processed && *step.n_processed != sequence_.n_processed()) {
    return error(Code::kInvalidArgument,
                 "the recording says that {} tokens are processed, and the steps before it have {}", *step.n_processed,
                 sequence_.n_processed());
  }
  if (step.n_scheduled) return *step.n_scheduled;
  const std::int64_t n_tokens = n_tokens_of_scores(step, replay_.shape.block_size);
  const std::int64_t n = n_tokens - sequence_.n_cached();
  if (n < 1) {
    return error(
        Code::kInvalidArgument,
        "scores of {} tokens, and {} were cached before the step: give one for each cached token, those of the step "
        "included",
        n_tokens, sequence_.n_cached());
  }
  return static_cast<std::int32_t>(n);  // the reader bounds what a step may have
}

Status AreasRun::sample_usage(std::int32_t n_cached) {
  const std::int32_t n_used = n_blocks_of(n_cached, replay_.shape.block_size);
  if (n_used > n_pool_blocks_ && replay_.n_pool_blocks > 0) {
    return error(Code::kOutOfBudget, "{} tokens need {} blocks, and num_kv_blocks is {}", n_cached, n_used,
                 n_pool_blocks_);
  }
  n_pool_blocks_ = std::max(n_pool_blocks_, n_used);
  usage_.sample(n_used, n_pool_blocks_);
  return {};
}

Status AreasRun::add_shifts(AreasReplayRow& row) const {
  const std::int32_t block_size = replay_.shape.block_size;
  const std::int32_t n_blocks = n_blocks_of(row.n_cached, block_size);
  // The original's table is as long as its batches, and a first eviction may shift by more.
  const std::int32_t n_rows = replay_.config.upstream ? replay_.n_batched_tokens / block_size + 1 : n_blocks;
  for (AreasReplayLayer& layer : row.layers) {
    EBB_ASSIGN_OR_RETURN(layer.shifts, find_shifts(n_blocks, layer.eviction.victims, block_size, n_rows));
  }
  return {};
}

Status AreasRun::take(const AreasReplayStep& step) {
  AreasReplayRow row;
  EBB_ASSIGN_OR_RETURN(row.n_scheduled, scheduled(step));
  EBB_RETURN_IF_ERROR(
      sequence_.register_scores({.n_scheduled = row.n_scheduled, .scores = step.scores, .skipped = step.skipped}));
  row.n_processed = sequence_.n_processed();
  row.n_cached = sequence_.n_cached();
  // The original does not compare them; a table that is larger than its scores would be none of the recording's.
  if (const std::int64_t n_tokens = n_tokens_of_scores(step, replay_.shape.block_size); n_tokens != row.n_cached) {
    return error(Code::kInvalidArgument, "scores of {} tokens, and {} are cached after {} were scheduled", n_tokens,
                 row.n_cached, row.n_scheduled);
  }
  EBB_RETURN_IF_ERROR(sample_usage(row.n_cached));
  row.usage = usage_.last();
  for (std::size_t layer = 0; layer < step.diversity.size(); ++layer) {
    EBB_RETURN_IF_ERROR(
        sequence_.register_diversity(LayerIndex(static_cast<std::int32_t>(layer)), step.diversity[layer]));
  }
  EBB_ASSIGN_OR_RETURN(std::vector<AreasEviction> evictions, sequence_.evict());
  row.n_left = sequence_.n_cached();
  std::vector<std::vector<std::int32_t>> victims;
  for (AreasEviction& eviction : evictions) {
    victims.push_back(eviction.victims);
    row.layers.push_back({.eviction = std::move(eviction), .shifts = {}});
  }
  const auto groups =
      group_victims(victims, replay_.shape.n_layers, n_blocks_of(row.n_cached, replay_.shape.block_size));
  EBB_RETURN_IF_ERROR(groups.status());
  if (replay_.config.applies_rotation) EBB_RETURN_IF_ERROR(add_shifts(row));
  report_.n_most_cached = std::max(report_.n_most_cached, row.n_cached);
  report_.rows.push_back(std::move(row));
  return {};
}

AreasReplayReport AreasRun::finish() && {
  report_.n_evicted = sequence_.n_evicted();
  report_.max_after_eviction = replay_.config.max_tokens_after_eviction(replay_.shape.block_size);
  report_.n_pool_blocks = n_pool_blocks_;
  report_.last_usage = usage_.last();
  report_.max_usage = usage_.max();
  report_.average_usage = usage_.average();
  report_.notes = replay_.config.notes();
  return std::move(report_);
}

}  // namespace

Result<AreasReplayReport> run_areas_replay(const AreasReplay& replay) {
  EBB_ASSIGN_OR_RETURN(AreasSequence sequence, AreasSequence::make(replay.config, replay.shape, replay.n_prompt));
  AreasRun run(replay, std::move(sequence));
  for (std::size_t i = 0; i < replay.steps.size(); ++i) {
    const Status status = run.take(replay.steps[i]);
    if (!status.ok()) return error(status.code(), "step {}: {}", i + 1, status.message());
  }
  return std::move(run).finish();
}

}  // namespace ebb
