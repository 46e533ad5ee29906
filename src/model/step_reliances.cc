#include "model/step_reliances.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ebb {
namespace {

// Longer slices: one word changes, and more is computed again. Shorter ones: more notes for each token, and a sentence is cut into
// several.
constexpr std::int32_t kSliceTokens = 16;
constexpr std::int32_t kFewestSliceTokens = 8;

}  // namespace

std::int32_t StepReliances::slice_tokens(std::int32_t block_size) {
  const std::int32_t n = std::gcd(kSliceTokens, block_size);
  return n < kFewestSliceTokens ? block_size : n;
}

void StepReliances::add(SliceReliance found) {
  const std::lock_guard lock(mutex_);
  found_.push_back(found);
}

std::vector<SliceReliance> StepReliances::take() {
  std::vector<SliceReliance> all = std::exchange(found_, {});
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

}  // namespace ebb
