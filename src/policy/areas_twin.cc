#include "policy/areas_twin.h"

#include <algorithm>
#include <utility>

namespace ebb {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

std::vector<double> pool_of_twin(const std::vector<double>& in) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(in.size()); ++i) {
    double best = in[at(i)];
    for (int j = i + 1; j < i + 7 && j < static_cast<int>(in.size()); ++j) best = std::max(best, in[at(j)]);
    out.push_back(best);
  }
  return out;
}

bool holds(const std::vector<int>& list, int value) { return std::find(list.begin(), list.end(), value) != list.end(); }

}  // namespace

AreasTwin::AreasTwin(const AreasConfig& config, int block_size, int n_layers, int n_prompt)
    : config_(config),
      block_size_(block_size),
      n_prompt_(n_prompt),
      layers_(at(n_layers)),
      random_(config.crush.rng_seed) {}

std::vector<AreasTwin::Gone> AreasTwin::pass(int n_scheduled, const Matrix& scores, const Matrix& diversity) {
  const int window = config_.n_window_queries;
  const int first = window == 0 ? 0 : std::max(0, n_prompt_ - window);
  int n_queries = 0;
  for (int p = n_processed_; p < n_processed_ + n_scheduled; ++p) {
    if (p < first) continue;
    query_positions_.push_back(p);
    ++n_queries;
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::size_t n_before = layers_[i].entries.size();
    register_layer(layers_[i], scores[i], n_queries);
    std::vector<Entry>& entries = layers_[i].entries;
    // The tokens that are new are the last of all processed ones.
    for (std::size_t k = n_before; k < entries.size(); ++k) {
      entries[k].position = n_processed_ + n_scheduled - static_cast<int>(entries.size() - k);
    }
  }
  const bool could_generate = n_processed_ >= n_prompt_;
  n_processed_ += n_scheduled;
  std::vector<Gone> gone(layers_.size());
  for (std::size_t i = 0; could_generate && i < layers_.size(); ++i) {
    gone[i] = evict_layer(layers_[i], i < diversity.size() ? diversity[i] : std::vector<float>());
  }
  return gone;
}

void AreasTwin::register_layer(Layer& layer, const std::vector<float>& scores, int n_queries) {
  if (static_cast<int>(scores.size()) <= config_.start_tokens) return;
  if (layer.entries.empty() && n_queries == 0) return;
  const std::vector<double> behind(scores.begin() + config_.start_tokens, scores.end());
  const bool is_first = layer.entries.empty();
  layer.entries.resize(behind.size());
  if (config_.aggregation != Aggregation::kAdaptiveRkv) {
    const std::vector<double> pooled = pool_of_twin(behind);
    for (std::size_t i = 0; i < pooled.size(); ++i) layer.entries[i].sum += pooled[i];
    return;
  }
  layer.history.push_back(behind);
  if (static_cast<int>(layer.history.size()) > config_.adaptive.n_passes) layer.history.erase(layer.history.begin());
  std::vector<double> mean(behind.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (const auto& pass : layer.history) mean[i] += i < pass.size() ? pass[i] : 0.0;
    mean[i] /= static_cast<double>(layer.history.size());
  }
  if (!is_first) mean = pool_of_twin(mean);
  for (std::size_t i = 0; i < mean.size(); ++i) layer.entries[i].sum = mean[i];
}

std::int64_t AreasTwin::count(int position) const {
  return std::count_if(query_positions_.begin(), query_positions_.end(), [&](int q) { return q >= position; });
}

std::vector<std::int64_t> AreasTwin::counters(int layer) const {
  std::vector<std::int64_t> counts;
  for (const Entry& entry : layers_[at(layer)].entries) counts.push_back(count(entry.position));
  return counts;
}

double AreasTwin::value(const Entry& entry) const {
  return config_.aggregation == Aggregation::kNormSum ? entry.sum / static_cast<double>(count(entry.position))
                                                      : entry.sum;
}

AreasTwin::Gone AreasTwin::evict_layer(Layer& layer, const std::vector<float>& diversity) {
  const int n = static_cast<int>(layer.entries.size()) + config_.start_tokens;
  if (layer.entries.empty() || n < config_.max_tokens + block_size_) return {};
  const int n_start = config_.start_tokens / block_size_;
  const int n_evictable = n / block_size_ - config_.recent_tokens / block_size_ - n_start;
  Gone gone = config_.aggregation == Aggregation::kAdaptiveRkv ? by_diversity(layer, n_evictable, diversity)
                                                               : by_value(layer, n_evictable);
  std::vector<Entry> left;
  for (int i = 0; i < static_cast<int>(layer.entries.size()); ++i) {
    if (!holds(gone.victims, i / block_size_)) left.push_back(layer.entries[at(i)]);
  }
  layer.entries = left;
  if (!gone.victims.empty()) layer.history.clear();
  for (int& block : gone.victims) block += n_start;
  for (int& block : gone.rescued) block += n_start;
  return gone;
}

AreasTwin::Gone AreasTwin::by_value(const Layer& layer, int n_evictable) {
  std::vector<std::pair<double, int>> ranked;
  for (int block = 0; block < n_evictable; ++block) {
    double sum = 0.0;
    for (int i = 0; i < block_size_; ++i) sum += value(layer.entries[at(block * block_size_ + i)]);
    ranked.emplace_back(sum, block);
  }
  std::sort(ranked.begin(), ranked.end());
  const int n_stay = (config_.max_tokens - config_.start_tokens - config_.recent_tokens) / block_size_;
  const int n_leave = std::max(0, n_evictable - n_stay) + (config_.upstream ? 0 : config_.crush.budget_blocks);
  Gone gone;
  for (int i = 0; i < n_leave; ++i) gone.victims.push_back(ranked[at(i)].second);
  std::sort(gone.victims.begin(), gone.victims.end());
  if (config_.crush.budget_blocks > 0 && n_leave >= config_.crush.budget_blocks) {
    gone.rescued = crush(layer, n_evictable, gone.victims);
  }
  std::erase_if(gone.victims, [&](int block) { return holds(gone.rescued, block); });
  return gone;
}

std::vector<int> AreasTwin::crush(const Layer& layer, int n_evictable, const std::vector<int>& victims) {
  const int n_tokens = n_evictable * block_size_;
  std::vector<std::pair<double, int>> largest;
  for (int i = 0; i < n_tokens; ++i) largest.emplace_back(-layer.entries[at(i)].sum, i);
  std::sort(largest.begin(), largest.end());
  std::vector<int> bits(at(n_tokens));
  for (int i = 0; i < n_tokens / 2; ++i) bits[at(largest[at(i)].second)] = 1;
  std::vector<int> anchor;
  for (int i = 0; i < block_size_; ++i) {
    int n_ones = 0;
    for (int block = 0; block < n_evictable; ++block) n_ones += bits[at(block * block_size_ + i)];
    switch (config_.crush.anchor) {
      case CrushAnchor::kRandom: anchor.push_back(random_() >= 0x80000000U ? 1 : 0); break;
      case CrushAnchor::kZeros: anchor.push_back(0); break;
      case CrushAnchor::kOnes: anchor.push_back(1); break;
      case CrushAnchor::kMean: anchor.push_back(n_ones > n_evictable - n_ones ? 1 : 0); break;
      case CrushAnchor::kAlternating: anchor.push_back(i % 2); break;
    }
  }
  std::vector<std::pair<int, int>> line;
  for (const int block : victims) {
    int distance = 0;
    for (int i = 0; i < block_size_; ++i) distance += std::abs(bits[at(block * block_size_ + i)] - anchor[at(i)]);
    line.emplace_back(distance, block);
  }
  std::sort(line.begin(), line.end());
  const int k = std::min(static_cast<int>(victims.size()), config_.crush.budget_blocks);
  const int step = static_cast<int>(victims.size()) / k;
  std::vector<int> rescued;
  for (int i = 0; i <= (k - 1) * step; i += step) rescued.push_back(line[at(i)].second);
  std::sort(rescued.begin(), rescued.end());
  return rescued;
}

AreasTwin::Gone AreasTwin::by_diversity(const Layer& layer, int n_evictable, const std::vector<float>& diversity) {
  const int n_keep = (config_.max_tokens - config_.start_tokens - config_.recent_tokens) / block_size_;
  std::vector<std::pair<double, int>> best;  // the negative score first, so that the largest come first
  double total = 0.0;
  for (int block = 0; block < n_evictable; ++block) {
    double sum = 0.0;
    for (int i = 0; i < block_size_; ++i) sum += layer.entries[at(block * block_size_ + i)].sum;
    total += sum;
    best.emplace_back(-sum, block);
  }
  std::sort(best.begin(), best.end());
  std::vector<int> kept;
  double taken = 0.0;
  for (const auto& [negative, block] : best) {
    if (taken >= config_.adaptive.attention_mass * total || static_cast<int>(kept.size()) == n_keep) break;
    kept.push_back(block);
    taken -= negative;
  }
  std::vector<int> others;
  for (int block = 0; block < n_evictable; ++block) {
    if (!holds(kept, block)) others.push_back(block);
  }
  std::vector<std::pair<double, int>> diverse;
  for (const int row : others) {
    double sum = 0.0;
    for (const int column : others) {
      for (int i = 0; i < block_size_; ++i) {
        sum += diversity[at(row * n_evictable * block_size_ + column * block_size_ + i)];
      }
    }
    diverse.emplace_back(-sum / (static_cast<double>(others.size()) * block_size_), row);
  }
  std::sort(diverse.begin(), diverse.end());
  Gone gone;
  for (int i = n_keep - static_cast<int>(kept.size()); i < static_cast<int>(diverse.size()); ++i) {
    gone.victims.push_back(diverse[at(i)].second);
  }
  std::sort(gone.victims.begin(), gone.victims.end());
  return gone;
}

}  // namespace ebb
