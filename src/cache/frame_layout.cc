#include "cache/frame_layout.h"

#include <array>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

constexpr std::array<std::string_view, kRowTypes> kRowTypeNames = {"f32", "f16", "bf16", "q8_0", "kivi4"};

// Smaller blocks cost more metadata than rows; larger ones do not fit the score buffer of the kernels.
constexpr std::int32_t kMinBlockSize = 1;
// Fewer tokens than this share no range worth its 16-bit scale.
constexpr std::int32_t kMinSealedBlockSize = 8;
constexpr std::int32_t kMaxBlockSize = 128;

// Every plane and every frame starts on a cache line.
constexpr std::size_t kPlaneAlignment = 64;

constexpr std::size_t align_up(std::size_t n_bytes) {
  return (n_bytes + kPlaneAlignment - 1) / kPlaneAlignment * kPlaneAlignment;
}

// Bytes of one row of one token: elements, and for q8_0 its scales.
std::size_t row_bytes(RowType type, std::size_t element_bytes, std::int32_t head_dim) {
  const std::size_t scales = type == RowType::kQ8_0 ? to_size(head_dim / kScaleGroup) * kScaleBytes : 0;
  return to_size(head_dim) * element_bytes + scales;
}

Status check_head_dim(std::string_view what, std::int32_t head_dim, RowType type) {
  if (head_dim < 1 || head_dim > kMaxHeadDim) {
    return error(Code::kUnsupported, "{} is {}; frames hold heads of 1 to {} dimensions", what, head_dim, kMaxHeadDim);
  }
  if (type == RowType::kQ8_0 && head_dim % kScaleGroup != 0) {
    return error(Code::kUnsupported, "{} is {}, but q8_0 rows need a multiple of {}; choose f16 rows", what, head_dim,
                 kScaleGroup);
  }
  return {};
}

}  // namespace

std::string_view row_type_name(RowType type) { return kRowTypeNames[static_cast<std::size_t>(type)]; }

std::optional<RowType> find_row_type(std::string_view name) {
  for (std::size_t i = 0; i < kRowTypeNames.size(); ++i) {
    if (kRowTypeNames[i] == name) return static_cast<RowType>(i);
  }
  return std::nullopt;
}

Status FrameLayout::validate() const {
  const std::int32_t least = seals() ? kMinSealedBlockSize : kMinBlockSize;
  if (block_size < least || block_size > kMaxBlockSize) {
    return error(Code::kUnsupported, "block size is {}; choose {} to {} tokens with K and V in {}", block_size, least,
                 kMaxBlockSize, row_type_name(row_type));
  }
  if (seals() && key_order == KeyOrder::kByRow) {
    return error(Code::kUnsupported,
                 "kivi4 frames are read by ebb's own CPU kernels only; choose f16, bf16 or q8_0 here");
  }
  EBB_RETURN_IF_ERROR(check_head_dim("head_dim_k", head_dim_k, row_type));
  return check_head_dim("head_dim_v", head_dim_v, row_type);
}

std::size_t FrameLayout::element_bytes() const {
  switch (row_type) {
    case RowType::kF32: return 4;
    case RowType::kF16:
    case RowType::kBF16: return 2;
    case RowType::kQ8_0: return 1;
    case RowType::kKivi4: break;
  }
  EBB_CHECK(!seals(), "codes of {} are no whole bytes", row_type_name(row_type));
  return 0;
}

FrameLayout FrameLayout::open_layout() const {
  FrameLayout open = *this;
  if (seals()) open.row_type = RowType::kF16;
  return open;
}

// The planes: K, its scales, V, its scales. By row, scales lie within the rows.

std::size_t FrameLayout::k_scales_offset() const {
  if (key_order == KeyOrder::kByRow)
    return align_up(to_size(block_size) * row_bytes(row_type, element_bytes(), head_dim_k));
  const std::size_t n_elements = to_size(head_dim_k) * to_size(key_stride());
  return align_up(seals() ? n_elements / 2 : n_elements * element_bytes());
}

std::size_t FrameLayout::v_offset() const {
  if (key_order == KeyOrder::kByRow) return k_scales_offset();
  if (seals()) return k_scales_offset() + align_up(2 * to_size(head_dim_k) * kScaleBytes);
  if (row_type != RowType::kQ8_0) return k_scales_offset();
  return k_scales_offset() + align_up(to_size(head_dim_k / kScaleGroup) * to_size(key_stride()) * kScaleBytes);
}

std::size_t FrameLayout::v_scales_offset() const {
  if (key_order == KeyOrder::kByRow) return frame_bytes();
  if (seals()) return v_offset() + align_up(to_size(block_size) * to_size(value_stride()) / 2);
  return v_offset() + align_up(to_size(block_size) * to_size(head_dim_v) * element_bytes());
}

std::size_t FrameLayout::frame_bytes() const {
  if (key_order == KeyOrder::kByRow) {
    return v_offset() + align_up(to_size(block_size) * row_bytes(row_type, element_bytes(), head_dim_v));
  }
  if (seals()) return v_scales_offset() + align_up(2 * to_size(block_size) * to_size(value_runs()) * kScaleBytes);
  if (row_type != RowType::kQ8_0) return v_scales_offset();
  return v_scales_offset() + align_up(to_size(block_size) * to_size(head_dim_v / kScaleGroup) * kScaleBytes);
}

double FrameLayout::token_bytes() const {
  if (seals()) {
    const double codes = 0.5 * (head_dim_k + head_dim_v);
    const double runs = static_cast<double>(head_dim_k) / block_size + value_runs();
    return codes + runs * 2 * kScaleBytes;
  }
  return static_cast<double>(row_bytes(row_type, element_bytes(), head_dim_k) +
                             row_bytes(row_type, element_bytes(), head_dim_v));
}

Hash128 FrameLayout::fingerprint() const {
  Hasher hasher;
  hasher.add_text("ebb frame layout 1");
  hasher.add(static_cast<std::uint64_t>(row_type)).add(static_cast<std::uint64_t>(key_order));
  hasher.add(static_cast<std::uint64_t>(block_size));
  hasher.add(static_cast<std::uint64_t>(head_dim_k)).add(static_cast<std::uint64_t>(head_dim_v));
  return hasher.finish();
}

}  // namespace ebb
