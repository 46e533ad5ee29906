// Areas as a policy (OpenVINO GenAI's cache eviction, with KVCrush): the start area stays, the recent one is safe, and between
// them blocks leave by what attention gave their tokens, the same ones in every head of a layer.
//
//   [0, start)              leaves when nothing else is left
//   [start, end - recent)   competes, in blocks of `block` tokens
//   [end - recent, end)     leaves before the start area, the oldest first
//
// Tokens are valued, whatever the engine's grain: by slices of one token (slice=1), added up over blocks. A row larger than
// `block` is valued and rescued as a whole: KVCrush then compares the tokens of rows, and rescues as many as make up its blocks.
// Without slices (slice=0) a row is valued as if it were a token; at a grain of 1 it is one. The whole scheme, pass by pass, is
// policy/areas.h. Different here: rows are chosen whenever room is needed, and not behind a prompt only; the
// generator of KVCrush's RANDOM anchor begins anew with each choice; rescued blocks count inside the budget. With --kv-removal
// compact the keys of each layer are turned by what left that layer (apply_rotation).
//
// With norm=2 it is Adaptive R-KV (policy/adaptive_rkv.h): the best by what the last `history` queries gave them stay until they
// have `mass` of all that the evictable area has; before them the others leave, those first whose keys are most like the others'.
// That is one order however many leave, so it is told as scores. Different here:
//
//   history    the mean of the last queries, each as much as any other, through evictions, where the original has the mean of the
//              last passes since the last eviction, of which a prompt's is one; a token that came since is not held against itself
//   likeness   told by rows, by the mean directions of their keys: rows of one token give the original's numbers; of larger ones
//              cosines are exact means over their tokens, and what is below the average is left out by rows and not by tokens
//   keys       those of the choice, where the original's are asked for by a rule that never meets an eviction
//   most       no more rows than these are compared; where more have not the mass, the better ones stay by score
//   partly     a block of which some rows are not hot is valued by the others: its sum, and the mean of their diversity
//
// Price of norm=2: heads * (rows + compared rows^2) * head size products a layer and choice: 0.8 ms of a busy processor a head of 64
// for 256 rows (policies_benchmark.cc).
#include <numeric>
#include <random>

#include "policy/adaptive_rkv.h"
#include "policy/all.h"
#include "policy/areas_scores.h"
#include "policy/key_diversity.h"
#include "policy/kvcrush.h"
#include "policy/pooling.h"

namespace ebb {
namespace {

struct AreasOptions {
  std::int32_t start = 0;
  std::int32_t recent = 0;
  std::int32_t block = 1;
  Aggregation aggregation = Aggregation::kSum;
  std::int32_t window = 0;
  std::int32_t slice = 0;
  CrushConfig crush;
  double mass = 0.0;
  std::int32_t n_history = 0;
  std::int32_t n_most = 0;
};

class Areas final : public Policy {
 public:
  explicit Areas(const AreasOptions& options) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return "areas"; }
  [[nodiscard]] Ask asks() const override {
    if (is_adaptive()) {
      return {.scope = Scope::kLayer, .window = options_.n_history, .slice = options_.slice, .keys = true};
    }
    return {.scope = Scope::kLayer,
            .totals = true,
            .prompt_window = options_.window,
            .pool_ahead = static_cast<std::int32_t>(kPoolTokens),
            .slice = options_.slice};
  }

  [[nodiscard]] Status check_grain(std::int32_t grain) const override {
    EBB_RETURN_IF_ERROR(asks().check_slice(grain));
    if (is_adaptive() && options_.crush.budget_blocks > 0) {
      return error(
          Code::kInvalidArgument,
          "policy areas: crush={} beside norm=2: Adaptive R-KV has a second choice of its own; give crush=0, or "
          "norm=1",
          options_.crush.budget_blocks);
    }
    const std::int32_t told_apart = asks().n_slices(grain) > 0 ? options_.slice : grain;
    if (options_.crush.budget_blocks == 0 || told_apart < options_.block) return {};
    return error(Code::kInvalidArgument,
                 "policy areas: crush compares the tokens of a block of {} (`block`), and {} of them are told apart "
                 "together: give slice=1, or crush=0",
                 options_.block, told_apart);
  }

  [[nodiscard]] bool compares_blocks() const override { return is_adaptive(); }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> scores = is_adaptive() ? adaptive_scores(evidence, scope) : summed_scores(evidence, scope);
    double greatest = 0.0;
    for (const double score : scores) greatest = std::max(greatest, score);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Span span = evidence.block(scope.rows[i]).span;
      if (span.begin.value() < options_.start) {
        scores[i] = greatest + 2.0 + evidence.end.value();
      } else if (is_recent(evidence, span)) {
        scores[i] = greatest + 1.0 + span.begin.value();
      }
    }
    return scores;
  }

  [[nodiscard]] std::int32_t n_rescued(std::int32_t grain) const override {
    if (options_.crush.budget_blocks == 0) return 0;
    // Of rows that are larger than a block as many as hold its tokens, at least one.
    return grain < options_.block ? options_.crush.budget_blocks * (options_.block / grain)
                                  : std::max(1, options_.crush.budget_blocks * options_.block / grain);
  }

  [[nodiscard]] std::vector<std::size_t> rescue(const Evidence& evidence, const ScopeEvidence& scope,
                                                std::span<const std::size_t> leaving) const override {
    const WholeBlocks whole = find_whole_blocks(evidence, scope);
    std::vector<std::int32_t> victims;
    for (std::size_t b = 0; b < whole.first_rows.size(); ++b) {
      const auto leaves = [&](std::size_t row) { return std::ranges::find(leaving, row) != leaving.end(); };
      bool all = true;
      for (std::size_t i = 0; i < whole.n_rows && all; ++i) all = leaves(whole.first_rows[b] + i);
      if (all) victims.push_back(static_cast<std::int32_t>(b));
    }
    std::mt19937 random(options_.crush.rng_seed);
    CrushConfig crush = options_.crush;
    crush.budget_blocks = n_rescued(evidence.grain) / static_cast<std::int32_t>(whole.n_rows);
    std::vector<std::size_t> rescued;
    for (const std::int32_t b :
         rescue_blocks({.sums = whole.sums, .block_size = whole.n_values(), .victims = victims}, crush, random)) {
      for (std::size_t i = 0; i < whole.n_rows; ++i) {
        rescued.push_back(whole.first_rows[static_cast<std::size_t>(b)] + i);
      }
    }
    return rescued;
  }

 private:
  // Rows [begin, end) of a scope that are hot of one block, and what their tokens are worth together.
  struct BlockRows {
    std::size_t begin = 0;
    std::size_t end = 0;
    double sum = 0.0;
  };

  [[nodiscard]] bool is_adaptive() const { return options_.aggregation == Aggregation::kAdaptiveRkv; }

  // Of rows [begin, end).
  [[nodiscard]] std::vector<BlockRows> sum_blocks(const Evidence& evidence, const ScopeEvidence& scope,
                                                  const SliceValues& tokens, std::size_t begin, std::size_t end) const {
    std::vector<BlockRows> blocks;
    for (std::size_t row = begin; row < end; ++row) {
      const bool goes_on = row > begin && block_of(evidence, scope, row) == block_of(evidence, scope, row - 1);
      if (!goes_on) blocks.push_back({.begin = row});
      blocks.back().end = row + 1;
      // Token by token, as the original adds them, so that what ties there ties here.
      for (const double value : tokens.of(row)) blocks.back().sum += value;
    }
    return blocks;
  }

  [[nodiscard]] std::vector<double> summed_scores(const Evidence& evidence, const ScopeEvidence& scope) const {
    SliceValues tokens = pooled_sums(evidence, scope);
    const SliceValues counts = list_tokens(evidence, scope, scope.slices.n_queries, scope.n_queries);
    for (std::size_t i = 0; options_.aggregation == Aggregation::kNormSum && i < tokens.values.size(); ++i) {
      tokens.values[i] /= std::max(1.0, counts.values[i]);
    }
    std::vector<double> scores;
    for (const BlockRows& block : sum_blocks(evidence, scope, tokens, 0, scope.rows.size())) {
      scores.resize(block.end, block.sum);
    }
    return scores;
  }

  // Places in the order of leaving, of what is evictable; 0 of the rest.
  [[nodiscard]] std::vector<double> adaptive_scores(const Evidence& evidence, const ScopeEvidence& scope) const {
    const auto is_start = [&](const ScopeRow& row) { return evidence.block(row).span.begin.value() < options_.start; };
    const auto is_safe = [&](const ScopeRow& row) { return is_recent(evidence, evidence.block(row).span); };
    const auto first = std::ranges::find_if_not(scope.rows, is_start);
    const auto begin = static_cast<std::size_t>(first - scope.rows.begin());
    const auto end = static_cast<std::size_t>(std::find_if(first, scope.rows.end(), is_safe) - scope.rows.begin());
    const std::vector<BlockRows> blocks = sum_blocks(evidence, scope, pooled_sums(evidence, scope), begin, end);
    std::vector<double> sums;
    for (const BlockRows& block : blocks) sums.push_back(block.sum);
    const RowDirections keys{
        .directions =
            std::span(scope.key_direction).subspan(begin * scope.n_key_dims, (end - begin) * scope.n_key_dims),
        .n_heads = scope.n_key_heads,
        .head_dim = scope.n_key_dims / scope.n_key_heads,
        .n_tokens = evidence.grain};
    const std::int32_t n_rows = std::max(1, options_.block / evidence.grain);
    const std::vector<std::int32_t> order =
        order_adaptive({.block_scores = sums,
                        .attention_mass = options_.mass,
                        .n_most_compared = std::max(1, options_.n_most / n_rows)},
                       [&](std::span<const std::int32_t> others) { return diversity_among(others, blocks, keys); });
    std::vector<double> scores(scope.rows.size(), 0.0);
    double place = 0.0;
    for (const std::int32_t b : order) {
      const BlockRows& block = blocks[static_cast<std::size_t>(b)];
      for (std::size_t row = block.begin; row < block.end; ++row) scores[row] = place;
      place += 1.0;
    }
    return scores;
  }

  // Of the first block's first row on, whose keys come first.
  static std::vector<double> diversity_among(std::span<const std::int32_t> numbers,
                                             const std::vector<BlockRows>& blocks, const RowDirections& keys) {
    std::vector<std::int32_t> rows;
    for (const std::int32_t b : numbers) {
      const BlockRows& block = blocks[static_cast<std::size_t>(b)];
      for (std::size_t row = block.begin; row < block.end; ++row) {
        rows.push_back(static_cast<std::int32_t>(row - blocks.front().begin));
      }
    }
    const std::vector<double> of_rows = direction_diversity(keys, rows);
    std::vector<double> diversity;
    auto next = of_rows.begin();
    for (const std::int32_t b : numbers) {
      const BlockRows& block = blocks[static_cast<std::size_t>(b)];
      const auto n_rows = static_cast<std::ptrdiff_t>(block.end - block.begin);
      diversity.push_back(std::accumulate(next, next + n_rows, 0.0) / static_cast<double>(n_rows));
      next += n_rows;
    }
    return diversity;
  }

  // Evictable blocks all of whose rows are hot.
  struct WholeBlocks {
    std::size_t n_rows = 1;
    std::vector<std::size_t> first_rows;
    std::vector<double> sums;  // [block][token, or slice, or row]

    [[nodiscard]] std::int32_t n_values() const {
      return first_rows.empty() ? 1 : static_cast<std::int32_t>(sums.size() / first_rows.size());
    }
  };

  // What is valued: slices, or rows where none are told apart.
  [[nodiscard]] static SliceValues list_tokens(const Evidence& evidence, const ScopeEvidence& scope,
                                               const std::vector<double>& of_slices,
                                               const std::vector<double>& of_rows) {
    if (scope.slices.n_slices > 0) return list_slices(evidence, scope, of_slices);
    SliceValues list{.values = of_rows};
    for (std::size_t i = 0; i <= of_rows.size(); ++i) list.begins.push_back(i);
    return list;
  }

  [[nodiscard]] std::int32_t block_of(const Evidence& evidence, const ScopeEvidence& scope, std::size_t row) const {
    return evidence.block(scope.rows[row]).span.begin.value() / options_.block;
  }

  // The last whole blocks, and what is behind them.
  [[nodiscard]] bool is_recent(const Evidence& evidence, Span span) const {
    const std::int32_t block = std::max(options_.block, evidence.grain);
    const std::int32_t whole = evidence.end.value() / block * block;
    return span.end.value() > whole - options_.recent;
  }

  // What a token got, or one of the next, since those before a looked-at one are kept with it. Totals are pooled where they are
  // noted, pass by pass (Ask::pool_ahead); a mean of passes is pooled as it is.
  [[nodiscard]] SliceValues pooled_sums(const Evidence& evidence, const ScopeEvidence& scope) const {
    if (!is_adaptive()) return list_tokens(evidence, scope, scope.slices.total, scope.total);
    const std::int32_t n_tokens = scope.slices.n_slices > 0 ? scope.slices.n_tokens : evidence.grain;
    const std::size_t reach = kPoolTokens / static_cast<std::size_t>(n_tokens);
    const SliceValues means = list_tokens(evidence, scope, scope.slices.window_mean, scope.window_mean);
    SliceValues pooled = means;
    for (std::size_t i = 0; i < means.values.size(); ++i) {
      const std::size_t end = std::min(means.values.size(), i + std::max<std::size_t>(reach, 1));
      for (std::size_t j = i + 1; j < end; ++j) pooled.values[i] = std::max(pooled.values[i], means.values[j]);
    }
    return pooled;
  }

  [[nodiscard]] WholeBlocks find_whole_blocks(const Evidence& evidence, const ScopeEvidence& scope) const {
    const SliceValues sums = pooled_sums(evidence, scope);
    const std::int32_t block = std::max(options_.block, evidence.grain);
    WholeBlocks whole{.n_rows = static_cast<std::size_t>(block / evidence.grain)};
    for (std::size_t i = 0; i + whole.n_rows <= scope.rows.size(); ++i) {
      const Span first = evidence.block(scope.rows[i]).span;
      const Span last = evidence.block(scope.rows[i + whole.n_rows - 1]).span;
      const bool is_whole = first.begin.value() % block == 0 && last.end == first.begin + block;
      if (!is_whole || first.begin.value() < options_.start || is_recent(evidence, last)) continue;
      whole.first_rows.push_back(i);
      for (std::size_t r = i; r < i + whole.n_rows; ++r) {
        whole.sums.insert(whole.sums.end(), sums.of(r).begin(), sums.of(r).end());
      }
    }
    return whole;
  }

  AreasOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_areas_policy(const ParameterValues& values) {
  return std::make_unique<Areas>(AreasOptions{.start = values.whole("start"),
                                              .recent = values.whole("recent"),
                                              .block = values.whole("block"),
                                              .aggregation = static_cast<Aggregation>(values.whole("norm")),
                                              .window = values.whole("window"),
                                              .slice = values.whole("slice"),
                                              .crush = {.budget_blocks = values.whole("crush"),
                                                        .anchor = static_cast<CrushAnchor>(values.whole("anchor")),
                                                        .rng_seed = static_cast<std::uint32_t>(values.whole("seed"))},
                                              .mass = values["mass"],
                                              .n_history = values.whole("history"),
                                              .n_most = values.whole("most")});
}

}  // namespace ebb
