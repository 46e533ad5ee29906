#include "policy/areas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/to_size.h"
#include "policy/kvcrush.h"

namespace ebb {
namespace {

constexpr std::int32_t kMostProcessed = std::numeric_limits<std::int32_t>::max() / 2;

Status check_prompt(std::int32_t n_prompt) {
  if (n_prompt >= 1 && n_prompt <= kMostProcessed) return {};
  return error(Code::kInvalidArgument, "a prompt of {} tokens: give 1 to {}", n_prompt, kMostProcessed);
}

// That they are blocks of a cache of n_tokens, each once and ascending.
Status check_skipped(std::span<const std::int32_t> skipped, std::int32_t block_size, std::size_t n_tokens) {
  std::int32_t before = -1;
  for (const std::int32_t block : skipped) {
    if (block <= before || to_size(block) >= n_tokens / to_size(block_size)) {
      return error(
          Code::kInvalidArgument,
          "block {} was skipped behind block {} in a cache of {} tokens: skips must be full blocks of it, each once "
          "and ascending, and the scores all other tokens'",
          block, before, n_tokens);
    }
    before = block;
  }
  return {};
}

// The scores of all tokens, with a 0 for each of the skipped blocks, which check_skipped() has passed.
std::vector<float> with_skipped(std::span<const float> scores, std::span<const std::int32_t> skipped,
                                std::int32_t block_size) {
  std::vector<float> all;
  all.reserve(scores.size() + skipped.size() * to_size(block_size));
  std::size_t n_taken = 0;
  for (const std::int32_t block : skipped) {
    const auto between = scores.subspan(n_taken, to_size(block) * to_size(block_size) - all.size());
    all.insert(all.end(), between.begin(), between.end());
    all.insert(all.end(), to_size(block_size), 0.0F);
    n_taken += between.size();
  }
  const auto rest = scores.subspan(n_taken);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

Status check_layer_scores(std::span<const float> scores, std::size_t layer, std::size_t n_expected) {
  if (scores.empty()) {
    return error(Code::kInvalidArgument, "layer {} returned no scores; eviction needs those of every layer", layer);
  }
  if (scores.size() != n_expected) {
    return error(
        Code::kInvalidArgument,
        "layer {} has scores of {} tokens and layer 0 of {}: all layers hold equally many, since they always evict "
        "equally many blocks",
        layer, scores.size(), n_expected);
  }
  if (std::ranges::all_of(scores, [](float score) { return std::isfinite(score); })) return {};
  return error(Code::kInvalidArgument, "layer {} has a score that is no finite number, which no order can hold", layer);
}

std::vector<std::int32_t> shifted(std::vector<std::int32_t> numbers, std::int32_t by) {
  for (std::int32_t& number : numbers) number += by;
  return numbers;
}

}  // namespace

AreasSequence::AreasSequence(const AreasConfig& config, const AreasShape& shape, std::int32_t n_prompt)
    : config_(config), shape_(shape), n_prompt_(n_prompt), random_(config.crush.rng_seed) {}

Result<AreasSequence> AreasSequence::make(const AreasConfig& config, const AreasShape& shape, std::int32_t n_prompt) {
  EBB_RETURN_IF_ERROR(config.validate());
  EBB_RETURN_IF_ERROR(check_prompt(n_prompt));
  return AreasSequence(config, shape, n_prompt);
}

std::int32_t AreasSequence::count_next_queries(std::int32_t n_scheduled) const {
  return count_queries({.n_prompt = n_prompt_, .n_processed = n_processed_, .n_scheduled = n_scheduled},
                       config_.n_window_queries);
}

Result<CountedQueries> AreasSequence::count_pass(const AreasPass& pass) const {
  const std::int32_t n_window = config_.n_window_queries;
  const std::int32_t n_in_pass = count_next_queries(pass.n_scheduled);
  if (n_window_queries_ == n_window) return CountedQueries{n_window, n_in_pass, n_window};
  const std::int32_t n_total = n_window_queries_ + n_in_pass;
  if (n_total > n_window) {
    return error(
        Code::kInvalidArgument,
        "{} queries of this pass and {} before are more than snapkv_window_size {}: the window was still filling, "
        "so schedule at most {} tokens",
        n_in_pass, n_window_queries_, n_window, n_window - n_window_queries_);
  }
  return CountedQueries{n_window, n_in_pass, n_total};
}

Status AreasSequence::check_pass(const AreasPass& pass, const CountedQueries& queries) const {
  for (std::size_t layer = 0; layer < pass.scores.size(); ++layer) {
    EBB_RETURN_IF_ERROR(check_layer_scores(pass.scores[layer], layer, pass.scores.front().size()));
  }
  const std::size_t n_skipped = pass.skipped.size() * to_size(shape_.block_size);
  const std::size_t n_tokens = pass.scores.front().size() + n_skipped;
  if (n_tokens > to_size(config_.start_tokens)) {
    const LayerScores nothing(config_);
    const LayerScores& layer = layers_.empty() ? nothing : layers_.front();
    EBB_RETURN_IF_ERROR(layer.check(n_tokens - to_size(config_.start_tokens), queries));
  }
  const std::int32_t n_cached_after = n_cached() + pass.n_scheduled;
  // The original compares the two only where blocks were skipped.
  const bool compares = !config_.upstream || !pass.skipped.empty();
  if (compares && n_tokens != to_size(n_cached_after)) {
    return error(
        Code::kInvalidArgument,
        "{} scores and {} skipped tokens are {}, and the cache holds {} after this pass ({} processed, {} evicted, "
        "{} scheduled): give one score for each token that was not skipped",
        pass.scores.front().size(), n_skipped, n_tokens, n_cached_after, n_processed_, n_evicted_, pass.n_scheduled);
  }
  return check_skipped(pass.skipped, shape_.block_size, n_tokens);
}

Status AreasSequence::register_scores(const AreasPass& pass) {
  EBB_RETURN_IF_ERROR(config_.check_first_use(shape_.block_size, shape_.n_layers));
  if (pass.scores.size() != to_size(shape_.n_layers)) {
    return error(Code::kInvalidArgument, "scores of {} layers, and the model has {}", pass.scores.size(),
                 shape_.n_layers);
  }
  if (pass.n_scheduled < 1 || pass.n_scheduled > kMostProcessed - n_processed_) {
    return error(Code::kInvalidArgument, "a pass of {} tokens behind {}: give at least 1", pass.n_scheduled,
                 n_processed_);
  }
  EBB_ASSIGN_OR_RETURN(const CountedQueries queries, count_pass(pass));
  EBB_RETURN_IF_ERROR(check_pass(pass, queries));

  // All is well; from here on nothing fails.
  if (layers_.empty()) layers_.assign(pass.scores.size(), LayerScores(config_));
  n_window_queries_ = queries.n_total;
  could_generate_ = n_processed_ >= n_prompt_;
  n_processed_ += pass.n_scheduled;
  const bool is_counted = queries.n_window == 0 || queries.n_in_pass > 0;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const std::vector<float> all = with_skipped(pass.scores[layer], pass.skipped, shape_.block_size);
    const auto tracked = std::span(all).subspan(std::min(all.size(), to_size(config_.start_tokens)));
    if (tracked.empty() || (layers_[layer].n_tokens() == 0 && !is_counted)) continue;
    layers_[layer].add(tracked, queries);
  }
  return {};
}

std::int32_t AreasSequence::wanted_diversity(std::int32_t n_scheduled) const {
  const bool asks = config_.aggregation == Aggregation::kAdaptiveRkv && n_processed_ >= n_prompt_ && n_scheduled > 0;
  if (!asks || !config_.check_first_use(shape_.block_size, shape_.n_layers).ok()) return 0;
  const std::int32_t block_size = shape_.block_size;
  std::int32_t n_tokens = n_cached() + n_scheduled;
  if (config_.upstream) {
    // The original asks where a new block begins and counts it as if it were full, and eviction is due where one ends.
    if (n_cached() % block_size != 0) return 0;
    n_tokens = (n_tokens + block_size - 1) / block_size * block_size;
  }
  return find_evictable(config_, block_size, n_tokens).n_blocks() * block_size;
}

Status AreasSequence::register_diversity(LayerIndex layer, std::span<const float> diversity) {
  if (layer.value() < 0 || layer.value() >= shape_.n_layers) {
    return error(Code::kInvalidArgument, "diversity of layer {} of {}", layer.value(), shape_.n_layers);
  }
  if (diversity_.size() <= layer.index()) diversity_.resize(layer.index() + 1);
  if (diversity_[layer.index()].has_value()) {
    return error(
        Code::kInvalidArgument,
        "diversity of layer {} came twice for one eviction: the second would say something else of the same keys",
        layer.value());
  }
  if (!std::ranges::all_of(diversity, [](float value) { return std::isfinite(value); })) {
    return error(Code::kInvalidArgument, "diversity of layer {} has a value that is no finite number", layer.value());
  }
  diversity_[layer.index()] = std::vector<float>(diversity.begin(), diversity.end());
  return {};
}

// The lowest first, the older where values are equal; ascending numbers among the evictable blocks.
std::vector<std::int32_t> AreasSequence::rank_victims(std::span<const double> values) const {
  std::int32_t n_keep = config_.evictable_tokens() / shape_.block_size;
  // Rescued blocks are kept too, so that the limit holds with them.
  if (!config_.upstream) n_keep -= config_.crush.budget_blocks;
  const std::size_t n_victims = values.size() - std::min(values.size(), to_size(n_keep));
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::int32_t a, std::int32_t b) { return values[to_size(a)] < values[to_size(b)]; });
  order.resize(n_victims);
  std::ranges::sort(order);
  return order;
}

AreasEviction AreasSequence::choose_by_value(std::size_t layer, const BlockRange& range, std::mt19937& random) const {
  const LayerScores& scores = layers_[layer];
  std::vector<std::int32_t> victims = rank_victims(scores.block_values(range, n_start_blocks(), shape_.block_size));
  const CrushChoice choice{
      .sums = std::span(scores.sums()).first(to_size(range.n_blocks()) * to_size(shape_.block_size)),
      .block_size = shape_.block_size,
      .victims = victims};
  const std::vector<std::int32_t> rescued = rescue_blocks(choice, config_.crush, random);
  std::erase_if(victims, [&](std::int32_t victim) { return std::ranges::binary_search(rescued, victim); });
  return {.victims = shifted(std::move(victims), range.begin), .rescued = shifted(rescued, range.begin)};
}

Result<AreasEviction> AreasSequence::choose_by_diversity(std::size_t layer, const BlockRange& range,
                                                         std::span<const float> diversity) const {
  const std::size_t n_blocks = to_size(range.n_blocks());
  const std::size_t n_expected = n_blocks * n_blocks * to_size(shape_.block_size);
  if (diversity.size() != n_expected) {
    return error(Code::kInvalidArgument,
                 "layer {} has diversity of {} values, and {} evictable blocks of {} tokens need {} ([{}, {}]){}",
                 layer, diversity.size(), n_blocks, shape_.block_size, n_expected, n_blocks,
                 n_blocks * to_size(shape_.block_size),
                 diversity.empty() ? ": register it before each eviction that wanted_diversity() asks for" : "");
  }
  const std::vector<double> values = layers_[layer].block_values(range, n_start_blocks(), shape_.block_size);
  std::vector<std::int32_t> victims = choose_adaptive({.block_scores = values,
                                                       .n_keep = config_.evictable_tokens() / shape_.block_size,
                                                       .attention_mass = config_.adaptive.attention_mass,
                                                       .diversity = diversity});
  return AreasEviction{.victims = shifted(std::move(victims), range.begin), .rescued = {}};
}

Result<std::vector<AreasEviction>> AreasSequence::evict() {
  auto diversity = std::exchange(diversity_, {});
  diversity.resize(layers_.size());
  std::vector<AreasEviction> evictions(layers_.size());
  if (layers_.empty() || layers_.front().n_tokens() == 0 || !could_generate_) return evictions;
  const BlockRange range =
      find_evictable(config_, shape_.block_size, config_.start_tokens + layers_.front().n_tokens());
  if (range.n_blocks() == 0) return evictions;
  std::mt19937 random = random_;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if (config_.aggregation != Aggregation::kAdaptiveRkv) {
      evictions[layer] = choose_by_value(layer, range, random);
      continue;
    }
    const std::vector<float> given = diversity[layer].value_or(std::vector<float>());
    EBB_ASSIGN_OR_RETURN(evictions[layer], choose_by_diversity(layer, range, given));
  }
  random_ = random;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].remove(evictions[layer].victims, n_start_blocks(), shape_.block_size);
  }
  n_evicted_ += static_cast<std::int32_t>(evictions.front().victims.size()) * shape_.block_size;
  return evictions;
}

Status AreasSequence::reset(std::int32_t n_prompt) {
  EBB_RETURN_IF_ERROR(check_prompt(n_prompt));
  n_prompt_ = n_prompt;
  n_processed_ = 0;
  n_evicted_ = 0;
  n_window_queries_ = 0;
  could_generate_ = false;
  layers_.clear();
  diversity_.clear();
  return {};
}

}  // namespace ebb
