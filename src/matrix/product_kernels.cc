#include "matrix/product_kernels.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "matrix/product_kernels_body.h"

namespace ebb {
namespace {

struct Lanes {
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kRowsTogether = 1;
  using Floats [[gnu::vector_size(16)]] = float;
  using Ints [[gnu::vector_size(16)]] = std::int32_t;
  using Bytes [[gnu::vector_size(16)]] = std::uint8_t;

  template <class T>
  static T read(const void* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  static Bytes load(const void* p) { return read<Bytes>(p); }
  static Floats load(const float* p) { return read<Floats>(p); }
  static Floats repeated(float x) { return Floats{} + x; }
  static Floats of_halves(const std::byte* p) {
    Floats x;
    for (std::size_t i = 0; i < kLanes; ++i) x[i] = half_to_float(read<std::uint16_t>(p + 2 * i));
    return x;
  }
  static Floats of_upper_halves(const std::byte* p) {
    Floats x;
    for (std::size_t i = 0; i < kLanes; ++i) {
      x[i] = std::bit_cast<float>(std::uint32_t{read<std::uint16_t>(p + 2 * i)} << 16);
    }
    return x;
  }
  static Floats of_signed(const std::uint8_t* p) {
    Floats x;
    for (std::size_t i = 0; i < kLanes; ++i) x[i] = static_cast<float>(static_cast<std::int8_t>(p[i]));
    return x;
  }
  static Ints widened(const std::uint8_t* p) {
    Ints x;
    for (std::size_t i = 0; i < kLanes; ++i) x[i] = p[i];
    return x;
  }
  static Bytes looked_up(const std::uint8_t* table, Bytes codes) {
    for (std::size_t i = 0; i < sizeof codes; ++i) codes[i] = table[codes[i]];
    return codes;
  }
  static Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
  static Floats fused(Floats a, Floats b, Floats c) {
    for (std::size_t i = 0; i < kLanes; ++i) c[i] = std::fma(a[i], b[i], c[i]);
    return c;
  }
  template <std::int32_t kOffset>
  static Ints begin(std::int32_t minus_sum) {
    return Ints{} + kOffset * minus_sum;
  }
  template <std::int32_t kOffset>
  static Ints add_products(Ints sum, Bytes codes, std::int32_t quad) {
    const Ints four = Ints(codes);
    return sum + (four & 0xFF) * ((quad << 24) >> 24) + ((four >> 8) & 0xFF) * ((quad << 16) >> 24) +
           ((four >> 16) & 0xFF) * ((quad << 8) >> 24) + ((four >> 24) & 0xFF) * (quad >> 24);
  }
  static Ints nearest(Floats x) {
    Ints n;
    for (std::size_t i = 0; i < kLanes; ++i) n[i] = static_cast<std::int32_t>(std::nearbyint(x[i]));
    return n;
  }
  static void narrowed(Ints x, std::int8_t* p) {
    for (std::size_t i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(x[i]);
  }
  static std::int32_t sum(Ints x) { return x[0] + x[1] + x[2] + x[3]; }
};

}  // namespace

const ProductKernels kPortableProductKernels = ProductLoops<Lanes>::all();

}  // namespace ebb
