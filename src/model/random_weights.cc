#include "model/random_weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace ebb {

namespace {

// f32, f16 and bf16 have no blocks; this many of their values stay together where rows allow it.
constexpr std::int64_t kFloatUnit = 32;

std::int64_t unit_of(ggml_type type, std::int64_t n_in) {
  // A power of two in any case, so that the pool holds a power of two of them.
  return ggml_is_quantized(type) ? ggml_blck_size(type) : std::gcd(n_in, kFloatUnit);
}

}  // namespace

std::uint64_t RandomStream::next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

float RandomStream::next_normal() {
  const std::uint64_t bits = next();
  std::int32_t sum = 0;
  for (unsigned i = 0; i < 4; ++i) sum += static_cast<std::int32_t>((bits >> (16U * i)) & 0xFFFFU);
  // Four uniform numbers on 0..65535: mean 131070, standard deviation 65536 / sqrt(3).
  constexpr float kInverseDeviation = 2.64289e-05F;
  return static_cast<float>(sum - 131070) * kInverseDeviation;
}

bool RandomWeights::can_make(ggml_type type, std::int64_t n_in) {
  if (type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16) return true;
  const bool is_made = ggml_is_quantized(type) && type != GGML_TYPE_Q8_1 && type != GGML_TYPE_Q8_K;
  return is_made && n_in % ggml_blck_size(type) == 0;
}

void RandomWeights::begin_tensor(std::int64_t n_in, float spread) {
  EBB_CHECK(can_make(type_, n_in), "{} for rows of {}", ggml_type_name(type_), n_in);
  const std::int64_t n_unit = unit_of(type_, n_in);
  auto [found, is_new] = pools_.try_emplace({n_unit, spread});
  if (is_new) found->second = make_pool(n_unit, spread);
  pool_ = &found->second;
  start_ = random_.next();
  step_ = random_.next() | 1U;
  n_written_ = 0;
}

RandomWeights::Pool RandomWeights::make_pool(std::int64_t n_unit, float spread) {
  std::vector<float> values(kPoolValues);
  for (float& value : values) value = random_.next_normal() * spread;
  Pool pool{.n_unit = n_unit, .n_unit_bytes = ggml_row_size(type_, n_unit), .bytes = {}};
  const std::int64_t n_units = kPoolValues / n_unit;
  pool.bytes.resize(pool.n_unit_bytes * static_cast<std::size_t>(n_units));
  // Some types are only made with importances; all equal is as good as none.
  const std::vector<float> importances(static_cast<std::size_t>(n_unit), 1.0F);
  ggml_quantize_chunk(type_, values.data(), pool.bytes.data(), 0, n_units, n_unit, importances.data());
  return pool;
}

void RandomWeights::write_rows(std::span<std::byte> rows) {
  EBB_CHECK(pool_ != nullptr && rows.size() % pool_->n_unit_bytes == 0, "{} bytes", rows.size());
  const std::uint64_t mask = pool_->n_units() - 1;
  for (std::size_t at = 0; at < rows.size(); at += pool_->n_unit_bytes, ++n_written_) {
    // After one walk each unit has been used; a second walk would repeat whole rows, single draws do not.
    const std::uint64_t unit = n_written_ <= mask ? (start_ + n_written_ * step_) & mask : random_.next() & mask;
    std::memcpy(rows.data() + at, pool_->bytes.data() + unit * pool_->n_unit_bytes, pool_->n_unit_bytes);
  }
}

}  // namespace ebb
