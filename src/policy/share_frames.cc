#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "base/to_size.h"
#include "policy/budget_list.h"
#include "policy/choose.h"
#include "policy/share.h"

namespace ebb {
namespace {

struct ScoredEvidence {
  const Policy& policy;
  const Evidence& evidence;
  const ScopeScores& scores;
};

// What the scopes of some layers have to share.
struct Group {
  std::vector<std::size_t> scopes;
  std::int32_t n_frames = 0;
};

// Of each scope's rows.
struct ScopeFrames {
  std::vector<std::int32_t> held;
  std::vector<std::int32_t> free;
};

ScopeFrames count_frames(const Evidence& evidence) {
  ScopeFrames frames;
  for (const ScopeEvidence& scope : evidence.scopes) {
    frames.held.push_back(0);
    frames.free.push_back(0);
    for (const ScopeRow& row : scope.rows) {
      const bool is_held = evidence.block(row).hold != Hold::kNone;
      (is_held ? frames.held : frames.free).back() += row.n_frames;
    }
  }
  return frames;
}

std::int32_t layer_of(const Evidence& evidence, const ScopeEvidence& scope) {
  const std::int32_t n_in_layer = std::max(1, evidence.n_scopes / evidence.n_layers);
  return std::min(scope.index / n_in_layer, evidence.n_layers - 1);
}

// By equal steps from 2 - floor in the lowest layer to `floor` in the highest, of an even share.
std::vector<double> pyramid(const Evidence& evidence, double floor) {
  std::vector<double> weights;
  for (const ScopeEvidence& scope : evidence.scopes) {
    const double height = evidence.n_layers < 2 ? 0.5 : layer_of(evidence, scope) / (evidence.n_layers - 1.0);
    weights.push_back(2.0 - floor - 2.0 * (1.0 - floor) * height);
  }
  return weights;
}

// A row among those of all scopes that compete.
struct Rival {
  std::size_t scope;
  std::int32_t n_frames;
  BlockIndex block;
  double priority;
  double score;
};

std::vector<Rival> gather_rivals(const ScoredEvidence& scored, const Group& group) {
  const Evidence& evidence = scored.evidence;
  std::vector<Rival> rivals;
  for (const std::size_t s : group.scopes) {
    const ScopeEvidence& scope = evidence.scopes[s];
    const std::vector<double>& scores = scored.scores[s];
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const BlockEvidence& block = evidence.block(scope.rows[i]);
      if (block.hold != Hold::kNone) continue;
      rivals.push_back({.scope = s,
                        .n_frames = scope.rows[i].n_frames,
                        .block = block.block,
                        .priority = scored.policy.weighs_priorities() ? 1.0 : block.priority,
                        .score = scores[i]});
    }
  }
  // As rank_rows() does within a scope: the older of equals gives way, and priorities stretch ranks.
  std::ranges::stable_sort(rivals, {}, [](const Rival& rival) { return std::pair(rival.score, rival.block); });
  double n_before = 0.5;
  for (Rival& rival : rivals) rival.score = n_before++ * rival.priority;
  std::ranges::stable_sort(rivals, std::greater<>(), &Rival::score);
  return rivals;
}

// Scopes get what their rows win among all rows of the group, beside the floor that each has of an even share.
void share_by_scores(const ScoredEvidence& scored, const Group& group, std::span<const std::int32_t> free,
                     std::span<std::int32_t> quotas) {
  const double floor = scored.policy.shares().floor;
  std::vector<double> won(scored.evidence.scopes.size(),
                          floor * group.n_frames / static_cast<double>(group.scopes.size()));
  std::int32_t n_left = group.n_frames;
  for (const Rival& rival : gather_rivals(scored, group)) {
    const std::int32_t n = std::min(n_left, rival.n_frames);
    won[rival.scope] += (1.0 - floor) * n;
    n_left -= n;
  }
  std::vector<double> weights;
  std::vector<std::int32_t> caps;
  for (const std::size_t s : group.scopes) {
    weights.push_back(won[s]);
    caps.push_back(free[s]);
  }
  const std::vector<std::int32_t> shares = share_out(group.n_frames, weights, caps);
  for (std::size_t i = 0; i < shares.size(); ++i) quotas[group.scopes[i]] += shares[i];
}

void share_evenly(const Group& group, std::span<const std::int32_t> free, std::span<std::int32_t> quotas) {
  std::vector<std::int32_t> caps;
  for (const std::size_t s : group.scopes) caps.push_back(free[s]);
  const std::vector<std::int32_t> shares = share_out(group.n_frames, std::vector<double>(caps.size(), 1.0), caps);
  for (std::size_t i = 0; i < shares.size(); ++i) quotas[group.scopes[i]] += shares[i];
}

std::vector<Group> make_groups(const Evidence& evidence, FrameSharing sharing, std::int32_t n_frames,
                               std::span<const std::int32_t> free) {
  std::vector<Group> groups(sharing == FrameSharing::kAcrossHeads ? static_cast<std::size_t>(evidence.n_layers) : 1);
  std::vector<std::int32_t> caps(groups.size(), 0);
  for (std::size_t s = 0; s < evidence.scopes.size(); ++s) {
    const std::size_t g = groups.size() == 1 ? 0 : static_cast<std::size_t>(layer_of(evidence, evidence.scopes[s]));
    groups[g].scopes.push_back(s);
    caps[g] += free[s];
  }
  const std::vector<std::int32_t> shares = share_out(n_frames, std::vector<double>(groups.size(), 1.0), caps);
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].n_frames = shares[g];
  return groups;
}

// By the user's list: that is what each layer or head is to have in all, held frames too, once those have come that room is made
// for. Held ones are the least it has. What a list leaves open, the heads of a layer share as the policy says.
std::vector<std::int32_t> share_by_list(const ScoredEvidence& scored, std::int32_t n_frames,
                                        const ScopeFrames& frames) {
  const Policy& policy = scored.policy;
  const Evidence& evidence = scored.evidence;
  const BudgetList& list = *policy.shares().list;
  const std::int32_t n_new = evidence.n_new_frames / evidence.n_scopes;
  std::vector<Group> groups(list.weights.size());
  std::vector<std::int32_t> least(groups.size(), 0);
  std::vector<std::int32_t> most(groups.size(), 0);
  for (std::size_t s = 0; s < evidence.scopes.size(); ++s) {
    const ScopeEvidence& scope = evidence.scopes[s];
    const auto g = to_size(list.scope == Scope::kLayer ? layer_of(evidence, scope) : scope.index);
    groups[g].scopes.push_back(s);
    least[g] += frames.held[s] + n_new;
    most[g] += frames.held[s] + frames.free[s] + n_new;
  }
  const std::int32_t n_in_all = n_frames + n_new * static_cast<std::int32_t>(evidence.scopes.size());
  const std::vector<std::int32_t> shares = share_out(n_in_all, list.weights, most, least);
  const bool by_scores =
      policy.shares().sharing == FrameSharing::kAcrossHeads || policy.shares().sharing == FrameSharing::kAcrossLayers;
  std::vector<std::int32_t> quotas = frames.held;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].n_frames = shares[g] - least[g];
    if (by_scores && groups[g].scopes.size() > 1) {
      share_by_scores(scored, groups[g], frames.free, quotas);
    } else {
      share_evenly(groups[g], frames.free, quotas);
    }
  }
  return quotas;
}

}  // namespace

// What is held stays where it is, and the rest is shared.
std::vector<std::int32_t> share_frames(const Policy& policy, const Evidence& evidence, const ScopeScores& scores,
                                       std::int32_t n_frames) {
  const ScopeFrames frames = count_frames(evidence);
  const std::vector<double> even(evidence.scopes.size(), 1.0);
  const std::int32_t n_free = n_frames - std::accumulate(frames.held.begin(), frames.held.end(), 0);
  if (n_free <= 0) return share_out(n_frames, even, frames.held);
  const Shares shares = policy.shares();
  if (shares.list != nullptr) return share_by_list({policy, evidence, scores}, n_frames, frames);
  std::vector<std::int32_t> quotas = frames.held;
  if (shares.sharing == FrameSharing::kAcrossHeads || shares.sharing == FrameSharing::kAcrossLayers) {
    for (const Group& group : make_groups(evidence, shares.sharing, n_free, frames.free)) {
      if (!group.scopes.empty()) share_by_scores({policy, evidence, scores}, group, frames.free, quotas);
    }
    return quotas;
  }
  const bool is_even = shares.sharing == FrameSharing::kEven;
  const std::vector<std::int32_t> parts =
      share_out(n_free, is_even ? even : pyramid(evidence, shares.floor), frames.free);
  for (std::size_t s = 0; s < quotas.size(); ++s) quotas[s] += parts[s];
  return quotas;
}

}  // namespace ebb
