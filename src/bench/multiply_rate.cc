#include "bench/multiply_rate.h"

#include <array>
#include <cstddef>

namespace ebb {
namespace {

struct Multiplier {
  std::string_view instruction;
  double (*run)(std::int64_t n_loops) = nullptr;
};

#if defined(__x86_64__)
Multiplier find_int8() {
  if (__builtin_cpu_supports("avx512vnni")) return {"AVX512-VNNI vpdpbusd", run_int8_avx512vnni};
  if (__builtin_cpu_supports("avx2")) return {"AVX2 vpmaddubsw", run_int8_avx2};
  return {};
}

Multiplier find_bf16() {
  if (__builtin_cpu_supports("avx512bf16")) return {"AVX512-BF16 vdpbf16ps", run_bf16_avx512vnni};
  return {};
}

Multiplier find_f32() {
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512 vfmadd", run_f32_avx512vnni};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"FMA vfmadd", run_f32_avx2};
  return {};
}

Multiplier find_multiplier(MultiplyType type) {
  switch (type) {
    case MultiplyType::kInt8: return find_int8();
    case MultiplyType::kBf16: return find_bf16();
    case MultiplyType::kF32: return find_f32();
  }
  return {};
}
#else
Multiplier find_multiplier(MultiplyType) { return {}; }
#endif

}  // namespace

std::string_view multiply_type_name(MultiplyType type) {
  constexpr std::array<std::string_view, kMultiplyTypes> kNames = {"int8", "bf16", "f32"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view multiply_instruction(MultiplyType type) { return find_multiplier(type).instruction; }

double run_multiplies(MultiplyType type, std::int64_t n_loops) {
  const Multiplier multiplier = find_multiplier(type);
  return multiplier.run == nullptr ? 0.0 : multiplier.run(n_loops);
}

}  // namespace ebb
