#include "policy/choose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/to_size.h"

namespace ebb {
namespace {

// In which order holds give way; pinned ones never do.
constexpr Hold kHolds[] = {Hold::kNone, Hold::kProtected, Hold::kKept};

std::vector<std::size_t> order_by(const std::vector<double>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return keys[i]; });
  return order;
}

std::vector<double> checked_scores(const Policy& policy, const Evidence& evidence, const ScopeEvidence& scope) {
  std::vector<double> scores = policy.score(evidence, scope);
  EBB_CHECK(scores.size() == scope.rows.size(), "policy {}: {} scores for {} rows", policy.name(), scores.size(),
            scope.rows.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EBB_CHECK(!std::isnan(scores[i]), "policy {}: block {} has no score", policy.name(),
              evidence.block(scope.rows[i]).block.value());
  }
  return scores;
}

std::vector<double> rank_by(const std::vector<double>& scores, const Policy& policy, const Evidence& evidence,
                            const ScopeEvidence& scope) {
  std::vector<double> ranks(scores.size());
  double n_before = 0.5;
  for (const std::size_t i : order_by(scores)) {
    const double priority = policy.weighs_priorities() ? 1.0 : evidence.block(scope.rows[i]).priority;
    ranks[i] = scores[i] == kNeverLeaves ? kNeverLeaves : n_before++ / static_cast<double>(scores.size()) * priority;
  }
  return ranks;
}

// What leaves from one scope.
class Taker {
 public:
  Taker(const Evidence& evidence, const ScopeEvidence& scope, std::vector<double> ranks)
      : evidence_(evidence), scope_(scope), ranks_(std::move(ranks)), order_(order_by(ranks_)) {}

  // Before n_frames are taken: those that the policy rescues go behind the others that come into question.
  void rescue(const Policy& policy, std::int32_t n_frames) {
    const std::int32_t n_rescued = policy.n_rescued(evidence_.grain);
    if (n_rescued == 0 || n_frames <= 0) return;
    std::vector<std::size_t> places;  // in the order
    std::vector<std::size_t> leaving;
    std::int32_t n_taken = 0;
    // Frames leave, of which a row has one in each head, and rows are rescued.
    std::int32_t n_more = 0;
    for (std::size_t at = 0; at < order_.size() && (n_taken < n_frames || n_more < n_rescued); ++at) {
      const ScopeRow& row = scope_.rows[order_[at]];
      if (evidence_.block(row).hold != Hold::kNone || ranks_[order_[at]] == kNeverLeaves) continue;
      places.push_back(at);
      leaving.push_back(order_[at]);
      n_more += n_taken < n_frames ? 0 : 1;
      n_taken += row.n_frames;
    }
    const std::vector<std::size_t> rescued = policy.rescue(evidence_, scope_, leaving);
    const auto is_rescued = [&](std::size_t row) { return std::ranges::find(rescued, row) != rescued.end(); };
    std::ranges::stable_partition(leaving, std::not_fn(is_rescued));
    for (std::size_t i = 0; i < places.size(); ++i) order_[places[i]] = leaving[i];
  }

  // Rows of this hold, lowest first, while they are fewer frames than n_frames. How many frames they give.
  std::int32_t take(Hold hold, std::int32_t n_frames, std::vector<Victim>& victims) {
    std::int32_t n_taken = 0;
    while (n_taken < n_frames && lowest(hold) != kNeverLeaves) {
      const ScopeRow& row = scope_.rows[order_[next(hold)++]];
      victims.push_back({.block = evidence_.block(row).block, .scope = scope_.index});
      n_taken += row.n_frames;
    }
    return n_taken;
  }

  // The rank of the lowest that is left of this hold; none: infinity.
  [[nodiscard]] double lowest(Hold hold) {
    std::size_t& at = next(hold);
    while (at < order_.size() && evidence_.block(scope_.rows[order_[at]]).hold != hold) ++at;
    return at < order_.size() ? ranks_[order_[at]] : kNeverLeaves;
  }

 private:
  // Where in the order to look for the next row of a hold.
  [[nodiscard]] std::size_t& next(Hold hold) { return next_[static_cast<std::size_t>(hold)]; }

  const Evidence& evidence_;
  const ScopeEvidence& scope_;
  std::vector<double> ranks_;
  std::vector<std::size_t> order_;
  std::array<std::size_t, 4> next_ = {};
};

}  // namespace

Status Watermarks::validate() const {
  if (low > 0.0 && low <= high && high <= 1.0) return {};
  return error(Code::kInvalidArgument, "watermarks of {} (low) and {} (high); give 0 < low <= high <= 1", low, high);
}

std::int32_t count_victims(std::int32_t n_hot, std::int32_t n_new, std::int32_t budget, const Watermarks& watermarks) {
  const auto mark = [&](double share) { return static_cast<std::int32_t>(std::floor(share * budget)); };
  const std::int32_t needed = std::max(0, n_hot + n_new - budget);
  if (n_hot + n_new <= mark(watermarks.high)) return needed;
  return std::max(needed, n_hot + n_new - mark(watermarks.low));
}

std::vector<double> rank_rows(const Policy& policy, const Evidence& evidence, const ScopeEvidence& scope) {
  return rank_by(checked_scores(policy, evidence, scope), policy, evidence, scope);
}

ScopeScores score_scopes(const Policy& policy, const Evidence& evidence) {
  ScopeScores scores;
  for (const ScopeEvidence& scope : evidence.scopes) scores.push_back(checked_scores(policy, evidence, scope));
  return scores;
}

std::vector<double> rank_blocks(const Policy& policy, const Evidence& evidence) {
  std::vector<double> sums(evidence.blocks.size(), 0.0);
  std::vector<double> counts(evidence.blocks.size(), 0.0);
  for (const ScopeEvidence& scope : evidence.scopes) {
    const std::vector<double> ranks = rank_rows(policy, evidence, scope);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      sums[to_size(scope.rows[i].block)] += ranks[i];
      counts[to_size(scope.rows[i].block)] += 1.0;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = counts[i] == 0.0 ? kNeverLeaves : sums[i] / counts[i];
  return sums;
}

std::vector<Victim> choose_victims(const Policy& policy, const Evidence& evidence, std::int32_t n_wanted,
                                   std::int32_t n_needed) {
  std::int32_t n_hot = 0;
  const ScopeScores scores = score_scopes(policy, evidence);
  std::vector<Taker> takers;
  for (const ScopeEvidence& scope : evidence.scopes) {
    takers.emplace_back(evidence, scope, rank_by(scores[takers.size()], policy, evidence, scope));
    for (const ScopeRow& row : scope.rows) n_hot += row.n_frames;
  }
  const std::vector<std::int32_t> quotas = share_frames(policy, evidence, scores, std::max(0, n_hot - n_wanted));
  std::vector<Victim> victims;
  std::int32_t n_frames = 0;
  for (std::size_t s = 0; s < takers.size(); ++s) {
    std::int32_t n_here = 0;
    for (const ScopeRow& row : evidence.scopes[s].rows) n_here += row.n_frames;
    takers[s].rescue(policy, n_here - quotas[s]);
    n_frames += takers[s].take(Hold::kNone, n_here - quotas[s], victims);
  }
  // What some scopes hold too firmly is taken where the least is lost.
  for (const Hold hold : kHolds) {
    const std::int32_t n_most = hold == Hold::kNone ? n_wanted : n_needed;
    while (n_frames < n_most) {
      const auto least = std::ranges::min_element(takers, {}, [&](Taker& t) { return t.lowest(hold); });
      if (least == takers.end() || least->lowest(hold) == kNeverLeaves) break;
      n_frames += least->take(hold, 1, victims);
    }
  }
  return victims;
}

std::vector<BlockIndex> choose_blocks(const Policy& policy, const Evidence& evidence, std::int32_t n_blocks) {
  const std::vector<double> ranks = rank_blocks(policy, evidence);
  const std::vector<std::size_t> order = order_by(ranks);
  std::vector<BlockIndex> chosen;
  for (const Hold hold : kHolds) {
    for (const std::size_t i : order) {
      if (std::ssize(chosen) == n_blocks) return chosen;
      if (evidence.blocks[i].hold == hold && ranks[i] != kNeverLeaves) chosen.push_back(evidence.blocks[i].block);
    }
  }
  return chosen;
}

}  // namespace ebb
