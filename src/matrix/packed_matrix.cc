#include "matrix/packed_matrix.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "matrix/pack.h"

namespace ebb {
namespace {

// With more rows panels are widened first, which costs as much as some rows do.
constexpr std::size_t kFewRows = 16;

// Panels are taken so many times by each thread. More: the queue is in the way. Less: threads wait for the last one.
constexpr std::size_t kTakesEach = 8;

constexpr std::size_t kLine = 64;

// Memory for two wide panels, of each thread for as long as it lives; null where there is none.
std::byte* scratch(std::size_t n_bytes) {
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local std::size_t n_there = 0;
  if (n_bytes > n_there) {
    n_there = (n_bytes + kLine - 1) / kLine * kLine;
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(kLine, n_there)));
    if (memory == nullptr) n_there = 0;
  }
  return memory.get();
}

}  // namespace

PackedMatrix::PackedMatrix(WeightKind kind, std::size_t n_in, std::size_t n_out)
    : kind_(kind),
      n_in_(n_in),
      n_out_(n_out),
      n_panels_((n_out + kPanelRows - 1) / kPanelRows),
      n_panel_bytes_(panel_bytes(kind, n_in)),
      memory_(n_panels_ * n_panel_bytes_) {}

Result<PackedMatrix> PackedMatrix::create(WeightKind kind, std::size_t n_in, std::size_t n_out) {
  PackedMatrix matrix(kind, n_in, n_out);
  if (matrix.memory_.is_there()) return matrix;
  return error(Code::kOutOfBudget, "{} MB for weights could not be reserved; use a smaller quantisation",
               matrix.n_panels_ * matrix.n_panel_bytes_ >> 20);
}

void PackedMatrix::pack(std::span<const std::byte> file) {
  const std::size_t n_row_bytes = file.size() / n_out_;
  for (std::size_t p = 0; p < n_panels_; ++p) {
    const std::size_t n_rows = std::min(kPanelRows, n_out_ - p * kPanelRows);
    pack_panel(kind_, file.subspan(p * kPanelRows * n_row_bytes, n_rows * n_row_bytes), n_rows, n_in_,
               memory_.data() + p * n_panel_bytes_);
  }
}

ProductOut PackedMatrix::part_of(float* out, std::size_t panel) const {
  const std::size_t first = panel * kPanelRows;
  return {.data = out + first, .stride = n_out_, .n = std::min(kPanelRows, n_out_ - first)};
}

// Two panels at once where there are many rows: `loops` multiplies one as it is packed, widens one, and multiplies two wide ones.
template <class Loops>
void PackedMatrix::multiply_panels(const Loops& loops, std::size_t n_rows, float* out, PanelQueue& queue,
                                   std::size_t n_threads) const {
  const std::size_t n_wide_bytes = (wide_panel_bytes(kind_, n_in_) + kLine - 1) / kLine * kLine;
  std::byte* const wide = n_rows > kFewRows ? scratch(std::max(kLine, 2 * n_wide_bytes)) : nullptr;
  const std::size_t n_pairs = (n_panels_ + 1) / 2;
  const std::size_t n_at_once = 2 * std::max<std::size_t>(1, n_pairs / (kTakesEach * n_threads));
  for (std::size_t first = queue.take(n_at_once); first < n_panels_; first = queue.take(n_at_once)) {
    const std::size_t end = std::min(first + n_at_once, n_panels_);
    for (std::size_t p = first; p < end; p += 2) {
      const std::size_t other = std::min(p + 1, end - 1);
      if (wide == nullptr) {
        loops.multiply(panel(p), part_of(out, p));
        if (other != p) loops.multiply(panel(other), part_of(out, other));
        continue;
      }
      const auto left = loops.widen(panel(p), wide);
      const auto right = other == p ? left : loops.widen(panel(other), wide + n_wide_bytes);
      ProductOut right_out = part_of(out, other);
      if (other == p) right_out.n = 0;
      loops.multiply_wide({left, right}, {part_of(out, p), right_out});
    }
  }
  queue.leave(n_threads);
}

namespace {

struct OfRounded {
  const ProductKernels& kernels;
  WeightKind kind;
  const RoundedRows& rows;

  void multiply(const std::byte* panel, const ProductOut& out) const { kernels.multiply(kind, panel, rows, out); }
  [[nodiscard]] WidePanel widen(const std::byte* panel, std::byte* memory) const {
    return kernels.widen(kind, panel, rows.n_blocks, memory);
  }
  void multiply_wide(const std::array<WidePanel, 2>& panels, const std::array<ProductOut, 2>& out) const {
    kernels.multiply_wide(kind, panels, rows, out);
  }
};

struct OfFloats {
  const ProductKernels& kernels;
  WeightKind kind;
  const FloatRows& rows;

  void multiply(const std::byte* panel, const ProductOut& out) const {
    kernels.multiply_floats(kind, panel, rows, out);
  }
  [[nodiscard]] const float* widen(const std::byte* panel, std::byte* memory) const {
    return kernels.widen_floats(kind, panel, rows.n_blocks, memory);
  }
  void multiply_wide(const std::array<const float*, 2>& panels, const std::array<ProductOut, 2>& out) const {
    kernels.multiply_wide_floats(panels, rows, out);
  }
};

}  // namespace

void PackedMatrix::multiply(const ProductKernels& kernels, const RoundedRows& rows, float* out, PanelQueue& queue,
                            std::size_t n_threads) const {
  multiply_panels(OfRounded{kernels, kind_, rows}, rows.n_rows, out, queue, n_threads);
}

void PackedMatrix::multiply(const ProductKernels& kernels, const FloatRows& rows, float* out, PanelQueue& queue,
                            std::size_t n_threads) const {
  multiply_panels(OfFloats{kernels, kind_, rows}, rows.n_rows, out, queue, n_threads);
}

}  // namespace ebb
