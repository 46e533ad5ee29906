// Byte writers and readers: small formats of ours, little-endian, one value behind the other.
//
// A reader is given bytes of anybody: it never reads past them and never believes a count that they cannot hold. What the
// values mean is the caller's. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ebb {

class ByteWriter {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void put_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text))); }
  void put_count(std::size_t n) { put(static_cast<std::uint32_t>(n)); }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what is there; the first read past the end makes ok() false and all later values zero.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    T value{};
    if (take(sizeof value)) std::memcpy(&value, bytes_.data() + at_ - sizeof value, sizeof value);
    return value;
  }
  std::span<const std::byte> get_bytes(std::size_t n_bytes) {
    if (!take(n_bytes)) return {};
    return bytes_.subspan(at_ - n_bytes, n_bytes);
  }
  std::string get_text(std::size_t n_bytes) {
    const std::span<const std::byte> bytes = get_bytes(n_bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // A count of things of at least n_bytes each; 0 when so many cannot follow.
  std::size_t get_count(std::size_t n_bytes) {
    const auto n = get<std::uint32_t>();
    if (n <= (bytes_.size() - at_) / n_bytes) return n;
    ok_ = false;
    return 0;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

 private:
  bool take(std::size_t n_bytes) {
    ok_ = ok_ && n_bytes <= bytes_.size() - at_;
    if (ok_) at_ += n_bytes;
    return ok_;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace ebb
