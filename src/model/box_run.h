// BoxRun: boxes of blocks' keys that are alike, joined to one around them, whose levels all of those keys can be told in.
//
// It reads digests and knows no blocks or queries but for how much each channel counts. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/key_digest.h"

namespace ebb {

class BoxRun {
 public:
  explicit BoxRun(const KeyDigestLayout& layout);

  // Of nothing, for channels that count by `weights`, [n_dims()], which must outlive it.
  void begin(const float* weights);
  // False: with this one the box would be so much wider than the narrowest in it that that block's keys had too few levels.
  bool add(std::span<const std::byte> digest);

  // As score kernels take them; channels beyond head_dim_k are 0.
  [[nodiscard]] std::size_t n_dims() const { return least_.size(); }
  [[nodiscard]] const std::vector<float>& least() const { return least_; }
  // Of one of kMostLevel levels of a channel.
  [[nodiscard]] float step(std::size_t dim) const;

 private:
  const KeyDigestLayout& layout_;
  const float* weights_ = nullptr;
  bool is_empty_ = true;
  float narrowest_ = 0.0F;
  std::vector<float> least_, greatest_, own_least_, own_greatest_, around_least_, around_greatest_;
};

}  // namespace ebb
