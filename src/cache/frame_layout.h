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
//
// kivi4 (KIVI, arXiv 2402.02750) lies by dimension only, and its blocks have two forms. A block that is written to is
// *open*: f16, in a frame of open_layout(). A full one is *sealed*: 4-bit codes, each worth code * scale + least, with
// one f16 scale and least for a run of values:
//
//     K  [head_dim_k][key_stride / 2] codes      a run is one dimension over the tokens of the block
//     K  [2][head_dim_k]              f16        scales, then leasts
//     V  [block_size][value_stride / 2] codes    a run is 32 dimensions of one token; the last may be shorter
//     V  [block_size][2][value_runs]  f16        of each token, scales, then leasts
//
// 16 codes share 8 bytes: byte i holds code i in its low half and code i + 8 in its high half. value_stride is
// head_dim_v rounded up to 16; codes past a run's end are 0. seal_frame() (model/sealed_frame.h) is what turns one form
// into the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/hash.h"
#include "base/status.h"

namespace ebb {

enum class RowType : std::uint8_t { kF32, kF16, kBF16, kQ8_0, kKivi4 };
inline constexpr std::size_t kRowTypes = 5;

[[nodiscard]] std::string_view row_type_name(RowType type);
// "f32", "f16", "bf16", "q8_0", "kivi4"
[[nodiscard]] std::optional<RowType> find_row_type(std::string_view name);

// Whether turning a key to another anchor rounds it to a coarse grid: then every move is a loss that users are told of.
[[nodiscard]] constexpr bool is_quantised(RowType type) { return type == RowType::kQ8_0 || type == RowType::kKivi4; }

enum class KeyOrder : std::uint8_t { kByDim, kByRow };

// Dimensions that share one scale in a q8_0 row (ggml's QK8_0) and in a row of sealed values.
inline constexpr std::int32_t kScaleGroup = 32;
// The bytes of one scale, which is a half.
inline constexpr std::size_t kScaleBytes = 2;
// The widest head that a layout may have.
inline constexpr std::int32_t kMaxHeadDim = 1024;
// Keys that fill the widest vector we use; K planes are padded to it.
inline constexpr std::int32_t kVectorKeys = 16;

struct FrameLayout {
  RowType row_type = RowType::kF16;
  KeyOrder key_order = KeyOrder::kByDim;
  std::int32_t block_size = 64;
  std::int32_t head_dim_k = 0;
  std::int32_t head_dim_v = 0;

  // Refuses sizes that no kernel serves: block_size outside 1..128 (kivi4: 8..128), head dimensions outside 1..1024, and q8_0 rows
  // whose head dimensions are not multiples of kScaleGroup; and kivi4 by row, which no operation of ggml's reads.
  [[nodiscard]] Status validate() const;

  [[nodiscard]] std::int32_t key_stride() const { return (block_size + kVectorKeys - 1) / kVectorKeys * kVectorKeys; }
  [[nodiscard]] std::int32_t value_stride() const { return (head_dim_v + kVectorKeys - 1) / kVectorKeys * kVectorKeys; }
  // Runs of sealed values of one token.
  [[nodiscard]] std::int32_t value_runs() const { return (head_dim_v + kScaleGroup - 1) / kScaleGroup; }
  // Not for kivi4, whose codes are half a byte.
  [[nodiscard]] std::size_t element_bytes() const;

  // Whether blocks have two forms, open and sealed.
  [[nodiscard]] bool seals() const { return row_type == RowType::kKivi4; }
  // How an open block lies; this layout itself where blocks have one form.
  [[nodiscard]] FrameLayout open_layout() const;

  // Byte offsets within a frame; a plane of scales is empty unless q8_0 lies by dimension, or for kivi4.
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
