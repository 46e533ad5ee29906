// WideCopies: the f16 and bf16 matrices of a small model once more in f32, for products of several rows.
//
// ggml's tiles multiply in f32 and widen f16 as they load it, again for every few rows. One row is bound by memory and
// best read as it lies; from eight on the widening costs a quarter of the product (decisions/0011). It does not know
// which matrices a model has. Thread rule: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

struct ggml_context;
struct ggml_tensor;
struct ggml_backend_buffer;

namespace ebb {

class WideCopies {
 public:
  // None.
  WideCopies();
  // Copies of those of `matrices` in memory that this processor reads and in a type that is worth it, if all of them
  // together fit a bound that leaves a process its promised size; else of none. No memory for them: none.
  explicit WideCopies(std::span<ggml_tensor* const> matrices);
  ~WideCopies();
  WideCopies(WideCopies&&) noexcept;
  WideCopies& operator=(WideCopies&&) noexcept;

  // The one of the two that is faster for so many rows: the copy, or the matrix itself.
  [[nodiscard]] ggml_tensor* choose(ggml_tensor* matrix, std::int64_t n_rows) const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
  std::map<const ggml_tensor*, ggml_tensor*> copies_;
};

}  // namespace ebb
