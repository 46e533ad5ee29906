#include "policy/attention_notes.h"

#include <algorithm>

#include "base/check.h"
#include "base/to_size.h"
#include "policy/noted_values.h"

namespace ebb {
namespace {

// Queries of a prompt's chunk that shares are taken of. More: memory for each of them and block.
constexpr std::int32_t kShareQueries = 16;

// How slowly a block's share of attention follows, per step. EVOKE's value.
constexpr double kShareKept = 0.95;

}  // namespace

double follow_share(double before, double now) { return kShareKept * before + (1.0 - kShareKept) * now; }

bool is_notable_share(double share, std::size_t n_blocks) { return share * static_cast<double>(n_blocks) >= 1.0; }

AttentionNotes::AttentionNotes(std::size_t n_heads, const Ask& ask, std::int32_t block_size, std::size_t n_in_layer)
    : n_heads_(n_heads),
      n_in_layer_(n_in_layer),
      ask_(ask),
      block_size_(block_size),
      n_slices_(to_size(ask.n_slices(block_size))) {
  if (ask_.totals && n_slices_ > 0) slice_totals_.resize(n_heads);
  if (ask_.totals) totals_.resize(n_heads);
  if (ask_.reread) reread_.resize(n_heads);
  EBB_CHECK(ask.prompt_window == 0 || (ask.window == 0 && !ask.shares),
            "totals of a prompt's last {} queries beside others", ask.prompt_window);
  EBB_CHECK(ask.pool_ahead == 0 || ask.scope == Scope::kLayer, "totals pooled over {} tokens, and not by layer",
            ask.pool_ahead);
}

std::int32_t AttentionNotes::n_observed(std::int32_t n_rows, const Behind& behind) const {
  if (ask_.totals && ask_.prompt_window == 0) return n_rows;
  const std::int32_t n_counted = ask_.totals ? std::max(0, ask_.prompt_window - behind.n_tokens) : 0;
  std::int32_t n_last = std::max(ask_.window, ask_.last ? 1 : 0);
  // Shares follow from step to step.
  if (!ask_.shares && behind.n_next_queries >= n_last) n_last = 0;
  return std::min(n_rows, std::max({n_counted, n_last, ask_.shares ? kShareQueries : 0}));
}

void AttentionNotes::begin_step(const StepQueries& queries, std::int32_t block_size) {
  queries_ = queries.observed;
  block_size_ = block_size;
  if (!keeps_steps()) return;
  if (!steps_.empty()) steps_.back().slice_last = {};  // of the very last query is asked, and these come now
  steps_.push_back({.n_queries = std::max(1, queries.n_window),
                    .begins = {0},
                    .end = queries.observed.end,
                    .is_single = queries.n_window == 1});
  drop_old_steps();
}

// The newer steps alone are as many queries as the window.
void AttentionNotes::drop_old_steps() {
  std::int64_t n_newer = 0;
  for (std::size_t i = steps_.size(); i-- > 0; n_newer += steps_[i].n_queries) {
    if (n_newer < std::max(ask_.window, 1)) continue;
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return;
  }
}

void AttentionNotes::Step::add(BlockIndex block, float s, float m, float l) {
  blocks.push_back(block);
  sum.push_back(s);
  max.push_back(m);
  last.push_back(l);
}

void AttentionNotes::add_totals(std::size_t head, const HeadStep& step) {
  std::vector<Total>& totals = totals_[head];
  if (!step.blocks.empty() && totals.size() <= step.blocks.back().index()) {
    totals.resize(step.blocks.back().index() + 1);
  }
  for (std::size_t i = 0; i < step.blocks.size(); ++i) {
    Total& total = totals[step.blocks[i].index()];
    total.sum += static_cast<double>(step.sum[i]);
    const Position begin(step.blocks[i].value() * block_size_);
    total.n_queries += queries_.end - std::max(queries_.begin, begin);  // earlier ones do not see it
  }
  if (n_slices_ > 0) add_slice_totals(head, step);
}

void AttentionNotes::add(std::size_t head, const HeadStep& step) {
  EBB_CHECK(step.slices.sum.size() == step.blocks.size() * n_slices_, "{} sums for {} slices of each of {} blocks",
            step.slices.sum.size(), n_slices_, step.blocks.size());
  if (ask_.totals && ask_.pool_ahead > 0) {
    add_to_pass(head, step);
  } else if (ask_.totals) {
    add_totals(head, step);
  }
  if (!keeps_steps()) return;
  if (n_slices_ > 0) add_slices_to(steps_.back(), step);
  Step& kept = steps_.back();
  EBB_CHECK(kept.begins.size() == head + 1, "head {} after {}", head, kept.begins.size() - 1);
  for (std::size_t i = 0; i < step.blocks.size(); ++i) {
    kept.add(step.blocks[i], step.window_sum[i], step.window_max[i], step.last[i]);
  }
  kept.begins.push_back(kept.blocks.size());
}

void AttentionNotes::add_reread(std::size_t head, std::span<const BlockIndex> blocks, std::span<const float> most) {
  std::vector<float>& noted = reread_[head];
  if (!blocks.empty() && noted.size() <= blocks.back().index()) noted.resize(blocks.back().index() + 1);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    noted[blocks[i].index()] = std::max(noted[blocks[i].index()], most[i]);
}

std::vector<NotedMass> AttentionNotes::noted(std::size_t head, std::span<const BlockIndex> blocks) const {
  std::vector<NotedMass> noted(blocks.size());
  for (std::size_t i = 0; ask_.totals && i < blocks.size(); ++i) {
    if (blocks[i].index() >= totals_[head].size()) break;
    const Total& total = totals_[head][blocks[i].index()];
    noted[i].total = total.sum;
    noted[i].n_queries = static_cast<double>(total.n_queries);
  }
  for (std::size_t i = 0; ask_.reread && i < blocks.size(); ++i) {
    if (blocks[i].index() >= reread_[head].size()) break;
    noted[i].reread = static_cast<double>(reread_[head][blocks[i].index()]);
  }
  for (const Step& step : steps_) add_window(step, head, blocks, &step == &steps_.back(), noted);
  return noted;
}

void AttentionNotes::add_window(const Step& step, std::size_t head, std::span<const BlockIndex> blocks, bool is_newest,
                                std::vector<NotedMass>& noted) const {
  if (step.begins.size() <= head + 1) return;
  std::size_t at = step.begins[head];
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    while (at < step.begins[head + 1] && step.blocks[at] < blocks[i]) ++at;
    if (at == step.begins[head + 1]) return;
    if (step.blocks[at] != blocks[i]) continue;
    noted[i].window_sum += static_cast<double>(step.sum[at]);
    noted[i].window_max = std::max(noted[i].window_max, static_cast<double>(step.max[at]));
    noted[i].n_in_window += step.n_queries;
    if (is_newest) noted[i].last = static_cast<double>(step.last[at]);
  }
}

void AttentionNotes::fill(const Ask& ask, std::size_t first, std::size_t n_heads, std::span<const BlockIndex> blocks,
                          ScopeEvidence& scope) const {
  const auto begin = [&](bool is_asked, std::vector<double>& column) { column.resize(is_asked ? blocks.size() : 0); };
  begin(ask.totals, scope.total);
  begin(ask.totals, scope.n_queries);
  begin(ask.window > 0, scope.window_mean);
  begin(ask.window > 0, scope.window_max);
  begin(ask.last, scope.last);
  begin(ask.reread, scope.reread);
  std::vector<std::int32_t> n_reread(blocks.size(), 0);
  std::vector<std::int32_t> n_in_window(blocks.size(), 0);
  for (std::size_t head = first; head < first + n_heads; ++head) {
    const std::vector<NotedMass> all = noted(head, blocks);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const NotedMass& mass = all[i];
      if (ask.totals) {
        scope.total[i] += mass.total;
        scope.n_queries[i] = std::max(scope.n_queries[i], mass.n_queries);
      }
      if (ask.reread && mass.reread > 0.0) {
        scope.reread[i] += mass.reread;
        n_reread[i] = 1;
      }
      if (mass.n_in_window == 0) continue;
      n_in_window[i] = std::max(n_in_window[i], mass.n_in_window);
      if (ask.last) scope.last[i] += mass.last;
      if (ask.window == 0) continue;
      scope.window_mean[i] += mass.window_sum / mass.n_in_window;
      scope.window_max[i] = std::max(scope.window_max[i], mass.window_max);
    }
  }
  for (auto* column : {&scope.window_mean, &scope.window_max, &scope.last}) fill_unseen(n_in_window, *column);
  fill_unseen(n_reread, scope.reread);
  fill_slices(ask, first, n_heads, blocks, scope.slices);
}

void AttentionNotes::forget(BlockIndex from, std::int32_t n_kept) {
  // Slices that the cut goes through are forgotten with what is behind it.
  const std::size_t n_kept_slices = n_slices_ == 0 ? 0 : to_size(n_kept) / (to_size(block_size_) / n_slices_);
  const std::size_t n_blocks = from.index() + (n_kept_slices > 0 ? 1 : 0);
  for (std::vector<Total>& totals : totals_) totals.resize(std::min(totals.size(), n_blocks));
  for (std::vector<float>& reread : reread_) reread.resize(std::min(reread.size(), from.index()));
  forget_slice_totals(from, n_kept_slices);
  for (Step& step : steps_) {
    Step kept{.n_queries = step.n_queries,
              .begins = {0},
              .end = std::min(step.end, begin_of(from, n_kept_slices)),
              .is_single = step.is_single};
    for (std::size_t head = 0; head + 1 < step.begins.size(); ++head) {
      for (std::size_t i = step.begins[head]; i < step.begins[head + 1] && step.blocks[i].index() < n_blocks; ++i) {
        if (n_slices_ > 0) keep_slices(step, i, step.blocks[i] < from ? n_slices_ : n_kept_slices, kept);
        if (step.blocks[i] < from) kept.add(step.blocks[i], step.sum[i], step.max[i], step.last[i]);
      }
      kept.begins.push_back(kept.blocks.size());
    }
    step = std::move(kept);
  }
}

AttentionImage AttentionNotes::image() const {
  AttentionImage image{.is_pooled = ask_.pool_ahead > 0};
  for (std::size_t head = 0; head < n_heads_; ++head) {
    std::size_t n_blocks = std::max(ask_.totals ? totals_[head].size() : 0, ask_.reread ? reread_[head].size() : 0);
    for (const Step& step : steps_) {
      if (step.begins.size() > head + 1 && step.begins[head] < step.begins[head + 1]) {
        n_blocks = std::max(n_blocks, step.blocks[step.begins[head + 1] - 1].index() + 1);
      }
    }
    std::vector<BlockIndex> blocks;
    for (std::size_t b = 0; b < n_blocks; ++b) blocks.emplace_back(static_cast<std::int32_t>(b));
    const std::vector<NotedMass> all = noted(head, blocks);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      const NotedMass& mass = all[b];
      if (mass.n_queries == 0.0 && mass.n_in_window == 0 && mass.reread == 0.0) continue;
      image.entries.push_back({.head = static_cast<std::int32_t>(head),
                               .block = static_cast<std::int32_t>(b),
                               .total = static_cast<float>(mass.total),
                               .n_queries = static_cast<float>(mass.n_queries),
                               .window_sum = static_cast<float>(mass.window_sum),
                               .window_max = static_cast<float>(mass.window_max),
                               .last = static_cast<float>(mass.last),
                               .reread = static_cast<float>(mass.reread),
                               .n_in_window = mass.n_in_window});
    }
  }
  if (n_slices_ > 0) put_slices(image);
  return image;
}

// Steps of the window become one: of as many queries as the block had that was in all of them.
Status AttentionNotes::restore(const AttentionImage& image, std::int32_t n_blocks) {
  const AttentionImage::Entry* before = nullptr;
  Step window{.begins = {0}};
  for (const AttentionImage::Entry& e : image.entries) {
    const bool rises =
        before == nullptr || e.head > before->head || (e.head == before->head && e.block > before->block);
    const bool is_there = e.head >= 0 && to_size(e.head) < n_heads_ && e.block >= 0 && e.block < n_blocks;
    const bool counts = is_mass(e.total) && is_mass(e.n_queries) && e.n_queries < kMostQueries &&
                        is_mass(e.window_sum) && is_mass(e.window_max) && is_mass(e.last) && is_mass(e.reread) &&
                        e.n_in_window >= 0;
    if (!rises || !is_there || !counts) {
      return error(Code::kDamaged, "notes on attention of block {} of {} in head {} of {} that no session writes",
                   e.block, n_blocks, e.head, n_heads_);
    }
    before = &e;
  }
  EBB_RETURN_IF_ERROR(check_slices(image, n_blocks));
  const bool has_totals = ask_.totals && (ask_.pool_ahead > 0 || !image.is_pooled);
  for (const AttentionImage::Entry& e : image.entries) {
    const std::size_t head = to_size(e.head);
    if (has_totals) {
      totals_[head].resize(to_size(e.block) + 1);
      totals_[head].back() = {.sum = e.total, .n_queries = static_cast<std::int64_t>(e.n_queries)};
    }
    if (ask_.reread) {
      reread_[head].resize(to_size(e.block) + 1);
      reread_[head].back() = e.reread;
    }
    if (!keeps_steps() || e.n_in_window == 0) continue;
    while (window.begins.size() <= head) window.begins.push_back(window.blocks.size());
    window.add(BlockIndex(e.block), e.window_sum, e.window_max, e.last);
    window.n_queries = std::max(window.n_queries, e.n_in_window);
  }
  while (window.begins.size() <= n_heads_) window.begins.push_back(window.blocks.size());
  if (n_slices_ > 0) restore_slices(image, window);
  if (window.n_queries > 0) steps_.push_back(std::move(window));
  if (has_totals && ask_.pool_ahead > 0 && !image.is_pooled) pool_totals();
  return {};
}

}  // namespace ebb
