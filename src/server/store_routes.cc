// The cold store: what its tiers hold, of how much, and what became of what was asked of them.
#include <array>

#include "server/api_state.h"
#include "store/cold_store.h"

namespace ebb {
namespace {

// What went wrong is told to whoever runs the server (cli/serve.cc): it names paths.
Json tier_json(const TierStats& tier) {
  return {{"name", tier.name},           {"bytes", tier.bytes},
          {"max_bytes", tier.max_bytes}, {"records", tier.n_records},
          {"puts", tier.n_puts},         {"hits", tier.n_hits},
          {"misses", tier.n_misses},     {"refused", tier.n_refused},
          {"dropped", tier.n_dropped},   {"write_errors", tier.n_write_errors},
          {"writing", !tier.writing_off}};
}

struct TierMetric {
  const char* name;
  const char* kind;
  const char* help;
  double (*value)(const TierStats&);
};

constexpr std::array kTierMetrics = {
    TierMetric{"bytes", "gauge", "Bytes that a tier holds", [](const TierStats& t) { return double(t.bytes); }},
    TierMetric{"max_bytes", "gauge", "Bytes that it may hold", [](const TierStats& t) { return double(t.max_bytes); }},
    TierMetric{"records", "gauge", "Blocks that it holds", [](const TierStats& t) { return double(t.n_records); }},
    TierMetric{"hits_total", "counter", "Blocks found", [](const TierStats& t) { return double(t.n_hits); }},
    TierMetric{"misses_total", "counter", "Blocks asked for and not there",
               [](const TierStats& t) { return double(t.n_misses); }},
    TierMetric{"refused_total", "counter", "Blocks found damaged and not used",
               [](const TierStats& t) { return double(t.n_refused); }},
    TierMetric{"write_errors_total", "counter", "Blocks that could not be written",
               [](const TierStats& t) { return double(t.n_write_errors); }},
};

StoreStats stats_of(const ApiState& state) {
  const ColdStore* const store = state.engine.store();
  return store != nullptr ? store->stats() : StoreStats{};
}

}  // namespace

void answer_store(ApiState& state, const ApiCall& call) {
  const StoreStats stats = stats_of(state);
  Json tiers = Json::array();
  for (const TierStats& tier : stats.tiers) tiers.push_back(tier_json(tier));
  call.send(json_answer({{"tiers", tiers},
                         {"pending_blocks", stats.n_pending},
                         {"changed_blocks", stats.n_changed},
                         {"queued_bytes", stats.queued_bytes}}));
}

std::string store_metrics(const ApiState& state) {
  const StoreStats stats = stats_of(state);
  std::string text;
  for (const TierMetric& metric : kTierMetrics) {
    text += fmt::format("# HELP ebb:store_{0} {1}\n# TYPE ebb:store_{0} {2}\n", metric.name, metric.help, metric.kind);
    for (const TierStats& tier : stats.tiers) {
      text += fmt::format("ebb:store_{}{{tier=\"{}\"}} {}\n", metric.name, tier.name, metric.value(tier));
    }
  }
  return text;
}

}  // namespace ebb
