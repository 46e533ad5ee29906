#include "session/row_change.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "model/frame_rows.h"

namespace ebb {
namespace {

// Of rows of a layer: how far each is from what it was, and how long it was, squared and over the heads so far.
class LayerChange {
 public:
  explicit LayerChange(std::size_t n_rows) : change_(n_rows), length_(n_rows) {}

  void add(const FrameRows& before, std::size_t first, const FrameRows& now, std::size_t at) {
    for (std::size_t r = 0; r < change_.size(); ++r) {
      const std::span<const float> was = before.row(first + r);
      const std::span<const float> is = now.row(at + r);
      for (std::size_t d = 0; d < was.size(); ++d) {
        const auto x = static_cast<double>(was[d]);
        const double difference = static_cast<double>(is[d]) - x;
        change_[r] += difference * difference;
        length_[r] += x * x;
      }
    }
  }

  [[nodiscard]] double most() const {
    double sum = 0.0;
    for (const double square : length_) sum += std::sqrt(square);
    const double mean = sum / static_cast<double>(length_.size());
    return mean > 0.0 ? std::sqrt(std::ranges::max(change_)) / mean : 0.0;
  }

 private:
  std::vector<double> change_;
  std::vector<double> length_;
};

}  // namespace

double most_change(const FrameLayout& layout, const BlockShape& shape, const BlockRows& before, const BlockRows& now,
                   std::size_t n_rows) {
  const auto n_before = static_cast<std::int32_t>(before.first + n_rows);
  const auto n_now = static_cast<std::int32_t>(now.first + n_rows);
  double most = 0.0;
  for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
    LayerChange keys(n_rows);
    LayerChange values(n_rows);
    for (std::int32_t head = 0; head < shape.n_kv_heads; ++head) {
      const std::size_t at = shape.head(LayerIndex(layer), HeadIndex(head)) * layout.frame_bytes();
      const auto was = before.bytes.subspan(at, layout.frame_bytes());
      const auto is = now.bytes.subspan(at, layout.frame_bytes());
      keys.add(FrameRows::keys_of(layout, was, n_before), before.first, FrameRows::keys_of(layout, is, n_now),
               now.first);
      values.add(FrameRows::values_of(layout, was, n_before), before.first, FrameRows::values_of(layout, is, n_now),
                 now.first);
    }
    most = std::max({most, keys.most(), values.most()});
  }
  return most;
}

}  // namespace ebb
