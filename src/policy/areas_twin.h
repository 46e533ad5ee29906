// AreasTwin: the areas scheme a second time, as its description reads and as slow as that is; tests hold AreasSequence
// against it.
//
// It keeps every token with the position it was given and every counted query with its own, so that counters are counted and
// not computed, and it shares no function with what it is held against. It checks nothing. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "policy/areas_config.h"

namespace ebb {

class AreasTwin {
 public:
  struct Gone {
    std::vector<std::int32_t> victims;
    std::vector<std::int32_t> rescued;
  };
  using Matrix = std::vector<std::vector<float>>;  // by layer

  AreasTwin(const AreasConfig& config, int block_size, int n_layers, int n_prompt);

  // Registers, then evicts where that is due. `diversity` is looked at with ADAPTIVE_RKV only.
  std::vector<Gone> pass(int n_scheduled, const Matrix& scores, const Matrix& diversity);
  // By layer and tracked token.
  [[nodiscard]] std::vector<std::int64_t> counters(int layer) const;

 private:
  struct Entry {
    int position = 0;
    double sum = 0.0;
  };
  struct Layer {
    std::vector<Entry> entries;                // behind the start area
    std::vector<std::vector<double>> history;  // of ADAPTIVE_RKV, since the last eviction
  };

  void register_layer(Layer& layer, const std::vector<float>& scores, int n_queries);
  [[nodiscard]] double value(const Entry& entry) const;
  [[nodiscard]] std::int64_t count(int position) const;
  Gone evict_layer(Layer& layer, const std::vector<float>& diversity);
  Gone by_value(const Layer& layer, int n_evictable);
  Gone by_diversity(const Layer& layer, int n_evictable, const std::vector<float>& diversity);
  std::vector<int> crush(const Layer& layer, int n_evictable, const std::vector<int>& victims);

  AreasConfig config_;
  int block_size_;
  int n_prompt_;
  int n_processed_ = 0;
  std::vector<int> query_positions_;  // that count
  std::vector<Layer> layers_;
  std::mt19937 random_;
};

}  // namespace ebb
