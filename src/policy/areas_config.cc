#include "policy/areas_config.h"

#include <array>
#include <cmath>
#include <span>
#include <utility>

namespace ebb {
namespace {

// More would leave no room for sums of sizes in 32 bits, and no cache is as large.
constexpr std::int32_t kMostTokens = 1 << 28;

constexpr std::array<std::string_view, 3> kAggregations = {"SUM", "NORM_SUM", "ADAPTIVE_RKV"};
constexpr std::array<std::string_view, 5> kCrushAnchors = {"RANDOM", "ZEROS", "ONES", "MEAN", "ALTERNATING"};

// kNotFound names what there is.
Result<std::size_t> find_name(std::span<const std::string_view> names, std::string_view name, std::string_view what) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
    all += (all.empty() ? "" : ", ") + std::string(names[i]);
  }
  return error(Code::kNotFound, "no {} is called '{}'; there are {}", what, name, all);
}

using NamedSize = std::pair<std::string_view, std::int32_t>;

std::array<NamedSize, 3> sizes_of(const AreasConfig& config) {
  return {{{"start_size", config.start_tokens},
           {"recent_size", config.recent_tokens},
           {"max_cache_size", config.max_tokens}}};
}

Status check_adaptive(const AdaptiveRkvConfig& adaptive) {
  const double mass = adaptive.attention_mass;
  if (!std::isfinite(mass) || mass < 0.0 || mass > 1.0) {
    return error(Code::kInvalidArgument, "adaptive_rkv_config.attention_mass is {}: a share of the scores is 0 to 1",
                 mass);
  }
  if (adaptive.n_passes < 1) {
    return error(Code::kInvalidArgument,
                 "adaptive_rkv_config.window_size is {}: a mean is taken over at least one pass; give 1 or more",
                 adaptive.n_passes);
  }
  return {};
}

}  // namespace

Result<Aggregation> find_aggregation(std::string_view name) {
  EBB_ASSIGN_OR_RETURN(const std::size_t place, find_name(kAggregations, name, "aggregation mode"));
  return static_cast<Aggregation>(place);
}

Result<CrushAnchor> find_crush_anchor(std::string_view name) {
  if (name == "ALTERNATE") return CrushAnchor::kAlternating;
  EBB_ASSIGN_OR_RETURN(const std::size_t place, find_name(kCrushAnchors, name, "KVCrush anchor"));
  return static_cast<CrushAnchor>(place);
}

std::string_view aggregation_name(Aggregation aggregation) {
  const auto place = static_cast<std::size_t>(aggregation);
  return place < kAggregations.size() ? kAggregations[place] : "unknown";
}

std::string_view crush_anchor_name(CrushAnchor anchor) {
  const auto place = static_cast<std::size_t>(anchor);
  return place < kCrushAnchors.size() ? kCrushAnchors[place] : "unknown";
}

Status AreasConfig::validate() const {
  for (const auto& [name, n_tokens] : sizes_of(*this)) {
    if (n_tokens > 0 && n_tokens <= kMostTokens) continue;
    return error(
        Code::kInvalidArgument,
        "{} is {}: none of the three sizes may be zero, since each area holds at least one block; give 1 to {} "
        "tokens",
        name, n_tokens, kMostTokens);
  }
  if (max_tokens <= start_tokens + recent_tokens) {
    return error(
        Code::kInvalidArgument,
        "max_cache_size is {} and start_size + recent_size is {}: it must be larger, or nothing is left to choose "
        "from between the two",
        max_tokens, start_tokens + recent_tokens);
  }
  if (n_window_queries < 0) {
    return error(Code::kInvalidArgument, "snapkv_window_size is {}: give 0 for all queries, or how many",
                 n_window_queries);
  }
  if (crush.budget_blocks < 0) {
    return error(Code::kInvalidArgument, "kvcrush_config.budget is {} blocks: give 0 for none, or how many",
                 crush.budget_blocks);
  }
  if (static_cast<std::size_t>(aggregation) >= kAggregations.size()) {
    return error(Code::kInvalidArgument, "aggregation_mode is number {}, which no mode has",
                 static_cast<int>(aggregation));
  }
  return check_adaptive(adaptive);
}

Status AreasConfig::check_first_use(std::int32_t block_size, std::int32_t n_layers) const {
  if (n_layers < 1) {
    return error(Code::kInvalidArgument, "{} layers: blocks are evicted from at least one layer", n_layers);
  }
  if (block_size < 1 || block_size > kMostTokens) {
    return error(Code::kInvalidArgument, "blocks of {} tokens: give at least 1", block_size);
  }
  for (const auto& [name, n_tokens] : sizes_of(*this)) {
    if (n_tokens % block_size == 0) continue;
    return error(
        Code::kInvalidArgument,
        "{} is {}, which is no multiple of the block size {}: whole blocks stay or leave, so each area is made of "
        "whole blocks",
        name, n_tokens, block_size);
  }
  if (static_cast<std::size_t>(crush.anchor) >= kCrushAnchors.size()) {
    return error(Code::kInvalidArgument, "kvcrush_config.anchor_point_mode is number {}, which no anchor has",
                 static_cast<int>(crush.anchor));
  }
  const std::int32_t n_evictable = evictable_tokens() / block_size;
  if (!upstream && aggregation != Aggregation::kAdaptiveRkv && crush.budget_blocks > n_evictable) {
    return error(Code::kInvalidArgument,
                 "kvcrush_config.budget is {} blocks, and the evictable area keeps {}: rescued blocks count within "
                 "max_cache_size, so give at most {}",
                 crush.budget_blocks, n_evictable, n_evictable);
  }
  return {};
}

std::vector<std::string> AreasConfig::notes() const {
  std::vector<std::string> notes;
  if (aggregation == Aggregation::kAdaptiveRkv && crush.budget_blocks > 0) {
    notes.emplace_back("kvcrush_config has no effect with ADAPTIVE_RKV, which has a second choice of its own");
  }
  return notes;
}

BlockRange find_evictable(const AreasConfig& config, std::int32_t block_size, std::int32_t n_tokens) {
  const std::int32_t begin = config.start_tokens / block_size;
  if (n_tokens < config.max_tokens + block_size) return {begin, begin};
  return {begin, n_tokens / block_size - config.recent_tokens / block_size};
}

}  // namespace ebb
