// Test support: how originals share a budget out over layers or heads (policy/originals_twin.h says what these files are).
//
// Budgets are tokens that stay, those that always stay among them; keep_highest(scores, budgets) chooses which.
#pragma once

#include <cstddef>

#include "policy/originals_twin.h"

namespace ebb::originals {

struct ShareLimits {
  std::size_t lowest = 0;
  std::size_t highest = 0;
};

// An exact total from real shares: floors, then one more to those with the largest fractions, of equals to the lower layer
// or head; nothing leaves the limits, and what a limit takes or gives is spread over the others in proportion to their
// shares, before anything is rounded. Shares of another sum are scaled to the total.
Counts round_shares(const Row& shares, std::size_t total, const ShareLimits& limits);

struct Pyramid {
  std::size_t n_layers = 1;
  std::size_t capacity = 0;  // tokens per layer and head on average, the window's among them
  std::size_t window = 8;
  std::size_t beta = 20;
};

// PyramidKV (Cai et al. 2024, arXiv 2406.02069), tokens per head of each layer, which SnapKV's scores then choose.
// base = capacity - window; min = floor(base / beta), max = 2 base - min; where max >= P - window: max = P - window,
// min = 2 base - max. Layer l keeps max - l * floor((max - min) / (L - 1)) scored tokens and the window. P < capacity: all
// of P; P < 2 base: base everywhere; and so with one layer, where the original divides by zero.
// The floored step spends up to L (L - 1) / 2 tokens more than L * capacity.
Counts pyramid_budgets(std::size_t n_tokens, const Pyramid& pyramid);

// The same line from max down to min without the floor on its step, rounded to L * capacity.
Counts pyramid_budgets_exact(std::size_t n_tokens, const Pyramid& pyramid);

struct AdaKv {
  std::size_t capacity = 1024;  // tokens per head on average, those among them that score kAlways (the window)
  double alpha = 0.5;           // the part of the budget that no head loses
};

// AdaKV (Feng et al. 2024, arXiv 2407.11550), tokens per head. base = capacity - window; of the top Hk * base scores of all
// heads together c_h are of head h: b_h = round(c_h (1 - alpha) + floor(alpha base)), halves to even, and the window.
// Where base exceeds the scored tokens, all stay. The b_h need not sum to Hk * base.
Counts adakv_budgets(const Rows& scores, const AdaKv& adakv);

// c_h (1 - alpha) + alpha base, rounded to a total of Hk * base.
Counts adakv_budgets_exact(const Rows& scores, const AdaKv& adakv);

}  // namespace ebb::originals
