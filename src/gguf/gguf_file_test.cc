#include "gguf/gguf_file.h"

#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "ggml-cpp.h"

#include "base/toy_rounds.h"
#include "gguf/toy_header.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

// A file with a few keys and three tensors, written by ggml itself.
std::string written_by_ggml(const std::function<void(gguf_context*)>& add_keys = {}) {
  const gguf_context_ptr gguf(gguf_init_empty());
  gguf_set_val_str(gguf.get(), "general.architecture", "llama");
  gguf_set_val_u32(gguf.get(), "llama.block_count", 2);
  const char* words[] = {"a", "", "long word"};
  gguf_set_arr_str(gguf.get(), "words", words, 3);
  if (add_keys) add_keys(gguf.get());
  const ggml_context_ptr context(
      ggml_init({.mem_size = 8 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  std::size_t n_data_bytes = 0;
  const auto add_tensor = [&](const char* name, ggml_type type, std::int64_t n_rows) {
    ggml_tensor* tensor = ggml_new_tensor_2d(context.get(), type, 64, n_rows);
    ggml_set_name(tensor, name);
    gguf_add_tensor(gguf.get(), tensor);
    n_data_bytes += GGML_PAD(ggml_nbytes(tensor), gguf_get_alignment(gguf.get()));
  };
  add_tensor("small", GGML_TYPE_F32, 1);
  add_tensor("codes", GGML_TYPE_Q8_0, 3);
  add_tensor("halves", GGML_TYPE_F16, 128);
  std::string bytes(gguf_get_meta_size(gguf.get()), '\0');
  gguf_get_meta_data(gguf.get(), bytes.data());
  return bytes + std::string(n_data_bytes, '\0');
}

Result<GgufFile> open(const std::string& bytes) {
  const ToyFile file(bytes);
  return GgufFile::open(file.path());
}

TEST(GgufFile, gives_keys_in_the_types_that_were_asked_for) {
  Result<GgufFile> file = open(written_by_ggml([](gguf_context* g) {
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
  EXPECT_EQ(file->find_array_length("words"), 3U);
  EXPECT_EQ(file->find_strings("words").value(), (std::vector<std::string_view>{"a", "", "long word"}));
  EXPECT_EQ(file->find_array_length("x.empty"), 0U);
  EXPECT_EQ(file->find_array_length("x.i8"), std::nullopt);
  EXPECT_EQ(file->find_int("no.such").value(), std::nullopt);

  EXPECT_EQ(file->find_strings("general.architecture").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_strings("x.i16s").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_int("x.i16s").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_int("general.architecture").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_float("x.i8").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_bool("x.i8").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_string("words").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_ints("words").status().code(), Code::kDamaged);
  EXPECT_EQ(file->find_ints("x.empty").status().code(), Code::kDamaged);
}

TEST(GgufFile, reads_texts_up_to_their_first_zero_byte) {
  EXPECT_EQ(open(ToyHeader().text("key", std::string("a\0b", 3)).bytes())->find_string("key").value(), "a");
}

TEST(GgufFile, knows_its_tensors_and_where_they_lie_as_ggml_does) {
  const std::string bytes = written_by_ggml();
  const gguf_context_ptr twin(gguf_init_from_buffer(bytes.data(), bytes.size(), {.no_alloc = true, .ctx = nullptr}));
  Result<GgufFile> file = open(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors().size(), 3U);
  for (std::int64_t i = 0; i < 3; ++i) {
    const TensorInfo& tensor = file->tensors()[static_cast<std::size_t>(i)];
    EXPECT_EQ(tensor.name, gguf_get_tensor_name(twin.get(), i));
    EXPECT_EQ(tensor.type, gguf_get_tensor_type(twin.get(), i));
    EXPECT_EQ(tensor.n_bytes, gguf_get_tensor_size(twin.get(), i));
    EXPECT_EQ(tensor.file_offset, gguf_get_data_offset(twin.get()) + gguf_get_tensor_offset(twin.get(), i));
  }
  const TensorInfo* halves = file->find_tensor("halves");
  ASSERT_NE(halves, nullptr);
  EXPECT_EQ(halves->shape_text(), "64 x 128");
  EXPECT_EQ(file->find_tensor("small")->shape_text(), "64");
  EXPECT_EQ(file->bytes_of(*halves).size(), 64U * 128U * 2U);
  EXPECT_EQ(file->find_tensor("other"), nullptr);
  EXPECT_EQ(file->n_parameters(), 64 * (1 + 3 + 128));
}

std::string patched(std::string bytes, std::size_t at, std::uint64_t value, std::size_t n_bytes) {
  std::memcpy(bytes.data() + at, &value, n_bytes);
  return bytes;
}

TEST(GgufFile, names_the_damage) {
  const std::string bytes = written_by_ggml();
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
      {bytes.substr(0, 27), Code::kDamaged, "inside its header, at byte 27"},
      {bytes.substr(0, bytes.size() - 40), Code::kDamaged, "cut short"},
  };
  for (const auto& bad : cases) {
    const Status status = open(bad.bytes).status();
    EXPECT_EQ(status.code(), bad.code) << bad.said << ": " << status.message();
    EXPECT_NE(status.message().find(bad.said), std::string::npos) << status.message();
  }
}

// The untouched file with one more key in front: its name, then type and value as bytes.
std::string with_key(const std::string& name, const std::string& type_and_value) {
  const std::string bytes = written_by_ggml();
  std::uint64_t n_keys = 0;
  std::memcpy(&n_keys, bytes.data() + 16, 8);
  const std::uint64_t length = name.size();
  std::string entry(reinterpret_cast<const char*>(&length), 8);
  return patched(bytes, 16, n_keys + 1, 8).insert(24, entry + name + type_and_value);
}

TEST(GgufFile, refuses_keys_that_appear_twice) {
  const Status status = open(with_key("llama.block_count", std::string("\0\0\0\0\x07", 5))).status();
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_NE(status.message().find("'llama.block_count' appears twice"), std::string::npos) << status.message();
}

TEST(GgufFile, refuses_impossible_alignments) {
  for (const std::uint32_t alignment : {0U, 1U, 24U, 1U << 31U}) {
    const std::string value = std::string("\x04\0\0\0", 4) + std::string(reinterpret_cast<const char*>(&alignment), 4);
    const Status status = open(with_key("general.alignment", value)).status();
    EXPECT_EQ(status.code(), Code::kDamaged) << alignment;
    EXPECT_NE(status.message().find("alignment"), std::string::npos) << status.message();
  }
}

// Every accessor of a file that opened, whatever it is asked.
void use(const GgufFile& file) {
  for (const std::string key : {"general.architecture", "llama.block_count", "words", "general.alignment"}) {
    (void)file.find_int(key);
    (void)file.find_float(key);
    (void)file.find_bool(key);
    (void)file.find_string(key);
    (void)file.find_ints(key);
    if (const auto texts = file.find_strings(key); texts.ok() && texts->has_value()) {
      for (const std::string_view text : **texts) (void)printable(text);
    }
  }
  for (const TensorInfo& tensor : file.tensors()) EXPECT_EQ(file.bytes_of(tensor).size(), tensor.n_bytes);
}

TEST(GgufFileRandom, survives_cuts_and_mutations) {
  const std::string whole = written_by_ggml();
  const std::size_t n_header_bytes = whole.size() - 64 * 4 - 3 * 96 - 64 * 128 * 2;
  for (std::size_t n = 0; n < n_header_bytes; ++n) EXPECT_FALSE(open(whole.substr(0, n)).ok()) << n;
  int n_opened = 0;
  for (RandomRounds rounds(3000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    std::string bytes = whole;
    for (auto n = 1 + random() % 4; n > 0; --n) {
      char& byte = bytes[random() % n_header_bytes];
      byte = random() % 2 == 0 ? static_cast<char>(random()) : static_cast<char>(byte ^ (1 << random() % 8));
    }
    const Result<GgufFile> file = open(bytes);
    if (!file.ok()) continue;
    ++n_opened;
    use(*file);
  }
  EXPECT_GT(n_opened, 100);  // or the mutations would test refusals only
}

TEST(GgufFile, keeps_messages_on_one_line_whatever_names_a_file_holds) {
  EXPECT_EQ(printable("a\nb\x01\xFF"), "a?b??");
  EXPECT_EQ(printable(std::string(100, 'x')).size(), 67U);
}

}  // namespace
}  // namespace ebb
