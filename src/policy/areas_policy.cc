// Areas as a policy (OpenVINO GenAI's cache eviction, with KVCrush): the start area stays, the recent one is safe, and between
// them blocks leave by what attention gave their tokens, the same ones in every head of a layer.
//
//   [0, start)              leaves when nothing else is left
//   [start, end - recent)   competes, in blocks of `block` tokens
//   [end - recent, end)     leaves before the start area, the oldest first
//
// A row is as many tokens as the engine's grain; at a grain of 1 tokens are told apart as in the original. The whole scheme,
// pass by pass, is policy/areas.h. Different here: rows are chosen whenever room is needed, and not behind a prompt only; the
// scores of all passes are pooled together, and not each pass by itself; the generator of KVCrush's RANDOM anchor begins anew
// with each choice; rescued blocks count inside the budget. Keys are turned back by --kv-removal compact.
#include <random>

#include "policy/all.h"
#include "policy/areas_scores.h"
#include "policy/kvcrush.h"

namespace ebb {
namespace {

struct AreasOptions {
  std::int32_t start = 0;
  std::int32_t recent = 0;
  std::int32_t block = 1;
  bool is_normed = false;
  std::int32_t window = 0;
  CrushConfig crush;
};

class Areas final : public Policy {
 public:
  explicit Areas(const AreasOptions& options) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return "areas"; }
  [[nodiscard]] Ask asks() const override {
    return {.scope = Scope::kLayer, .totals = true, .prompt_window = options_.window};
  }

  [[nodiscard]] Status check_grain(std::int32_t grain) const override {
    if (options_.crush.budget_blocks == 0 || grain < options_.block) return {};
    return error(
        Code::kInvalidArgument,
        "policy areas: crush compares the tokens of a block of {} (`block`), and the cache chooses in blocks of {}: "
        "give smaller ones (--block-size), or crush=0",
        options_.block, grain);
  }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> values = pooled_sums(evidence, scope);
    for (std::size_t i = 0; options_.is_normed && i < values.size(); ++i)
      values[i] /= std::max(1.0, scope.n_queries[i]);
    std::vector<double> scores(values.size(), 0.0);
    double greatest = 0.0;
    const auto n = static_cast<std::ptrdiff_t>(values.size());
    for (std::ptrdiff_t i = 0, end = 0; i < n; i = end) {
      double sum = 0.0;
      for (end = i; end < n && block_of(evidence, scope, end) == block_of(evidence, scope, i); ++end) {
        sum += values[static_cast<std::size_t>(end)];
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
    return options_.crush.budget_blocks * (options_.block / grain);
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
    std::vector<std::size_t> rescued;
    for (const std::int32_t b :
         rescue_blocks({.sums = whole.sums, .block_size = static_cast<std::int32_t>(whole.n_rows), .victims = victims},
                       options_.crush, random)) {
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
    std::vector<double> sums;  // [block][row]
  };

  [[nodiscard]] std::int32_t block_of(const Evidence& evidence, const ScopeEvidence& scope, std::ptrdiff_t row) const {
    return evidence.block(scope.rows[static_cast<std::size_t>(row)]).span.begin.value() / options_.block;
  }

  // The last whole blocks, and what is behind them.
  [[nodiscard]] bool is_recent(const Evidence& evidence, Span span) const {
    const std::int32_t whole = evidence.end.value() / options_.block * options_.block;
    return span.end.value() > whole - options_.recent;
  }

  // What a token got, or one of the next, since those before a looked-at one are kept with it.
  [[nodiscard]] static std::vector<double> pooled_sums(const Evidence& evidence, const ScopeEvidence& scope) {
    const std::size_t reach = kPoolTokens / static_cast<std::size_t>(evidence.grain);
    std::vector<double> values = scope.total;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t end = std::min(values.size(), i + std::max<std::size_t>(reach, 1));
      for (std::size_t j = i + 1; j < end; ++j) values[i] = std::max(values[i], scope.total[j]);
    }
    return values;
  }

  [[nodiscard]] WholeBlocks find_whole_blocks(const Evidence& evidence, const ScopeEvidence& scope) const {
    const std::vector<double> sums = pooled_sums(evidence, scope);
    WholeBlocks whole{.n_rows = static_cast<std::size_t>(options_.block / evidence.grain)};
    for (std::size_t i = 0; i + whole.n_rows <= scope.rows.size(); ++i) {
      const Span first = evidence.block(scope.rows[i]).span;
      const Span last = evidence.block(scope.rows[i + whole.n_rows - 1]).span;
      const bool is_whole = first.begin.value() % options_.block == 0 && last.end == first.begin + options_.block;
      if (!is_whole || first.begin.value() < options_.start || is_recent(evidence, last)) continue;
      whole.first_rows.push_back(i);
      for (std::size_t r = i; r < i + whole.n_rows; ++r) whole.sums.push_back(sums[r]);
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
                                              .crush = {.budget_blocks = values.whole("crush"),
                                                        .anchor = static_cast<CrushAnchor>(values.whole("anchor")),
                                                        .rng_seed = static_cast<std::uint32_t>(values.whole("seed"))}});
}

}  // namespace ebb
