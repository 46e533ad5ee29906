#include "model/box_run.h"

#include <algorithm>
#include <utility>

#include "base/to_size.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

// The box around all is so many times as wide as the narrowest of its boxes at most.
constexpr float kMostWider = 4.0F;

}  // namespace

BoxRun::BoxRun(const KeyDigestLayout& layout)
    : layout_(layout),
      least_(padded_dims(layout)),
      greatest_(least_),
      own_least_(least_),
      own_greatest_(least_),
      around_least_(least_),
      around_greatest_(least_) {}

void BoxRun::begin(const float* weights) {
  weights_ = weights;
  is_empty_ = true;
}

bool BoxRun::add(std::span<const std::byte> digest) {
  const std::size_t n = to_size(layout_.n_dims);
  read_box(layout_, digest, {.least = std::span(own_least_).first(n), .greatest = std::span(own_greatest_).first(n)});
  if (is_empty_) {
    least_ = own_least_;
    greatest_ = own_greatest_;
  }
  const BoxWidths widths =
      score_kernels().join_boxes(weights_, {.least = own_least_.data(), .greatest = own_greatest_.data()},
                                 {.least = least_.data(), .greatest = greatest_.data()}, n_dims(),
                                 {.least = around_least_.data(), .greatest = around_greatest_.data()});
  const float narrowest = is_empty_ ? widths.own : std::min(narrowest_, widths.own);
  if (!is_empty_ && widths.around > kMostWider * narrowest) return false;
  is_empty_ = false;
  narrowest_ = narrowest;
  std::swap(least_, around_least_);
  std::swap(greatest_, around_greatest_);
  return true;
}

float BoxRun::step(std::size_t dim) const { return (greatest_[dim] - least_[dim]) / static_cast<float>(kMostLevel); }

}  // namespace ebb
