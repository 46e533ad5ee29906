// ToyGguf: a tiny random model as bytes, for tests that break it before loading it. Used by tests only.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"
#include <unistd.h>

#include "base/check.h"
#include "model/random_model.h"

namespace ebb {

class ToyGguf {
 public:
  explicit ToyGguf(const RandomModelSpec& spec)
      : folder_(std::filesystem::temp_directory_path() /
                ("ebb_toy_" + std::to_string(getpid()) + "_" + std::to_string(++n_folders()))) {
    std::filesystem::create_directories(folder_);
    const Status status = write_random_model(spec, path());
    EBB_CHECK(status.ok(), "{}", status.message());
    std::ifstream in(path(), std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  ~ToyGguf() { std::filesystem::remove_all(folder_); }
  ToyGguf(const ToyGguf&) = delete;
  ToyGguf& operator=(const ToyGguf&) = delete;

  [[nodiscard]] std::filesystem::path path() const { return folder_ / "toy.gguf"; }
  // The untouched file.
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::size_t n_header_bytes() const { return gguf_get_data_offset(parse().get()); }

  // Replaces the file.
  std::filesystem::path write(const std::string& bytes) const {
    std::filesystem::remove(path());  // ext4 waits for the disk when a file is cut to nothing and written again
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
    return path();
  }

  // Replaces the file by the untouched one with other keys.
  std::filesystem::path write_with_keys(const std::function<void(gguf_context*)>& edit) const {
    const gguf_context_ptr gguf = parse();
    const std::size_t old_offset = gguf_get_data_offset(gguf.get());
    edit(gguf.get());
    return write(header_of(gguf.get()) + bytes_.substr(old_offset));
  }

  // Replaces the file by one in which each tensor of `from` has the bytes of the one of `to` in its place; both are there.
  std::filesystem::path write_with_same(const std::vector<std::pair<std::string, std::string>>& from_to) const {
    const gguf_context_ptr gguf = parse();
    const auto place = [&](const std::string& name) {
      const std::int64_t id = gguf_find_tensor(gguf.get(), name.c_str());
      EBB_CHECK(id >= 0, "a toy without {}", name);
      return std::pair(gguf_get_data_offset(gguf.get()) + gguf_get_tensor_offset(gguf.get(), id),
                       gguf_get_tensor_size(gguf.get(), id));
    };
    std::string bytes = bytes_;
    for (const auto& [from, to] : from_to) {
      const auto [at, n] = place(to);
      EBB_CHECK(place(from).second == n, "{} is not as large as {}", from, to);
      bytes.replace(place(from).first, n, bytes_, at, n);
    }
    return write(bytes);
  }

  // Replaces the file by one with other tensors, all zero; `edit` changes a description, or drops it (returns false).
  std::filesystem::path write_with_tensors(const std::function<bool(ggml_tensor&)>& edit) const {
    const gguf_context_ptr old = parse();
    const gguf_context_ptr gguf(gguf_init_empty());
    gguf_set_kv(gguf.get(), old.get());
    std::size_t n_data = 0;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(old.get()); ++i) {
      const ggml_context_ptr context(ggml_init({2 * ggml_tensor_overhead(), nullptr, true}));
      ggml_tensor* tensor = ggml_new_tensor(context.get(), gguf_get_tensor_type(old.get(), i), GGML_MAX_DIMS,
                                            gguf_get_tensor_ne(old.get(), i));
      ggml_set_name(tensor, gguf_get_tensor_name(old.get(), i));
      if (!edit(*tensor)) continue;
      ggml_tensor* edited = ggml_new_tensor(context.get(), tensor->type, GGML_MAX_DIMS, tensor->ne);
      ggml_set_name(edited, tensor->name);
      gguf_add_tensor(gguf.get(), edited);
      n_data += GGML_PAD(ggml_nbytes(edited), gguf_get_alignment(gguf.get()));
    }
    return write(header_of(gguf.get()) + std::string(n_data, '\0'));
  }

 private:
  static int& n_folders() {
    static int n = 0;
    return n;
  }
  [[nodiscard]] gguf_context_ptr parse() const {
    return gguf_context_ptr(gguf_init_from_buffer(bytes_.data(), bytes_.size(), {true, nullptr}));
  }
  static std::string header_of(gguf_context* gguf) {
    std::string header(gguf_get_meta_size(gguf), '\0');
    gguf_get_meta_data(gguf, header.data());
    return header;
  }

  std::filesystem::path folder_;
  std::string bytes_;
};

}  // namespace ebb
