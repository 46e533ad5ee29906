// PackedMatrix: a weight matrix in panels, and its products with rounded rows, each thread its part.
//
//   panels  [n_out / kPanelRows, rounded up] of panel_bytes; the last one's missing rows are 0 and give nothing
//
// An output is the same, bit for bit, with few rows and with many, by any number of threads, with any instruction set (decisions/0034).
// It does not know models or ggml. Thread rule: immutable once packed.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "base/page_memory.h"
#include "base/status.h"
#include "matrix/product_kernels.h"
#include "matrix/rounded_rows.h"
#include "matrix/weight_kind.h"

namespace ebb {

// Which panels of a product are taken already. Of one product at a time: whoever of n_threads ends last makes it ready for the next.
class PanelQueue {
 public:
  // The first of n_at_once panels that are the caller's; at or beyond the last panel: none is left.
  [[nodiscard]] std::size_t take(std::size_t n_at_once) {
    return next_.fetch_add(n_at_once, std::memory_order_relaxed);
  }
  void leave(std::size_t n_threads) {
    if (n_left_.fetch_add(1, std::memory_order_acq_rel) + 1 < n_threads) return;
    next_.store(0, std::memory_order_relaxed);
    n_left_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> n_left_{0};
};

class PackedMatrix {
 public:
  // [n_out][n_in], not packed yet. kOutOfBudget where there is no memory.
  static Result<PackedMatrix> create(WeightKind kind, std::size_t n_in, std::size_t n_out);

  // All of it, as files have it.
  void pack(std::span<const std::byte> file);

  [[nodiscard]] std::size_t n_in() const { return n_in_; }
  [[nodiscard]] std::size_t n_out() const { return n_out_; }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes().size(); }

  // Whether its rows stay as they are: the weights are floats.
  [[nodiscard]] bool takes_floats() const { return is_float(kind_); }

  // out[row * n_out + i]. Called by each of n_threads; returns when no panel is left to take. FloatRows where takes_floats().
  void multiply(const ProductKernels& kernels, const RoundedRows& rows, float* out, PanelQueue& queue,
                std::size_t n_threads) const;
  void multiply(const ProductKernels& kernels, const FloatRows& rows, float* out, PanelQueue& queue,
                std::size_t n_threads) const;

 private:
  PackedMatrix(WeightKind kind, std::size_t n_in, std::size_t n_out);
  [[nodiscard]] const std::byte* panel(std::size_t index) const { return memory_.data() + index * n_panel_bytes_; }
  [[nodiscard]] ProductOut part_of(float* out, std::size_t panel) const;
  template <class Loops>
  void multiply_panels(const Loops& loops, std::size_t n_rows, float* out, PanelQueue& queue,
                       std::size_t n_threads) const;

  WeightKind kind_;
  std::size_t n_in_;
  std::size_t n_out_;
  std::size_t n_panels_;
  std::size_t n_panel_bytes_;
  PageMemory memory_;
};

}  // namespace ebb
