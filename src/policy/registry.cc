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
          .summary = "tokens pooled together, an odd number; beyond a block only"};
}

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
constexpr Parameter kH2o[] = {
    {.name = "recent", .value = 0.5, .least = 0, .most = 1, .summary = "share of the cache that is for the newest"},
    {.name = "lifetime",
     .value = 0,
     .least = 0,
     .most = 1,
     .is_whole = true,
     .summary = "1: divide by the number of queries that could see a block"}};
constexpr Parameter kSnapKv[] = {kWindow, kernel(5), kMax};
constexpr Parameter kPyramidKv[] = {
    kWindow,
    kernel(7),
    kMax,
    {.name = "beta", .value = 20, .least = 1, .most = 1000, .summary = "even share / share of the highest layer"}};
constexpr Parameter kAdaKv[] = {kWindow,
                                kernel(7),
                                kMax,
                                {.name = "floor",
                                 .value = 0.5,
                                 .least = 0,
                                 .most = 1,
                                 .summary = "part of an even share that each head has for certain"}};

constexpr PolicyEntry kPolicies[] = {
    {"streaming", "oldest first after the first tokens", "StreamingLLM, arXiv 2309.17453", {}, make_streaming_policy},
    {"scored", "least recently looked at by attention first", "tinfer's mode 2, by attention", {}, make_scored_policy},
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
    {"recency",
     "oldest first, the first tokens too: a sliding window, as a control",
     "a control",
     {},
     make_recency_policy},
    {"random", "in any order, as a control", "a control", kRandom, make_random_policy},
    {"none", "nothing leaves; a full budget ends the generation", "a control", {}, make_none_policy, false},
};

}  // namespace

std::span<const PolicyEntry> policies() { return kPolicies; }

Result<std::unique_ptr<Policy>> make_policy(std::string_view spec) {
  // Of a name that is none, an error repeats no more.
  constexpr std::size_t kMostEchoed = 64;
  const std::string_view name = spec.substr(0, spec.find(':'));
  std::string names;
  for (const PolicyEntry& entry : kPolicies) {
    if (entry.name != name) {
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
      continue;
    }
    if (spec.ends_with(':')) return error(Code::kInvalidArgument, "policy {}: no parameter behind the colon", name);
    const Result<ParameterValues> values =
        ParameterValues::parse(entry.parameters, name.size() == spec.size() ? "" : spec.substr(name.size() + 1));
    if (!values.ok()) return error(Code::kInvalidArgument, "policy {}: {}", name, values.status().message());
    std::unique_ptr<Policy> policy = entry.make(*values);
    if (const std::string given = values->text(); !given.empty()) policy->parameters_ = ":" + given;
    return policy;
  }
  return error(Code::kNotFound, "no eviction policy is called '{}'; there are {}", name.substr(0, kMostEchoed), names);
}

}  // namespace ebb
