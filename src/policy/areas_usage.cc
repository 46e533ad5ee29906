#include "policy/areas_usage.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace ebb {

void UsageMeter::sample(std::int64_t n_used, std::int64_t n_blocks) {
  EBB_CHECK(n_used >= 0 && n_blocks > 0, "{} of {} blocks", n_used, n_blocks);
  samples_.push_back(100.0 * static_cast<double>(n_used) / static_cast<double>(n_blocks));
  if (samples_.size() > kMostSamples) samples_.pop_front();
  max_ = std::max(max_, samples_.back());
}

double UsageMeter::average() const {
  if (samples_.empty()) return 0.0;
  return std::accumulate(samples_.begin(), samples_.end(), 0.0) / static_cast<double>(samples_.size());
}

}  // namespace ebb
