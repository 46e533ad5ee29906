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
// scores of all passes are pooled together, and not each pass by itself; the generator of KVCrush's RANDOM anchor begins anew
// with each choice; rescued blocks count inside the budget. Keys are turned back by --kv-removal compact.
#include <random>

#include "policy/all.h"
#include "policy/areas_scores.h"
#include "policy/kvcrush.h"
#include "policy/pooling.h"

namespace ebb {
namespace {

struct AreasOptions {
  std::int32_t start = 0;
  std::int32_t recent = 0;
  std::int32_t block = 1;
  bool is_normed = false;
  std::int32_t window = 0;
  std::int32_t slice = 0;
  CrushConfig crush;
};

class Areas final : public Policy {
 public:
  explicit Areas(const AreasOptions& options) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return "areas"; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kLayer, .totals = true, .prompt_window = options_.window, .slice = options_.slice};
  }

  [[nodiscard]] Status check_grain(std::int32_t grain) const override {
    EBB_RETURN_IF_ERROR(asks().check_slice(grain));
    const std::int32_t told_apart = asks().n_slices(grain) > 0 ? options_.slice : grain;
    if (options_.crush.budget_blocks == 0 || told_apart < options_.block) return {};
    return error(Code::kInvalidArgument,
                 "policy areas: crush compares the tokens of a block of {} (`block`), and {} of them are told apart "
                 "together: give slice=1, or crush=0",
                 options_.block, told_apart);
  }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    SliceValues tokens = pooled_sums(evidence, scope);
    const SliceValues counts = list_tokens(evidence, scope, scope.slices.n_queries, scope.n_queries);
    for (std::size_t i = 0; options_.is_normed && i < tokens.values.size(); ++i) {
      tokens.values[i] /= std::max(1.0, counts.values[i]);
    }
    std::vector<double> scores(scope.rows.size(), 0.0);
    double greatest = 0.0;
    const std::ptrdiff_t n = std::ssize(scores);
    for (std::ptrdiff_t i = 0, end = 0; i < n; i = end) {
      double sum = 0.0;
      for (end = i; end < n && block_of(evidence, scope, end) == block_of(evidence, scope, i); ++end) {
        // Token by token, as the original adds them, so that what ties there ties here.
        for (const double value : tokens.of(static_cast<std::size_t>(end))) sum += value;
      }
      std::fill(scores.begin() + i, scores.begin() + end, sum);
      greatest = std::max(greatest, sum);
    }
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

  [[nodiscard]] std::int32_t block_of(const Evidence& evidence, const ScopeEvidence& scope, std::ptrdiff_t row) const {
    return evidence.block(scope.rows[static_cast<std::size_t>(row)]).span.begin.value() / options_.block;
  }

  // The last whole blocks, and what is behind them.
  [[nodiscard]] bool is_recent(const Evidence& evidence, Span span) const {
    const std::int32_t block = std::max(options_.block, evidence.grain);
    const std::int32_t whole = evidence.end.value() / block * block;
    return span.end.value() > whole - options_.recent;
  }

  // What a token got, or one of the next, since those before a looked-at one are kept with it.
  [[nodiscard]] static SliceValues pooled_sums(const Evidence& evidence, const ScopeEvidence& scope) {
    const std::int32_t n_tokens = scope.slices.n_slices > 0 ? scope.slices.n_tokens : evidence.grain;
    const std::size_t reach = kPoolTokens / static_cast<std::size_t>(n_tokens);
    const SliceValues sums = list_tokens(evidence, scope, scope.slices.total, scope.total);
    SliceValues pooled = sums;
    for (std::size_t i = 0; i < sums.values.size(); ++i) {
      const std::size_t end = std::min(sums.values.size(), i + std::max<std::size_t>(reach, 1));
      for (std::size_t j = i + 1; j < end; ++j) pooled.values[i] = std::max(pooled.values[i], sums.values[j]);
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
                                              .is_normed = values.whole("norm") == 1,
                                              .window = values.whole("window"),
                                              .slice = values.whole("slice"),
                                              .crush = {.budget_blocks = values.whole("crush"),
                                                        .anchor = static_cast<CrushAnchor>(values.whole("anchor")),
                                                        .rng_seed = static_cast<std::uint32_t>(values.whole("seed"))}});
}

}  // namespace ebb
