#include "model/product.h"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "ggml-cpp.h"
#include "ggml.h"

#include "base/check.h"

namespace ebb {
namespace {

constexpr std::size_t kBlock = 256;            // values of a block
constexpr std::size_t kGroup = 8;              // rows that are interleaved, and sub-blocks of a block
constexpr std::size_t kChunk = 8;              // bytes of a row that stay together
constexpr std::size_t kPackedScaleBytes = 12;  // of eight scales and eight mins, 6 bits each

struct PlainBlock {
  std::uint16_t d, dmin;
  std::array<std::uint8_t, kPackedScaleBytes> scales;
  std::array<std::uint8_t, kBlock / 2> values;
};
static_assert(sizeof(PlainBlock) == 144);

struct PackedBlock {
  std::array<std::uint16_t, kGroup> d, dmin;
  std::array<std::uint8_t, kPackedScaleBytes * kGroup> scales;
  std::array<std::uint8_t, kBlock / 2 * kGroup> values;
};
static_assert(sizeof(PackedBlock) == kGroup * sizeof(PlainBlock));

// Eight scales and eight mins in 12 bytes: the low four pairs' 6 bits in bytes 0-3 and 4-7, with the high pairs' top 2
// bits above them; the high pairs' low 4 bits in bytes 8-11.
struct Scales {
  std::array<std::uint8_t, kGroup> scale, min;
};

Scales read_scales(const std::uint8_t* b) {
  Scales s;
  for (std::size_t i = 0; i < 4; ++i) {
    s.scale[i] = b[i] & 63U;
    s.min[i] = b[i + 4] & 63U;
    s.scale[i + 4] = static_cast<std::uint8_t>((b[i + 8] & 15U) | ((b[i] >> 6U) << 4U));
    s.min[i + 4] = static_cast<std::uint8_t>((b[i + 8] >> 4U) | ((b[i + 4] >> 6U) << 4U));
  }
  return s;
}

void write_scales(const Scales& s, std::uint8_t* b) {
  for (std::size_t i = 0; i < 4; ++i) {
    b[i] = static_cast<std::uint8_t>(s.scale[i] | ((s.scale[i + 4] >> 4U) << 6U));
    b[i + 4] = static_cast<std::uint8_t>(s.min[i] | ((s.min[i + 4] >> 4U) << 6U));
    b[i + 8] = static_cast<std::uint8_t>((s.scale[i + 4] & 15U) | ((s.min[i + 4] & 15U) << 4U));
  }
}

// `stride`: blocks from one row to the next.
void unpack_block(const PackedBlock& from, PlainBlock* to, std::size_t stride) {
  std::array<Scales, kGroup> of_row;
  for (std::size_t sub = 0; sub < kGroup; ++sub) {
    const Scales of_sub = read_scales(from.scales.data() + sub * kPackedScaleBytes);
    for (std::size_t row = 0; row < kGroup; ++row) {
      of_row[row].scale[sub] = of_sub.scale[row];
      of_row[row].min[sub] = of_sub.min[row];
    }
  }
  for (std::size_t row = 0; row < kGroup; ++row) {
    PlainBlock& block = to[row * stride];
    block.d = from.d[row];
    block.dmin = from.dmin[row];
    write_scales(of_row[row], block.scales.data());
    for (std::size_t at = 0; at < block.values.size(); at += kChunk) {
      std::memcpy(block.values.data() + at, from.values.data() + at * kGroup + row * kChunk, kChunk);
    }
  }
}

void run_unpack(ggml_tensor* dst, int ith, int nth, void*) {
  const ggml_tensor* packed = dst->src[0];
  const std::size_t n_bytes = ggml_nbytes(dst);
  unpack_q4_k({static_cast<const std::byte*>(packed->data), n_bytes}, {static_cast<std::byte*>(dst->data), n_bytes},
              {.n_in = static_cast<std::size_t>(dst->ne[0]), .n_rows = static_cast<std::size_t>(dst->ne[1])}, ith, nth);
}

bool is_repacked_q4_k(const ggml_tensor* weight) {
  return weight->type == GGML_TYPE_Q4_K && weight->buffer != nullptr &&
         std::string_view(ggml_backend_buft_name(ggml_backend_buffer_get_type(weight->buffer))) == "CPU_REPACK";
}

// Below, unpacking costs more than the tiles win.
constexpr std::int64_t kManyRows = 48;

}  // namespace

ggml_tensor* multiply(ggml_context* context, ggml_tensor* weight, ggml_tensor* rows) {
  if (rows->ne[1] >= kManyRows && is_repacked_q4_k(weight)) {
    weight = ggml_custom_4d(context, GGML_TYPE_Q4_K, weight->ne[0], weight->ne[1], 1, 1, &weight, 1, run_unpack,
                            GGML_N_TASKS_MAX, nullptr);
  }
  return ggml_mul_mat(context, weight, rows);
}

bool can_unpack_q4_k(ggml_backend_buffer_type_t memory) {
  constexpr PackedRows kRows = {.n_in = 2 * kBlock, .n_rows = 2 * kGroup};
  const ggml_context_ptr context(ggml_init({2 * ggml_tensor_overhead(), nullptr, true}));
  ggml_tensor* tensor = ggml_new_tensor_2d(context.get(), GGML_TYPE_Q4_K, kRows.n_in, kRows.n_rows);
  const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(context.get(), memory));
  if (buffer == nullptr || tensor->data == nullptr) return false;

  std::vector<std::byte> plain(ggml_nbytes(tensor));
  std::uint32_t state = 1;  // any bytes, all of them different in kind
  for (std::byte& b : plain) b = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24U);
  ggml_backend_tensor_set(tensor, plain.data(), 0, plain.size());
  std::vector<std::byte> unpacked(plain.size());
  unpack_q4_k({static_cast<const std::byte*>(tensor->data), plain.size()}, unpacked, kRows, 0, 1);
  return plain == unpacked;
}

void unpack_q4_k(std::span<const std::byte> packed, std::span<std::byte> plain, const PackedRows& rows, int part,
                 int n_parts) {
  const std::size_t n_blocks = rows.n_in / kBlock;
  EBB_CHECK(rows.n_in % kBlock == 0 && rows.n_rows % kGroup == 0 && packed.size() == plain.size() &&
                plain.size() == rows.n_rows * n_blocks * sizeof(PlainBlock),
            "{} rows of {} values, {} and {} bytes", rows.n_rows, rows.n_in, packed.size(), plain.size());
  const auto* from = reinterpret_cast<const PackedBlock*>(packed.data());
  auto* to = reinterpret_cast<PlainBlock*>(plain.data());
  const std::size_t n_groups = rows.n_rows / kGroup;
  const auto first = [&](int p) { return n_groups * static_cast<std::size_t>(p) / static_cast<std::size_t>(n_parts); };
  for (std::size_t group = first(part); group < first(part + 1); ++group) {
    for (std::size_t block = 0; block < n_blocks; ++block) {
      unpack_block(from[group * n_blocks + block], to + group * kGroup * n_blocks + block, n_blocks);
    }
  }
}

}  // namespace ebb
