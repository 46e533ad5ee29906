// 128-bit XXH3 hashes: names and checksums. Not for secrets.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace ebb {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
  // 32 lower-case hexadecimal digits, high half first.
  [[nodiscard]] std::string hex() const;
};

[[nodiscard]] Hash128 hash_bytes(std::span<const std::byte> bytes);
// The hash of the words' little-endian bytes, in order.
[[nodiscard]] Hash128 hash_words(std::initializer_list<std::uint64_t> words);

// Hashes several pieces as one sequence. Fixed-size values go in by their little-endian bytes; variable-length ones
// are preceded by their length, so that ("ab","c") and ("a","bc") differ.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  Hasher& add(std::uint64_t value);
  Hasher& add(const Hash128& value);
  Hasher& add_bytes(std::span<const std::byte> bytes);
  Hasher& add_text(std::string_view text);
  // Without their length: for formats whose size is hashed already. However the bytes are cut, the hash is one and the
  // same, and that of hash_bytes() when nothing else was added.
  Hasher& add_raw_bytes(std::span<const std::byte> bytes);
  [[nodiscard]] Hash128 finish() const;

 private:
  struct State;
  State* state_;
};

}  // namespace ebb
