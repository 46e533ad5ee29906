#include <algorithm>

#include "policy/choose.h"
#include "policy/share.h"

namespace ebb {
namespace {

struct Group {
  std::vector<std::size_t> scopes;
  std::int32_t n_frames = 0;
};

std::vector<std::int32_t> frames_of(const Evidence& evidence) {
  std::vector<std::int32_t> n_frames;
  for (const ScopeEvidence& scope : evidence.scopes) {
    n_frames.push_back(0);
    for (const ScopeRow& row : scope.rows) n_frames.back() += row.n_frames;
  }
  return n_frames;
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
  Hold hold;
  double priority;
  double score;
};

// Scopes get what their rows win among all rows of the group, beside the floor that each has of an even share. Held rows win
// before all others.
void share_by_scores(const Policy& policy, const Evidence& evidence, const Group& group,
                     std::vector<std::int32_t>& quotas) {
  std::vector<Rival> rivals;
  for (const std::size_t s : group.scopes) {
    const ScopeEvidence& scope = evidence.scopes[s];
    const std::vector<double> scores = policy.score(evidence, scope);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const BlockEvidence& block = evidence.block(scope.rows[i]);
      rivals.push_back({.scope = s,
                        .n_frames = scope.rows[i].n_frames,
                        .hold = block.hold,
                        .priority = block.priority,
                        .score = scores[i]});
    }
  }
  std::ranges::stable_sort(rivals, {}, &Rival::score);
  double n_before = 0.5;
  for (Rival& rival : rivals) rival.score = n_before++ * (policy.weighs_priorities() ? 1.0 : rival.priority);
  std::ranges::stable_sort(rivals, [](const Rival& a, const Rival& b) {
    const bool a_held = a.hold != Hold::kNone;
    const bool b_held = b.hold != Hold::kNone;
    return a_held != b_held ? a_held : a.score > b.score;
  });
  const double floor = policy.shares().floor;
  std::vector<double> won(evidence.scopes.size(), floor * group.n_frames / static_cast<double>(group.scopes.size()));
  std::int32_t n_left = group.n_frames;
  for (const Rival& rival : rivals) {
    const std::int32_t n = std::min(n_left, rival.n_frames);
    won[rival.scope] += (1.0 - floor) * n;
    n_left -= n;
  }
  const std::vector<std::int32_t> all = frames_of(evidence);
  std::vector<double> weights;
  std::vector<std::int32_t> caps;
  for (const std::size_t s : group.scopes) {
    weights.push_back(won[s]);
    caps.push_back(all[s]);
  }
  const std::vector<std::int32_t> shares = share_out(group.n_frames, weights, caps);
  for (std::size_t i = 0; i < shares.size(); ++i) quotas[group.scopes[i]] = shares[i];
}

std::vector<Group> make_groups(const Evidence& evidence, Sharing sharing, std::int32_t n_frames) {
  const std::vector<std::int32_t> all = frames_of(evidence);
  std::vector<Group> groups(sharing == Sharing::kAcrossHeads ? static_cast<std::size_t>(evidence.n_layers) : 1);
  std::vector<std::int32_t> caps(groups.size(), 0);
  for (std::size_t s = 0; s < evidence.scopes.size(); ++s) {
    const std::size_t g = groups.size() == 1 ? 0 : static_cast<std::size_t>(layer_of(evidence, evidence.scopes[s]));
    groups[g].scopes.push_back(s);
    caps[g] += all[s];
  }
  const std::vector<std::int32_t> shares = share_out(n_frames, std::vector<double>(groups.size(), 1.0), caps);
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].n_frames = shares[g];
  return groups;
}

}  // namespace

std::vector<std::int32_t> share_frames(const Policy& policy, const Evidence& evidence, std::int32_t n_frames) {
  const Shares shares = policy.shares();
  if (shares.sharing == Sharing::kEven) {
    return share_out(n_frames, std::vector<double>(evidence.scopes.size(), 1.0), frames_of(evidence));
  }
  if (shares.sharing == Sharing::kPyramid)
    return share_out(n_frames, pyramid(evidence, shares.floor), frames_of(evidence));
  std::vector<std::int32_t> quotas(evidence.scopes.size(), 0);
  for (const Group& group : make_groups(evidence, shares.sharing, n_frames)) {
    if (!group.scopes.empty()) share_by_scores(policy, evidence, group, quotas);
  }
  return quotas;
}

}  // namespace ebb
