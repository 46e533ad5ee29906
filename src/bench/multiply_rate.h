// Multiply-adds in registers alone, as many as one thread of this processor can do: what a product of matrices is held against once
// its bytes are no longer what it waits for.
//
// It knows no memory, no threads and no clock: bench/peak.h runs it on all threads at once. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace ebb {

// Of what the numbers are: products of quantised weights are summed from bytes, those of float weights from floats or bf16.
enum class MultiplyType : std::uint8_t { kInt8, kBf16, kF32 };
inline constexpr std::size_t kMultiplyTypes = 3;
// "int8"
[[nodiscard]] std::string_view multiply_type_name(MultiplyType type);

// The instructions that the processor does most multiply-adds of that type with, of those that kernels of this tree or of its peers
// use: "AVX512-VNNI vpdpbusd"; empty where it has none that is known here.
[[nodiscard]] std::string_view multiply_instruction(MultiplyType type);
// n_loops times some dozens of independent instructions. The operations done (2 for each multiply-add); 0 where
// multiply_instruction() is empty.
[[nodiscard]] double run_multiplies(MultiplyType type, std::int64_t n_loops);

// Only where the processor has AVX2 and FMA; AVX-512F; AVX512-VNNI; AVX512-BF16.
double run_int8_avx2(std::int64_t n_loops);
double run_f32_avx2(std::int64_t n_loops);
double run_int8_avx512vnni(std::int64_t n_loops);
double run_bf16_avx512vnni(std::int64_t n_loops);
double run_f32_avx512vnni(std::int64_t n_loops);

}  // namespace ebb
