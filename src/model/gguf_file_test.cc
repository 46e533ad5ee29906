#include "model/gguf_file.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "model/gguf_scan.h"
#include "model/toy_gguf.h"

namespace ebb {
namespace {

TEST(gguf_file, gives_keys_in_the_types_that_were_asked_for) {
  const ToyGguf toy({});
  Result<GgufFile> file = GgufFile::open(toy.write_with_keys([](gguf_context* g) {
    gguf_set_val_i8(g, "x.i8", -3);
    gguf_set_val_u64(g, "x.u64", ~0ULL);
    gguf_set_val_f64(g, "x.f64", 0.25);
    gguf_set_val_bool(g, "x.bool", true);
    const std::int16_t values[] = {1, -2};
    gguf_set_arr_data(g, "x.i16s", GGUF_TYPE_INT16, values, 2);
    gguf_set_arr_data(g, "x.empty", GGUF_TYPE_FLOAT32, nullptr, 0);
  }));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->find_int("x.i8").value(), -3);
  EXPECT_EQ(file->find_int("x.u64").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(file->find_float("x.f64").value(), 0.25);
  EXPECT_EQ(file->find_bool("x.bool").value(), true);
  EXPECT_EQ(file->find_ints("x.i16s").value(), (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(file->find_ints("x.i8").value(), (std::vector<std::int64_t>{-3}));
  EXPECT_EQ(file->find_string("general.architecture").value(), "llama");
  EXPECT_EQ(file->find_array_length("tokenizer.ggml.tokens"), 320U);
  EXPECT_EQ(file->find_array_length("x.empty"), 0U);
  EXPECT_EQ(file->find_array_length("x.i8"), std::nullopt);
  EXPECT_EQ(file->find_int("no.such").value(), std::nullopt);

  EXPECT_EQ(file->find_int("x.i16s").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_int("general.architecture").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_float("x.i8").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_bool("x.i8").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_string("tokenizer.ggml.tokens").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_ints("tokenizer.ggml.tokens").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_ints("x.empty").status().code(), Code::kDamaged);
}

TEST(gguf_file, knows_its_tensors_and_where_they_lie) {
  const ToyGguf toy({});
  Result<GgufFile> file = GgufFile::open(toy.path());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors().size(), 3U + 2U * 9U);
  const TensorInfo* down = file->find_tensor("blk.1.ffn_down.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape_text(), "128 x 64");
  EXPECT_EQ(down->n_bytes, 128U * 64U * 4U);
  EXPECT_EQ(file->bytes_of(*down).size(), down->n_bytes);
  EXPECT_EQ(file->find_tensor("blk.2.ffn_down.weight"), nullptr);
  EXPECT_EQ(file->n_tensor_bytes(), static_cast<std::size_t>(file->n_parameters()) * 4U);
}

std::string patched(std::string bytes, std::size_t at, std::uint64_t value, std::size_t n_bytes) {
  std::memcpy(bytes.data() + at, &value, n_bytes);
  return bytes;
}

TEST(gguf_file, damage_is_named) {
  const ToyGguf toy({});
  const std::string& bytes = toy.bytes();
  const struct {
    std::string bytes;
    Code code;
    const char* said;
  } cases[] = {
      {"GGU", Code::kDamaged, "is not a GGUF file"},
      {"not a model", Code::kDamaged, "is not a GGUF file"},
      {"GGUF", Code::kDamaged, "inside its header"},
      {patched(bytes, 4, 1, 4), Code::kUnsupported, "version 1"},
      {patched(bytes, 4, 9, 4), Code::kUnsupported, "version 9"},
      {patched(bytes, 4, 3U << 24U, 4), Code::kUnsupported, "other byte order"},
      {patched(bytes, 8, 1ULL << 62U, 8), Code::kDamaged, "tensors"},
      {patched(bytes, 16, ~0ULL, 8), Code::kDamaged, "keys"},
      {patched(bytes, 24, 1ULL << 40U, 8), Code::kDamaged, "string of"},
      {bytes.substr(0, 100), Code::kDamaged, "100"},
      {bytes.substr(0, bytes.size() - 40), Code::kDamaged, "cut short"},
  };
  for (const auto& bad : cases) {
    const Status status = GgufFile::open(toy.write(bad.bytes)).status();
    EXPECT_EQ(status.code(), bad.code) << bad.said << ": " << status.message();
    EXPECT_NE(status.message().find(bad.said), std::string::npos) << status.message();
  }
}

// The untouched file with one more key in front: its name, then type and value as bytes.
std::string with_key(const ToyGguf& toy, const std::string& name, const std::string& type_and_value) {
  std::string bytes = toy.bytes();
  std::uint64_t n_keys = 0;
  std::memcpy(&n_keys, bytes.data() + 16, 8);
  const std::uint64_t length = name.size();
  std::string entry(reinterpret_cast<const char*>(&length), 8);
  return patched(bytes, 16, n_keys + 1, 8).insert(24, entry + name + type_and_value);
}

TEST(gguf_file, keys_that_appear_twice_are_refused) {
  const ToyGguf toy({});
  const Status status =
      GgufFile::open(toy.write(with_key(toy, "llama.block_count", std::string("\0\0\0\0\x07", 5)))).status();
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_NE(status.message().find("'llama.block_count' appears twice"), std::string::npos) << status.message();
}

TEST(gguf_file, impossible_alignments_are_refused) {
  const ToyGguf toy({});
  for (const std::uint32_t alignment : {0U, 1U, 24U, 1U << 31U}) {
    const std::string value = std::string("\x04\0\0\0", 4) + std::string(reinterpret_cast<const char*>(&alignment), 4);
    const Status status = GgufFile::open(toy.write(with_key(toy, "general.alignment", value))).status();
    EXPECT_EQ(status.code(), Code::kDamaged) << alignment;
    EXPECT_NE(status.message().find("alignment"), std::string::npos) << status.message();
  }
}

TEST(gguf_file, messages_stay_on_one_line_whatever_names_a_file_holds) {
  EXPECT_EQ(printable("a\nb\x01\xFF"), "a?b??");
  EXPECT_EQ(printable(std::string(100, 'x')).size(), 67U);
}

}  // namespace
}  // namespace ebb
