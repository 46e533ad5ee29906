#include <array>
#include <string>

#include "policy/all.h"

namespace ebb {
namespace {

constexpr Parameter kWindow = {.name = "window",
                               .value = 32,
                               .least = 1,
                               .most = 512,
                               .is_whole = true,
                               .summary = "how many of the last queries are asked"};
constexpr Parameter kMax = {.name = "max",
                            .value = 1,
                            .least = 0,
                            .most = 1,
                            .is_whole = true,
                            .summary = "pool neighbours by their largest (1) or their mean (0)"};

constexpr Parameter kernel(double value) {
  return {.name = "kernel",
          .value = value,
          .least = 1,
          .most = 127,
          .is_whole = true,
          .is_odd = true,
          .summary = "tokens pooled together, an odd number; beyond a block, or a slice, only"};
}

constexpr Parameter slice(double value) {
  return {.name = "slice",
          .value = value,
          .least = 0,
          .most = 128,
          .is_whole = true,
          .summary = "tokens of a block whose attention is told apart from that of its others; 0: whole blocks"};
}
constexpr Parameter kLift = {.name = "lift",
                             .value = 0,
                             .least = 0,
                             .most = 1,
                             .is_whole = true,
                             .summary = "a block is worth its slices' mean (0) or the largest of them (1)"};

constexpr Parameter weight(std::string_view name, double value, std::string_view summary) {
  return {.name = name, .value = value, .least = 0, .most = 1000, .summary = summary};
}

constexpr Parameter kRandom[] = {
    {.name = "seed", .value = 0, .least = 0, .most = 1e15, .is_whole = true, .summary = "another seed, another order"},
    {.name = "heads", .value = 0, .least = 0, .most = 1, .is_whole = true, .summary = "1: an order for each head"}};
constexpr Parameter kEvoke[] = {
    weight("recency", 0.4, "weight of being recent"),
    weight("focus", 0.6, "weight of having the words of the last messages"),
    weight("attention", 0.0, "weight of being looked at"),
    weight("recovery", 0.0, "weight of having been recalled"),
    {.name = "decay", .value = 0.01, .least = 0, .most = 10, .summary = "of recency, per token of age"},
    {.name = "exponential",
     .value = 0,
     .least = 0,
     .most = 1,
     .is_whole = true,
     .summary = "1: recency as the original has it, which is the same for all blocks after some thousand tokens"}};
constexpr Parameter kScored[] = {
    {.name = "recent",
     .value = 0,
     .least = 0,
     .most = 1,
     .summary = "share of the session's length whose newest tokens leave last, 32 to 256 of them; tinfer's is 0.25"}};
constexpr Parameter kH2o[] = {
    {.name = "recent", .value = 0.5, .least = 0, .most = 1, .summary = "share of the cache that is for the newest"},
    {.name = "lifetime",
     .value = 0,
     .least = 0,
     .most = 1,
     .is_whole = true,
     .summary = "1: divide by the number of queries that could see a block"}};
constexpr Parameter kSnapKv[] = {kWindow,
                                 kernel(5),
                                 kMax,
                                 slice(0),
                                 kLift,
                                 {.name = "together",
                                  .value = 0,
                                  .least = 0,
                                  .most = 2,
                                  .is_whole = true,
                                  .summary = "which heads choose together: 0 none, 1 those of a layer, 2 all, so that "
                                             "whole blocks leave"}};
constexpr Parameter kPyramidKv[] = {
    kWindow,
    kernel(7),
    kMax,
    slice(0),
    kLift,
    {.name = "beta", .value = 20, .least = 1, .most = 1000, .summary = "even share / share of the highest layer"}};
constexpr Parameter floor_of_head(double value) {
  return {.name = "floor",
          .value = value,
          .least = 0,
          .most = 1,
          .summary = "part of an even share that each head has for certain"};
}

constexpr Parameter kAdaKv[] = {kWindow, kernel(7), kMax, slice(0), kLift, floor_of_head(0.5)};

constexpr Parameter tokens(std::string_view name, double value, double most, std::string_view summary) {
  return {.name = name, .value = value, .most = most, .is_whole = true, .summary = summary};
}
constexpr Parameter kAreas[] = {
    tokens("start", 32, 1e6, "first tokens, which stay"),
    tokens("recent", 128, 1e6, "last tokens, which are safe while they are"),
    {.name = "block",
     .value = 32,
     .least = 1,
     .most = 1024,
     .is_whole = true,
     .summary = "tokens that are valued together"},
    {.name = "norm",
     .value = 1,
     .least = 0,
     .most = 2,
     .is_whole = true,
     .summary =
         "1: divide by the number of queries that could see a token (NORM_SUM); 0: do not (SUM); 2: ADAPTIVE_RKV, the "
         "best by score stay, then those whose keys are least like the others'"},
    tokens("window", 8, 1e6, "last queries of a prompt that count; 0: all; of norm=2 `history` says so"),
    slice(1),
    tokens("crush", 0, 1024,
           "blocks that KVCrush rescues from each choice of more than those, inside the budget: behind a prompt that "
           "had a larger one"),
    {.name = "anchor",
     .value = 0,
     .least = 0,
     .most = 4,
     .is_whole = true,
     .summary = "what KVCrush measures against: 0 RANDOM, 1 ZEROS, 2 ONES, 3 MEAN, 4 ALTERNATING"},
    {.name = "seed", .value = 0, .least = 0, .most = 4294967295.0, .is_whole = true, .summary = "of the RANDOM anchor"},
    {.name = "mass",
     .value = 0.9,
     .least = 0,
     .most = 1,
     .summary = "of norm=2: share of the attention that those have together which stay by score"},
    {.name = "history",
     .value = 8,
     .least = 1,
     .most = 512,
     .is_whole = true,
     .summary = "of norm=2: last queries whose attention counts, a prompt's as one of a reply"},
    {.name = "most",
     .value = 256,
     .least = 2,
     .most = 4096,
     .is_whole = true,
     .summary =
         "of norm=2: blocks of the cache that are compared in a layer, the least looked at; the others stay longer"}};

constexpr Parameter kKvZip[] = {
    {.name = "layers",
     .value = 0,
     .least = 0,
     .most = 1,
     .is_whole = true,
     .summary = "1: each layer keeps its share; 0: heads of all layers win from each other"},
    floor_of_head(0)};

constexpr Parameter kSinksLeaveLast = {.name = "sinks",
                                       .value = 1,
                                       .least = 0,
                                       .most = 1,
                                       .is_whole = true,
                                       .summary =
                                           "1: the first tokens leave last; 0: they compete, as the original "
                                           "has it"};
constexpr Parameter kDefensiveKv[] = {kWindow, floor_of_head(0), kSinksLeaveLast};
// The definition has no floor. Heads of layers whose values are short would have next to nothing without: decision 0018.
constexpr Parameter kLayerDefensiveKv[] = {kWindow, floor_of_head(0.2), kSinksLeaveLast};
constexpr Parameter kDropKv[] = {kWindow};
constexpr Parameter kLagKv[] = {
    {.name = "lag", .value = 128, .least = 1, .most = 65536, .is_whole = true, .summary = "tokens of a partition"},
    {.name = "sinks",
     .value = 4,
     .least = 0,
     .most = 65536,
     .is_whole = true,
     .summary = "tokens before the first partition, which leave last"},
    weight("rho", 1, "weight of values beside keys")};
constexpr Parameter kExpectedAttention[] = {
    {.name = "future",
     .value = 512,
     .least = 1,
     .most = 65536,
     .is_whole = true,
     .summary = "positions to come whose queries are expected"},
    {.name = "covariance",
     .value = 1,
     .least = 0,
     .most = 1,
     .is_whole = true,
     .summary = "1: with the covariance of queries; 0: by their mean alone, which is far cheaper"},
    {.name = "values", .value = 1, .least = 0, .most = 1, .is_whole = true, .summary = "1: times the length of values"},
    weight("epsilon", 0, "added to what is expected; more, and the length of values decides")};
constexpr Parameter kRKv[] = {
    kWindow,
    kernel(7),
    {.name = "lambda",
     .value = 0.07,
     .least = 0,
     .most = 1,
     .summary = "weight of attention; the rest is redundancy's"},
    {.name = "similar", .value = 0.5, .least = -1, .most = 1, .summary = "cosine above which keys are alike"},
    {.name = "most",
     .value = 256,
     .least = 2,
     .most = 4096,
     .is_whole = true,
     .summary = "blocks of a head that are compared, the least looked at; the others stay longer"}};

constexpr PolicyEntry kPolicies[] = {
    {"streaming", "oldest first after the first tokens", "StreamingLLM, arXiv 2309.17453", {}, make_streaming_policy},
    {"scored", "least recently looked at by attention first", "tinfer's mode 2, by attention", kScored,
     make_scored_policy},
    {"evoke", "least recent, least related to what is talked about; users' words weigh more", "EVOKE", kEvoke,
     make_evoke_policy},
    {"tova", "least looked at by the last query, by layer", "TOVA, arXiv 2401.06104", {}, make_tova_policy},
    {"h2o", "least looked at by all queries, by head; half for the newest", "H2O, arXiv 2306.14048", kH2o,
     make_h2o_policy},
    {"snapkv", "least looked at by the last queries, by head", "SnapKV, arXiv 2404.14469", kSnapKv, make_snapkv_policy},
    {"pyramidkv", "snapkv, lower layers have more of the budget", "PyramidKV, arXiv 2406.02069", kPyramidKv,
     make_pyramidkv_policy},
    {"adakv", "snapkv, the heads of a layer win budget from each other", "AdaKV, arXiv 2407.11550", kAdaKv,
     make_adakv_policy},
    {"keydiff",
     "keys most like all others, by head; looks at no attention",
     "KeyDiff, arXiv 2504.15364",
     {},
     make_keydiff_policy},
    {"knorm", "longest keys, by head; looks at no attention", "Knorm, arXiv 2406.11430", {}, make_knorm_policy},
    {"lagkv", "keys and values that stand out least beside those behind them, by head; looks at no attention",
     "LagKV, arXiv 2504.04704", kLagKv, make_lagkv_policy},
    {"rkv", "keys most like others that the last queries look at least, by head", "R-KV, arXiv 2505.24133", kRKv,
     make_rkv_policy, false},
    {"expected_attention",
     "least of what the next queries are expected to look at, times the length of values, by head",
     "Expected Attention, arXiv 2510.00636", kExpectedAttention, make_expected_attention_policy, false},
    {"defensivekv",
     "least of the last queries' largest look times the length of values; heads of a layer win budget from each other",
     "DefensiveKV, arXiv 2510.13334", kDefensiveKv, make_defensivekv_policy},
    {"layer_defensivekv", "defensivekv, all heads of all layers win budget from each other",
     "Layer-DefensiveKV, arXiv 2510.13334", kLayerDefensiveKv, make_layer_defensivekv_policy},
    {"dropkv", "what a head's output would change least without, by head", "DropKV", kDropKv, make_dropkv_policy},
    {"kvzip", "least needed to say the session again, over all heads; reads every prompt twice",
     "KVzip, arXiv 2505.23416", kKvZip, make_kvzip_policy, false},
    {"areas", "least looked at between the first and the last tokens, by layer; KVCrush, Adaptive R-KV",
     "OpenVINO GenAI, arXiv 2503.00022", kAreas, make_areas_policy},
    {"recency",
     "oldest first, the first tokens too: a sliding window, as a control",
     "a control",
     {},
     make_recency_policy},
    {"random", "in any order, as a control", "a control", kRandom, make_random_policy},
    {"none", "nothing leaves; a full budget ends the generation", "a control", {}, make_none_policy, false},
};

// tinfer's modes by number. Its 0, context shift, is no order of leaving but a way to remove (cli/engine_flags.h).
struct Number {
  std::string_view number;
  std::string_view spec;
};
constexpr Number kNumbers[] = {{"1", "streaming"}, {"2", "scored:recent=0.25"}};

}  // namespace

std::span<const PolicyEntry> policies() { return kPolicies; }

std::string_view spelled_out(std::string_view spec) {
  for (const Number& known : kNumbers) {
    if (spec == known.number) return known.spec;
  }
  return spec;
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view spec) {
  // Of a name that is none, an error repeats no more.
  constexpr std::size_t kMostEchoed = 64;
  spec = spelled_out(spec);
  const std::string_view name = spec_name(spec);
  std::string names;
  for (const PolicyEntry& entry : kPolicies) {
    if (entry.name != name) {
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
      continue;
    }
    EBB_ASSIGN_OR_RETURN(const ParameterValues values,
                         ParameterValues::parse_behind_name(entry.parameters, spec, "policy "));
    std::unique_ptr<Policy> policy = entry.make(values);
    if (const std::string given = values.text(); !given.empty()) policy->parameters_ = ":" + given;
    return policy;
  }
  return error(Code::kNotFound, "no eviction policy is called '{}'; there are {}", name.substr(0, kMostEchoed), names);
}

}  // namespace ebb
