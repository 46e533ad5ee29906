#include "model/key_scorer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "base/for_each_parallel.h"
#include "base/to_size.h"
#include "model/head_score.h"
#include "model/key_bounds.h"
#include "model/model.h"
#include "model/representative_keys.h"

namespace ebb {
namespace {

// A query that is no number, or larger than any, asks for nothing.
bool is_sound(std::span<const float> query) {
  return std::ranges::all_of(query, [](float x) { return std::abs(x) < 1e15F; });
}

// As attention has them, and scaled.
GroupRows rotated_rows(const QuerySetup& setup, const TailQueries& queries, Span rows, std::size_t head) {
  GroupRows rotated;
  for (Position row = rows.begin; row < rows.end; row = row + 1) {
    const RopeFrequencies& frequencies = setup.layers[setup.layer_of(head)].frequencies;
    const KeyRotation rotation =
        setup.with_magnitude(make_key_rotation(frequencies, queries.anchor(row).value()), head);
    for (std::size_t g = 0; g < setup.group_size(); ++g) {
      const std::span<const float> query = queries.query(setup.query_head(head, g), row);
      if (!is_sound(query)) continue;
      const std::size_t at = rotated.queries.size();
      rotated.queries.insert(rotated.queries.end(), query.begin(), query.end());
      rotated.of_query_head.push_back(g);
      rotated.of_row.push_back(row - rows.begin);
      const std::span<float> own = std::span(rotated.queries).subspan(at);
      rotate_row(rotation, own);
      for (float& x : own) x *= static_cast<float>(setup.scale);
    }
  }
  return rotated;
}

// For keys that were turned by so much since: one rotation for all rows.
GroupRows turned_rows(const QuerySetup& setup, GroupRows rows, std::size_t head, std::int32_t n_turned) {
  if (n_turned == 0 || rows.of_row.empty()) return rows;
  const KeyRotation back = make_key_rotation(setup.layers[setup.layer_of(head)].frequencies, -n_turned);
  const std::size_t n_dims = rows.queries.size() / rows.of_row.size();
  for (std::size_t row = 0; row < rows.of_row.size(); ++row) {
    rotate_row(back, std::span(rows.queries).subspan(row * n_dims, n_dims));
  }
  return rows;
}

// Past the trained context each rebase turns each block by another number, and each takes the queries anew. Where they are many, the nearest of few
// stands for each: what is looked up over thousands of tokens is not lost for some hundreds more or less.
std::set<std::int32_t> few_turns(std::vector<KeyScorer::Block>& blocks) {
  constexpr std::size_t kMostTurns = 8;
  std::set<std::int32_t> turns;
  for (const KeyScorer::Block& block : blocks) turns.insert(block.n_turned);
  if (turns.size() <= kMostTurns) return turns;
  // Of powers of two, so that it seldom is another one at the next look.
  std::int32_t step = 1;
  while (static_cast<std::size_t>((*turns.rbegin() - *turns.begin()) / step) + 1 >= kMostTurns) step *= 2;
  turns.clear();
  for (KeyScorer::Block& block : blocks) {
    const double n_steps = std::round(block.n_turned / static_cast<double>(step));
    block.n_turned = static_cast<std::int32_t>(n_steps) * step;
    turns.insert(block.n_turned);
  }
  return turns;
}

// Where each of the blocks, which are put in that order, stood before.
std::vector<std::size_t> order_by_turn(std::vector<KeyScorer::Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t block) { return blocks[block].n_turned; });
  std::vector<KeyScorer::Block> ordered;
  for (const std::size_t block : order) ordered.push_back(blocks[block]);
  blocks = std::move(ordered);
  return order;
}

}  // namespace

KeyScorer::KeyScorer(const Model& model, std::int32_t n_threads)
    : KeyScorer(QuerySetup::of(model, n_threads), static_cast<double>(model.file().n_parameters())) {}

double KeyScorer::n_products(std::size_t n_blocks, std::size_t n_sketched, const KeyDigestLayout& layout) const {
  const double n_per_key = static_cast<double>(setup_.shape.n_layers) * setup_.shape.n_heads * layout.n_dims;
  // The range and the middle of each channel stand for a key each.
  const double n_bounds = n_sketched < n_blocks ? 2.0 * static_cast<double>(n_blocks) : 0.0;
  return n_per_key * (n_bounds + static_cast<double>(n_sketched) * layout.n_slots);
}

KeyScorer::Extent KeyScorer::extent(std::int32_t n_rows, std::size_t n_blocks, const KeyDigestLayout& layout) const {
  const double n_most = std::max(kMostProducts, kMostLookTokens * n_weights_);
  Extent all{.n_rows = n_rows, .n_sketched = std::min(n_blocks, kMostSketched)};
  const auto rows_for = [&](std::size_t n_sketched) {
    const double n_own = n_products(n_blocks, n_sketched, layout);
    return n_own * n_rows <= n_most ? n_rows : static_cast<std::int32_t>(n_most / n_own);
  };
  const std::int32_t n_few = std::min(n_rows, kFewQueries);
  while (all.n_sketched > kLeastSketched && rows_for(all.n_sketched) < n_few) {
    all.n_sketched = std::max(kLeastSketched, all.n_sketched * 3 / 4);
  }
  all.n_rows = std::max(rows_for(all.n_sketched), std::min(n_rows, kLeastQueries));
  return all;
}

double KeyScorer::in_tokens(double n_products) const {
  // Products that are multiplied in the time in which a token is multiplied with a weight, and weights that take as long as what the smallest
  // model does beside: by measurement in sessions of 3000 tokens, on one thread of a Zen 4 server with VNNI.
  constexpr double kPerWeight = 1.1;
  constexpr double kWeightsPerToken = 1e7;
  return n_products / (kPerWeight * (n_weights_ + kWeightsPerToken));
}

double KeyScorer::cost_in_tokens(std::int32_t n_rows, std::size_t n_blocks, const KeyDigestLayout& layout) const {
  // What a block takes beside its keys: as much as so many keys, and for each channel so many products; by measurement, on one thread
  // of a Zen 4 server.
  constexpr double kKeysPerBlock = 6.0;
  constexpr double kPerChannel = 450.0;
  // What goes round a look, beside what it takes itself: queries are noted by each step, blocks are ranked and what was found is brought in. By
  // measurement: 7 % of a reply's time were looks' where without it 5 were reckoned.
  constexpr double kRound = 1.4;
  const Extent asked = extent(n_rows, n_blocks, layout);
  const double n_per_block = asked.n_rows * n_products(0, 1, layout) / layout.n_slots * kKeysPerBlock;
  const double n_read = kPerChannel * static_cast<double>(setup_.n_kv_heads_in_all()) * layout.n_dims;
  return kRound * in_tokens(asked.n_rows * n_products(n_blocks, asked.n_sketched, layout) +
                            static_cast<double>(asked.n_sketched) * (n_per_block + n_read));
}

// Heads by themselves, so that threads change no bit.
std::vector<float> KeyScorer::score(const TailQueries& queries, Span rows, std::span<const Block> given,
                                    const KeyDigestLayout& layout, KeyEstimate estimate, KeyBounds* kept) const {
  if (estimate == KeyEstimate::kRepresentative) return score_representatives(setup_, queries, rows, given, layout);
  std::vector<Block> blocks(given.begin(), given.end());
  const std::set<std::int32_t> turns = few_turns(blocks);
  // Those that were turned alike lie together, since runs of them are computed at once.
  const std::vector<std::size_t> order = order_by_turn(blocks);
  const std::size_t n_heads = setup_.n_kv_heads_in_all();
  std::vector<float> scores(blocks.size() * n_heads, 0.0F);
  if (blocks.empty() || rows.empty()) return scores;
  const bool sketches = estimate == KeyEstimate::kSketch;
  Extent asked{.n_rows = rows.n_tokens(), .n_sketched = 0};
  if (sketches) asked = extent(rows.n_tokens(), blocks.size(), layout);
  KeyBounds own;
  KeyBounds* bounds = asked.n_sketched == blocks.size() ? nullptr : kept != nullptr ? kept : &own;
  if (bounds != nullptr) bounds->begin(blocks, layout, n_heads, estimate == KeyEstimate::kBox);
  const Span last{rows.end - asked.n_rows, rows.end};
  // Each worker goes on in the memory of the head before.
  const std::size_t n_workers = std::min(n_heads, to_size(std::max(setup_.n_threads, 1)));
  for_each_parallel(n_workers, setup_.n_threads, [&](std::size_t worker) {
    HeadScore of_head(layout, blocks,
                      {.bounds = bounds, .n_sketched = asked.n_sketched, .n_left_out = last.begin - rows.begin});
    for (std::size_t head = worker; head < n_heads; head += n_workers) {
      if (setup_.layers[setup_.layer_of(head)].slides) continue;
      of_head.begin(head);
      const GroupRows rotated = rotated_rows(setup_, queries, last, head);
      for (const std::int32_t n_turned : turns) {
        of_head.add_queries(n_turned, turned_rows(setup_, rotated, head, n_turned));
      }
      const std::vector<float> scored = of_head.find_scores();
      for (std::size_t b = 0; b < blocks.size(); ++b) scores[order[b] * n_heads + head] = scored[b];
    }
  });
  return scores;
}

}  // namespace ebb
