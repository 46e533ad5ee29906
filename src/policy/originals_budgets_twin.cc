#include "policy/originals_budgets_twin.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace ebb::originals {
namespace {

// What is nearer than this to a whole number, or to another fraction, differs by rounding errors alone.
constexpr double kGrain = 1e-9;

// Shares in proportion that sum to the total and are within the limits. Each round sees to whether more is missing below
// the lowest or above the highest, and settles the shares on that side at their limit: the rest can only move on that way.
Row clamp_shares(const Row& shares, double total, double lowest, double highest) {
  Row clamped(shares.size());
  std::vector<bool> settled(shares.size(), false);
  while (true) {
    double left = total;
    double sum = 0;
    double n_free = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (settled[i]) {
        left -= clamped[i];
      } else {
        sum += shares[i];
        n_free += 1;
      }
    }
    Row moved(shares.size(), 0.0);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (settled[i]) continue;
      const double wanted = sum > 0 ? shares[i] * left / sum : left / n_free;
      clamped[i] = std::clamp(wanted, lowest, highest);
      moved[i] = clamped[i] - wanted;
    }
    const double moved_in_all = std::accumulate(moved.begin(), moved.end(), 0.0);
    if (moved_in_all == 0) return clamped;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (moved[i] * moved_in_all > 0) settled[i] = true;
    }
  }
}

struct PyramidEnds {
  std::size_t bottom = 0;
  std::size_t top = 0;
};

// Scored tokens of the lowest and of the highest layer.
PyramidEnds find_pyramid_ends(std::size_t n_tokens, const Pyramid& pyramid) {
  EBB_CHECK(pyramid.capacity > pyramid.window, "capacity {}, window {}", pyramid.capacity, pyramid.window);
  EBB_CHECK(pyramid.n_layers > 0 && pyramid.beta > 0, "{} layers, beta {}", pyramid.n_layers, pyramid.beta);
  const std::size_t base = pyramid.capacity - pyramid.window;
  if (n_tokens < 2 * base || pyramid.n_layers == 1) return {.bottom = base, .top = base};
  PyramidEnds ends = {.bottom = 2 * base - base / pyramid.beta, .top = base / pyramid.beta};
  const std::size_t n_scored = n_tokens - std::min(n_tokens, pyramid.window);
  if (ends.bottom >= n_scored) ends = {.bottom = n_scored, .top = 2 * base - n_scored};
  return ends;
}

struct HeadShares {
  std::size_t base = 0;
  std::size_t n_scored = 0;
  std::size_t n_always = 0;
  Counts in_top;  // c_h
};

HeadShares count_head_shares(const Rows& scores, const AdaKv& adakv) {
  EBB_CHECK(!scores.empty() && adakv.alpha >= 0 && adakv.alpha <= 1, "{} heads, alpha {}", scores.size(), adakv.alpha);
  const auto count_always = [](const Row& row) {
    return static_cast<std::size_t>(std::count(row.begin(), row.end(), kAlways));
  };
  HeadShares shares = {.n_always = count_always(scores[0])};
  for (const Row& row : scores) {
    EBB_CHECK(row.size() == scores[0].size() && count_always(row) == shares.n_always, "heads of unlike tokens");
  }
  EBB_CHECK(adakv.capacity >= shares.n_always, "capacity {}, window {}", adakv.capacity, shares.n_always);
  shares.base = adakv.capacity - shares.n_always;
  shares.n_scored = scores[0].size() - shares.n_always;
  for (const Tokens& tokens : keep_highest_of_all(scores, scores.size() * adakv.capacity)) {
    shares.in_top.push_back(tokens.size() - shares.n_always);
  }
  return shares;
}

}  // namespace

Counts round_shares(const Row& shares, std::size_t total, const ShareLimits& limits) {
  EBB_CHECK(shares.size() * limits.lowest <= total && total <= shares.size() * limits.highest,
            "{} shares of [{}, {}] cannot make {}", shares.size(), limits.lowest, limits.highest, total);
  for (const double share : shares) EBB_CHECK(std::isfinite(share) && share >= 0, "a share of {}", share);
  const Row clamped = clamp_shares(shares, static_cast<double>(total), static_cast<double>(limits.lowest),
                                   static_cast<double>(limits.highest));
  Counts counts;
  Row fractions;
  for (const double share : clamped) {
    const double whole = std::floor(share + kGrain);
    counts.push_back(static_cast<std::size_t>(whole));
    fractions.push_back(std::round((share - whole) / kGrain));
  }
  Counts order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return fractions[a] > fractions[b]; });
  const std::size_t left = total - std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  EBB_CHECK(left <= shares.size(), "{} tokens left for {} shares", left, shares.size());
  for (std::size_t i = 0; i < left; ++i) ++counts[order[i]];
  for (const std::size_t count : counts) {
    EBB_CHECK(limits.lowest <= count && count <= limits.highest, "{} is not in [{}, {}]", count, limits.lowest,
              limits.highest);
  }
  return counts;
}

Counts pyramid_budgets(std::size_t n_tokens, const Pyramid& pyramid) {
  if (n_tokens < pyramid.capacity) return Counts(pyramid.n_layers, n_tokens);
  const PyramidEnds ends = find_pyramid_ends(n_tokens, pyramid);
  const std::size_t step = pyramid.n_layers == 1 ? 0 : (ends.bottom - ends.top) / (pyramid.n_layers - 1);
  Counts budgets;
  for (std::size_t l = 0; l < pyramid.n_layers; ++l) budgets.push_back(ends.bottom - l * step + pyramid.window);
  return budgets;
}

Counts pyramid_budgets_exact(std::size_t n_tokens, const Pyramid& pyramid) {
  if (n_tokens < pyramid.capacity) return Counts(pyramid.n_layers, n_tokens);
  const PyramidEnds ends = find_pyramid_ends(n_tokens, pyramid);
  const auto bottom = static_cast<double>(ends.bottom);
  const auto top = static_cast<double>(ends.top);
  const auto n_steps = static_cast<double>(std::max<std::size_t>(pyramid.n_layers - 1, 1));
  Row shares;
  for (std::size_t l = 0; l < pyramid.n_layers; ++l) {
    shares.push_back(bottom - static_cast<double>(l) * (bottom - top) / n_steps);
  }
  const std::size_t total = pyramid.n_layers * (pyramid.capacity - pyramid.window);
  Counts budgets = round_shares(shares, total, {.highest = n_tokens - pyramid.window});
  for (std::size_t& budget : budgets) budget += pyramid.window;
  return budgets;
}

Counts adakv_budgets(const Rows& scores, const AdaKv& adakv) {
  const HeadShares shares = count_head_shares(scores, adakv);
  if (shares.base > shares.n_scored) return Counts(scores.size(), scores[0].size());
  const double floor = std::floor(adakv.alpha * static_cast<double>(shares.base));
  Counts budgets;
  for (const std::size_t n : shares.in_top) {
    // nearbyint: halves to even, as torch.round does.
    const double budget = std::nearbyint(static_cast<double>(n) * (1 - adakv.alpha) + floor);
    budgets.push_back(static_cast<std::size_t>(budget) + shares.n_always);
  }
  return budgets;
}

Counts adakv_budgets_exact(const Rows& scores, const AdaKv& adakv) {
  const HeadShares shares = count_head_shares(scores, adakv);
  if (shares.base > shares.n_scored) return Counts(scores.size(), scores[0].size());
  Row wanted;
  for (const std::size_t n : shares.in_top) {
    wanted.push_back(static_cast<double>(n) * (1 - adakv.alpha) + adakv.alpha * static_cast<double>(shares.base));
  }
  Counts budgets = round_shares(wanted, scores.size() * shares.base, {.highest = shares.n_scored});
  for (std::size_t& budget : budgets) budget += shares.n_always;
  return budgets;
}

}  // namespace ebb::originals
