// ToyHeader: a GGUF header written key by key, so that a test can also write it wrong. For tests only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace ebb {

// A GGUF header under construction; no tensors.
class ToyHeader {
 public:
  ToyHeader& text(std::string_view key, std::string_view value) {
    put_key(key, 8);
    put_text(value);
    return *this;
  }
  ToyHeader& number(std::string_view key, std::uint32_t value) {
    put_key(key, 4);
    put(value);
    return *this;
  }
  ToyHeader& flag(std::string_view key, bool value) {
    put_key(key, 7);
    put(static_cast<std::uint8_t>(value));
    return *this;
  }
  ToyHeader& texts(std::string_view key, const std::vector<std::string>& values) {
    put_array(key, 8, values.size());
    for (const std::string& value : values) put_text(value);
    return *this;
  }
  ToyHeader& numbers(std::string_view key, const std::vector<std::int32_t>& values) {
    put_array(key, 5, values.size());
    for (const std::int32_t value : values) put(value);
    return *this;
  }
  ToyHeader& scores(std::string_view key, const std::vector<float>& values) {
    put_array(key, 6, values.size());
    for (const float value : values) put(value);
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    ToyHeader head;
    head.body_ = "GGUF";
    head.put(std::uint32_t{3});
    head.put(std::uint64_t{0});
    head.put(n_keys_);
    std::string all = head.body_ + body_;
    all.resize((all.size() + 31) / 32 * 32);  // the (empty) tensor data begins aligned
    return all;
  }

 private:
  template <class T>
  void put(T value) {
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view value) {
    put(static_cast<std::uint64_t>(value.size()));
    body_ += value;
  }
  void put_key(std::string_view key, std::uint32_t type) {
    put_text(key);
    put(type);
    ++n_keys_;
  }
  void put_array(std::string_view key, std::uint32_t type, std::size_t n) {
    put_key(key, 9);
    put(type);
    put(static_cast<std::uint64_t>(n));
  }

  std::string body_;
  std::uint64_t n_keys_ = 0;
};

// Removes its file when it goes.
class ToyFile {
 public:
  explicit ToyFile(const std::string& bytes) {
    static int n_files = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("ebb-toy-" + std::to_string(getpid()) + "-" + std::to_string(n_files++) + ".gguf");
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~ToyFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ToyFile(const ToyFile&) = delete;
  ToyFile& operator=(const ToyFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ebb
