// PageMemory: a range of memory of its own, in large pages where the system has them, which spare the translation of addresses.
//
// Its pages are zero, and are there once they are first written. Thread rule: a value that is moved; its bytes are the caller's.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace ebb {

class PageMemory {
 public:
  PageMemory() = default;
  // Nothing where there is no room for it: is_there() says.
  explicit PageMemory(std::size_t n_bytes);
  ~PageMemory();
  PageMemory(PageMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), n_bytes_(std::exchange(other.n_bytes_, 0)) {}
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_bytes_, other.n_bytes_);
    return *this;
  }

  [[nodiscard]] bool is_there() const { return data_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, n_bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t n_bytes_ = 0;
};

}  // namespace ebb
