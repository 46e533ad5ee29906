#include "model/sealed_frame.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/to_size.h"

namespace ebb {
namespace {

constexpr float kMostCode = 15.0F;
constexpr float kLargestF16 = 65504.0F;

using Vector = std::array<float, kVectorKeys>;

// A value that codes can hold.
float held(float x) {
  const float number = x == x ? x : 0.0F;
  return std::min(std::max(number, -kLargestF16), kLargestF16);
}

// Element by element, which a compiler turns into vectors; the order of minima does not matter.
void find_range(const float* x, std::int32_t n, float& least, float& greatest) {
  Vector low;
  Vector high;
  std::copy_n(x, kVectorKeys, low.begin());
  high = low;
  for (std::int32_t i = kVectorKeys; i < n; i += kVectorKeys) {
    for (std::size_t e = 0; e < low.size(); ++e) {
      low[e] = std::min(low[e], x[to_size(i) + e]);
      high[e] = std::max(high[e], x[to_size(i) + e]);
    }
  }
  least = std::ranges::min(low);
  greatest = std::ranges::max(high);
}

// The least f16 that is not below x, which is finite and not negative.
std::uint16_t round_up(const AttentionKernels& kernels, float x) {
  std::uint16_t half = 0;
  float back = 0.0F;
  kernels.to_f16(&x, &half, 1);
  kernels.from_f16(&half, &back, 1);
  return back < x ? static_cast<std::uint16_t>(half + 1) : half;
}

void pack(const std::uint8_t* codes, std::int32_t n, std::uint8_t* out) {
  constexpr std::int32_t kHalf = kVectorKeys / 2;
  for (std::int32_t i = 0; i < n; i += kVectorKeys) {
    for (std::int32_t j = 0; j < kHalf; ++j) {
      out[i / 2 + j] = static_cast<std::uint8_t>(codes[i + j] | codes[i + j + kHalf] << 4U);
    }
  }
}

std::uint16_t load_half(const std::byte* at) {
  std::uint16_t half = 0;
  std::memcpy(&half, at, kScaleBytes);
  return half;
}

void store_half(std::byte* at, std::uint16_t half) { std::memcpy(at, &half, kScaleBytes); }

std::uint8_t* codes_at(std::byte* at) { return reinterpret_cast<std::uint8_t*>(at); }

// Codes of a run become numbers; n is rounded up to whole vectors.
void read_run(const AttentionKernels& kernels, const std::byte* codes, std::array<const std::byte*, 2> scale_and_least,
              std::int32_t n, float* out) {
  const std::array<std::uint16_t, 2> halves = {load_half(scale_and_least[0]), load_half(scale_and_least[1])};
  std::array<float, 2> run;
  kernels.from_f16(halves.data(), run.data(), 2);
  const std::int32_t n_padded = (n + kVectorKeys - 1) / kVectorKeys * kVectorKeys;
  kernels.from_codes(reinterpret_cast<const std::uint8_t*>(codes), run[0], run[1], out, n_padded);
}

void code_keys(const FrameLayout& layout, const AttentionKernels& kernels, std::byte* sealed, std::int32_t dim,
               const std::uint16_t* halves) {
  std::array<float, kMaxRun> x;
  kernels.from_f16(halves, x.data(), layout.block_size);
  std::byte* const codes = sealed + layout.k_offset() + to_size(dim) * to_size(layout.key_stride()) / 2;
  const CodedRun run = code_run(kernels, x.data(), layout.block_size, codes_at(codes));
  std::byte* const scales = sealed + layout.k_scales_offset();
  store_half(scales + to_size(dim) * kScaleBytes, run.scale);
  store_half(scales + to_size(layout.head_dim_k + dim) * kScaleBytes, run.least);
}

void code_values(const FrameLayout& layout, const AttentionKernels& kernels, std::byte* sealed, std::int32_t slot,
                 const std::uint16_t* halves) {
  std::array<float, kMaxHeadDim> x;
  kernels.from_f16(halves, x.data(), layout.head_dim_v);
  std::byte* const codes = sealed + layout.v_offset() + to_size(slot) * to_size(layout.value_stride()) / 2;
  std::byte* const scales = sealed + layout.v_scales_offset() + to_size(slot * 2 * layout.value_runs()) * kScaleBytes;
  for (std::int32_t i = 0; i < layout.value_runs(); ++i) {
    const std::int32_t dim = i * kScaleGroup;
    const std::int32_t n = std::min(kScaleGroup, layout.head_dim_v - dim);
    const CodedRun run = code_run(kernels, x.data() + dim, n, codes_at(codes + dim / 2));
    store_half(scales + to_size(i) * kScaleBytes, run.scale);
    store_half(scales + to_size(layout.value_runs() + i) * kScaleBytes, run.least);
  }
}

}  // namespace

CodedRun code_run(const AttentionKernels& kernels, const float* x, std::int32_t n, std::uint8_t* codes) {
  std::array<float, kMaxRun> values;
  std::array<std::uint8_t, kMaxRun> unpacked;
  const std::int32_t n_padded = (n + kVectorKeys - 1) / kVectorKeys * kVectorKeys;
  for (std::int32_t i = 0; i < n; ++i) values[to_size(i)] = held(x[i]);
  std::fill(values.begin() + n, values.begin() + n_padded, values[0]);
  float least = 0.0F;
  float greatest = 0.0F;
  find_range(values.data(), n_padded, least, greatest);

  CodedRun run;
  kernels.to_f16(&least, &run.least, 1);
  run.scale = round_up(kernels, (greatest - least) / kMostCode);
  float scale = 0.0F;
  kernels.from_f16(&run.scale, &scale, 1);
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  for (std::int32_t i = 0; i < n_padded; ++i) {
    const float code = (values[to_size(i)] - least) * inverse + 0.5F;
    unpacked[to_size(i)] = static_cast<std::uint8_t>(static_cast<std::int32_t>(std::min(code, kMostCode)));
  }
  std::fill(unpacked.begin() + n, unpacked.begin() + n_padded, std::uint8_t{0});
  pack(unpacked.data(), n_padded, codes);
  return run;
}

void seal_frame(const FrameLayout& layout, const AttentionKernels& kernels, const std::byte* open, std::byte* sealed) {
  const FrameLayout rows = layout.open_layout();
  const auto* const keys = reinterpret_cast<const std::uint16_t*>(open + rows.k_offset());
  const auto* const values = reinterpret_cast<const std::uint16_t*>(open + rows.v_offset());
  for (std::int32_t dim = 0; dim < layout.head_dim_k; ++dim) {
    code_keys(layout, kernels, sealed, dim, keys + to_size(dim) * to_size(layout.key_stride()));
  }
  for (std::int32_t slot = 0; slot < layout.block_size; ++slot) {
    code_values(layout, kernels, sealed, slot, values + to_size(slot) * to_size(layout.head_dim_v));
  }
}

void read_sealed_keys(const FrameLayout& layout, const AttentionKernels& kernels, const std::byte* sealed,
                      std::int32_t dim, float* out) {
  const std::byte* const scales = sealed + layout.k_scales_offset();
  const std::byte* const codes = sealed + layout.k_offset() + to_size(dim) * to_size(layout.key_stride()) / 2;
  read_run(kernels, codes,
           {scales + to_size(dim) * kScaleBytes, scales + to_size(layout.head_dim_k + dim) * kScaleBytes},
           layout.key_stride(), out);
}

void read_sealed_value(const FrameLayout& layout, const AttentionKernels& kernels, const std::byte* sealed,
                       std::int32_t slot, float* out) {
  const std::byte* const codes = sealed + layout.v_offset() + to_size(slot) * to_size(layout.value_stride()) / 2;
  const std::byte* const scales =
      sealed + layout.v_scales_offset() + to_size(slot * 2 * layout.value_runs()) * kScaleBytes;
  for (std::int32_t i = 0; i < layout.value_runs(); ++i) {
    const std::int32_t dim = i * kScaleGroup;
    read_run(kernels, codes + dim / 2,
             {scales + to_size(i) * kScaleBytes, scales + to_size(layout.value_runs() + i) * kScaleBytes},
             std::min(kScaleGroup, layout.head_dim_v - dim), out + dim);
  }
}

void write_sealed_keys(const FrameLayout& layout, const AttentionKernels& kernels, std::byte* sealed, std::int32_t dim,
                       const float* x) {
  std::array<std::uint16_t, kMaxRun> halves;
  kernels.to_f16(x, halves.data(), layout.block_size);
  code_keys(layout, kernels, sealed, dim, halves.data());
}

}  // namespace ebb
