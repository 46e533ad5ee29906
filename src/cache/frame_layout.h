// FrameLayout: how one block of K and V rows of one KV head lies in the bytes of a frame.
//
// A frame holds `block_size` slots. Slot s is the s-th token of its block. Two layouts have the same meaning:
//
//   KeyOrder::kByDim (our CPU kernels)        KeyOrder::kByRow (composed of ggml operations)
//     K  [head_dim_k][key_stride]   elements    K  [block_size][head_dim_k]   ggml rows
//     K  [head_dim_k/32][key_stride] scales *   V  [block_size][head_dim_v]   ggml rows
//     V  [block_size][head_dim_v]   elements
//     V  [block_size][head_dim_v/32] scales *   * q8_0 only: f16, one per 32 dimensions of a row, planes apart
//
// By dimension, 16 keys of one dimension are neighbours and fill a vector, so that scores need neither a transposition
// nor a horizontal sum. key_stride is block_size rounded up to 16; the slots past block_size are never read as keys.
//
// A q8_0 element is an int8; its value is float(int8) * float(scale), as in ggml. Values are the same in both layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/hash.h"
#include "base/status.h"

namespace ebb {

enum class RowType : std::uint8_t { kF32, kF16, kBF16, kQ8_0 };

[[nodiscard]] std::string_view row_type_name(RowType type);
// "f32", "f16", "bf16", "q8_0"
[[nodiscard]] std::optional<RowType> find_row_type(std::string_view name);

enum class KeyOrder : std::uint8_t { kByDim, kByRow };

// Dimensions that share one scale in a q8_0 row (ggml's QK8_0).
inline constexpr std::int32_t kScaleGroup = 32;
// Keys that fill the widest vector we use; K planes are padded to it.
inline constexpr std::int32_t kKeyLanes = 16;

struct FrameLayout {
  RowType row_type = RowType::kF16;
  KeyOrder key_order = KeyOrder::kByDim;
  std::int32_t block_size = 64;
  std::int32_t head_dim_k = 0;
  std::int32_t head_dim_v = 0;

  // Refuses sizes that no kernel serves: block_size outside 8..128, head dimensions outside 1..1024, and q8_0 rows
  // whose head dimensions are not multiples of kScaleGroup.
  [[nodiscard]] Status validate() const;

  [[nodiscard]] std::int32_t key_stride() const { return (block_size + kKeyLanes - 1) / kKeyLanes * kKeyLanes; }
  [[nodiscard]] std::size_t element_bytes() const;

  // Byte offsets within a frame; the plane of scales is empty unless q8_0 lies by dimension.
  [[nodiscard]] std::size_t k_offset() const { return 0; }
  [[nodiscard]] std::size_t k_scales_offset() const;
  [[nodiscard]] std::size_t v_offset() const;
  [[nodiscard]] std::size_t v_scales_offset() const;
  // Size of a frame, a multiple of 64 so that every frame starts on a cache line.
  [[nodiscard]] std::size_t frame_bytes() const;

  // Bytes of K plus V that one token of one KV head needs, without padding.
  [[nodiscard]] double token_bytes() const;
  // Changes whenever bytes of one layout would be misread as another's.
  [[nodiscard]] Hash128 fingerprint() const;

  friend bool operator==(const FrameLayout&, const FrameLayout&) = default;
};

}  // namespace ebb
