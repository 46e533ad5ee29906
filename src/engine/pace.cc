#include "engine/pace.h"

#include <algorithm>

namespace ebb {
namespace {

// Steps that write alone and take long, as those of large models do, may take so many times as long with prompts: the weights are read
// once for both, and who reads a prompt waits, too.
constexpr double kMostTimes = 4.0;

// Products of fewer rows than these cost as much; and a prompt is to get on.
constexpr std::int32_t kLeastRows = 16;

// So many times the last step's rows: what a few of a short session took says little of many at the end of a long one.
constexpr std::int32_t kMostGrowth = 4;

// A longer time is believed at once, a shorter one by half: a row costs more the longer its session is.
double follow(double known, double seen) { return seen > known ? seen : (known + seen) / 2.0; }

}  // namespace

void Pace::note(const Step& step) {
  if (step.n_prompt_rows > 0) {
    row_ms_ = follow(row_ms_, std::max(0.0, step.ms - writing_ms_) / step.n_prompt_rows);
    n_last_rows_ = step.n_prompt_rows;
  } else if (step.n_writing > 0) {
    // One that was held up by something else is no measure of those to come.
    writing_ms_ = writing_ms_ == 0.0 ? step.ms : std::min((writing_ms_ + step.ms) / 2.0, 2.0 * writing_ms_);
  }
}

std::int32_t Pace::prompt_rows(std::int32_t n_writing, std::int32_t max_rows) const {
  if (most_ms_ == 0.0 || n_writing == 0 || row_ms_ == 0.0) return max_rows;
  const double ms = std::max(most_ms_, kMostTimes * writing_ms_) - writing_ms_;
  const double n_rows = std::min(ms / row_ms_, static_cast<double>(kMostGrowth * n_last_rows_));
  if (n_rows >= max_rows) return max_rows;
  const std::int32_t n_whole = static_cast<std::int32_t>(n_rows) / kLeastRows * kLeastRows;
  return std::min(std::max(n_whole, kLeastRows), max_rows);
}

}  // namespace ebb
