// What notes on attention and its slices share: which numbers are masses, and what stands for what nobody has looked at yet.
// Pure; only attention_notes*.cc include it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ebb {

// More queries than any session has, and far from where floats stop counting.
inline constexpr float kMostQueries = 1e12F;

[[nodiscard]] inline bool is_mass(float value) { return std::isfinite(value) && value >= 0.0F; }

// What came since the window's queries is worth as much as the others are on average: nobody has looked yet.
inline void fill_unseen(const std::vector<std::int32_t>& n_in_window, std::vector<double>& column) {
  double sum = 0.0;
  double n_seen = 0.0;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (n_in_window[i] == 0) continue;
    sum += column[i];
    n_seen += 1.0;
  }
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (n_in_window[i] == 0 && n_seen > 0.0) column[i] = sum / n_seen;
  }
}

}  // namespace ebb
