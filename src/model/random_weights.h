// RandomWeights: endless random weights of one ggml type, for random_model.h.
//
// A pool of kPoolValues numbers of a given spread is drawn and quantised once; write_rows() then strings its blocks
// together. Tensors of at most a pool's size get each block once, in another order each. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ggml.h"

namespace ebb {

// Larger: slower for the types that ggml quantises by search (a second per million values). Smaller: more equal blocks.
inline constexpr std::int64_t kPoolValues = 1 << 17;

// SplitMix64: the same numbers on every machine.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Mean 0, variance 1, within +-3.5: the sum of four uniform numbers, scaled. Exact in binary, unlike libm's.
  float next_normal();

 private:
  std::uint64_t state_;
};

class RandomWeights {
 public:
  RandomWeights(ggml_type type, std::uint64_t seed) : type_(type), random_(seed) {}

  [[nodiscard]] ggml_type type() const { return type_; }
  // Whether ggml can make it and rows of n_in hold whole blocks.
  [[nodiscard]] static bool can_make(ggml_type type, std::int64_t n_in);

  // Starts a tensor: rows of n_in numbers with standard deviation `spread`.
  void begin_tensor(std::int64_t n_in, float spread);
  // The next bytes of the tensor; whole rows.
  void write_rows(std::span<std::byte> rows);

 private:
  // Values that stay together, and their bytes.
  struct Pool {
    std::int64_t n_unit = 0;
    std::size_t n_unit_bytes = 0;
    std::vector<std::byte> bytes;
    [[nodiscard]] std::uint64_t n_units() const { return bytes.size() / n_unit_bytes; }
  };
  Pool make_pool(std::int64_t n_unit, float spread);

  ggml_type type_;
  RandomStream random_;
  std::map<std::pair<std::int64_t, float>, Pool> pools_;
  const Pool* pool_ = nullptr;
  // The walk through the pool: unit (start + i * step) mod n_units, a permutation because n_units is a power of two and
  // step odd.
  std::uint64_t start_ = 0;
  std::uint64_t step_ = 1;
  std::uint64_t n_written_ = 0;
};

}  // namespace ebb
