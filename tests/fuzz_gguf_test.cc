// Damaged, hostile and unsupported model files: each must load or be refused in one line, fast and in little memory.
//
// Seeded, so that a failure can be repeated; the case that failed is named by what was done to a healthy toy.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "device/backend.h"
#include "model/model.h"
#include "model/random_weights.h"
#include "model/toy_gguf.h"

namespace ebb {
namespace {

// A file of no more than this...
constexpr std::size_t kToyBytes = 1U << 20U;
// ... may not make the process grow by more than this, nor take longer than that.
#if defined(__SANITIZE_ADDRESS__)
constexpr long kMaxGrowthKb = 512 << 10;  // the sanitizer keeps 256 MB of freed memory to find late uses
#else
constexpr long kMaxGrowthKb = 192 << 10;
#endif
constexpr double kMaxMs = 2000.0;

class FuzzGguf : public testing::Test {
 protected:
  FuzzGguf()
      : backend_(std::move(Backend::open("cpu", 1)).value()),
        toy_({.n_layers = 1,
              .n_embd = 32,
              .n_heads = 2,
              .n_kv_heads = 1,
              .head_dim = 16,
              .n_ff = 32,
              .n_vocab = 264,
              .llama3_factors = true,
              .weight_type = GGML_TYPE_Q4_0}) {
    EBB_CHECK(toy_.bytes().size() < kToyBytes, "{}", toy_.bytes().size());
    peak_kb_ = peak_kb();
  }
  ~FuzzGguf() override { EXPECT_LT(peak_kb() - peak_kb_, kMaxGrowthKb); }

  static long peak_kb() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  }

  // Loads the file, and holds what comes out against what is promised.
  void check(const std::filesystem::path& path, const std::function<std::string()>& what) {
    const Stopwatch watch;
    const Result<std::unique_ptr<Model>> model = Model::load(path, *backend_, {});
    EXPECT_LT(watch.elapsed_ms(), kMaxMs) << what();
    ++n_cases_;
    if (model.ok()) {
      ++n_loaded_;
      return;
    }
    const std::string message = model.status().message();
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << what() << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << what() << ": " << message;
    EXPECT_LT(message.size(), path.string().size() + 400) << what() << ": " << message;
    // Our walk over the header must be at least as strict as gguf.h, which reports in the log only.
    EXPECT_EQ(message.find("ggml refuses"), std::string::npos) << what() << ": " << message;
  }
  void check_bytes(const std::string& bytes, const std::function<std::string()>& what) {
    check(toy_.write(bytes), what);
  }

  std::unique_ptr<Backend> backend_;
  ToyGguf toy_;
  RandomStream random_{20240607};
  long peak_kb_ = 0;
  int n_cases_ = 0;
  int n_loaded_ = 0;
};

TEST_F(FuzzGguf, files_cut_anywhere_are_refused) {
  const std::string& bytes = toy_.bytes();
  const std::size_t n_header = toy_.n_header_bytes();
  for (std::size_t n = 1; n < bytes.size(); n += n < n_header ? 3 : 499) {
    check_bytes(bytes.substr(0, n), [&] { return fmt::format("cut to {} bytes", n); });
  }
  EXPECT_EQ(n_loaded_, 0);
  EXPECT_GT(n_cases_, 1000);
}

TEST_F(FuzzGguf, random_bytes_are_refused) {
  for (int i = 0; i < 1500; ++i) {
    std::string bytes(1 + random_.next() % 4096, '\0');
    for (char& c : bytes) c = static_cast<char>(random_.next());
    // Half of them pretend a bit longer: magic, version, and small counts.
    if (i % 2 == 0 && bytes.size() > 32) {
      const std::array<std::uint64_t, 3> counts{3ULL << 32U, 1 + random_.next() % 3, 1 + random_.next() % 3};
      std::memcpy(bytes.data(), counts.data(), 24);
      std::memcpy(bytes.data(), "GGUF\3\0\0\0", 8);
    }
    check_bytes(bytes, [&] { return fmt::format("random bytes, case {}", i); });
  }
  EXPECT_EQ(n_loaded_, 0);
}

TEST_F(FuzzGguf, headers_with_a_few_other_bytes_load_or_are_refused) {
  const std::size_t n_header = toy_.n_header_bytes();
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = toy_.bytes();
    const std::uint64_t n_changes = 1 + random_.next() % 6;
    for (std::uint64_t k = 0; k < n_changes; ++k) bytes[random_.next() % n_header] = static_cast<char>(random_.next());
    check_bytes(bytes, [&] { return fmt::format("mutation {}", i); });
  }
  EXPECT_GT(n_loaded_, 100) << "most bytes of the header are names of tokens";
  EXPECT_LT(n_loaded_, 3900);
}

TEST_F(FuzzGguf, headers_with_extreme_numbers_anywhere_load_or_are_refused) {
  constexpr std::array<std::uint64_t, 8> kExtremes{0,           1,           0x7FFFFFFF,         0xFFFFFFFF,
                                                   1ULL << 40U, 1ULL << 62U, 0x7FFFFFFFFFFFFFFF, ~0ULL};
  const std::string& healthy = toy_.bytes();
  // The words of the vocabulary all look alike: every place before and after them, some among them.
  const std::size_t vocabulary_begin = healthy.find("tokenizer.ggml.tokens") + 200;
  const std::size_t vocabulary_end = healthy.find("tokenizer.ggml.merges");
  for (std::size_t at = 4; at + 8 < toy_.n_header_bytes(); ++at) {
    if (at > vocabulary_begin && at < vocabulary_end && at % 97 != 0) continue;
    const std::uint64_t value = kExtremes[at % kExtremes.size()];
    for (const std::size_t n_bytes : {4U, 8U}) {
      std::string bytes = healthy;
      std::memcpy(bytes.data() + at, &value, n_bytes);
      check_bytes(bytes, [&] { return fmt::format("{:#x} in {} bytes at {}", value, n_bytes, at); });
    }
  }
  EXPECT_GT(n_cases_, 4000);
}

TEST_F(FuzzGguf, pieces_of_the_header_moved_repeated_or_lost_load_or_are_refused) {
  const std::size_t n_header = toy_.n_header_bytes();
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = toy_.bytes();
    const std::size_t from = random_.next() % n_header;
    const std::size_t to = random_.next() % n_header;
    const std::size_t n = 1 + random_.next() % 64;
    const std::string piece = bytes.substr(from, n);
    if (i % 3 == 0) bytes.erase(from, n);
    if (i % 3 == 1) bytes.insert(to, piece);
    if (i % 3 == 2) bytes.replace(to, n, piece);
    check_bytes(bytes, [&] { return fmt::format("piece, case {}", i); });
  }
}

// Sets `key` to something of each type, extreme where it can be.
std::vector<std::function<void(gguf_context*, const char*)>> values_of_all_types() {
  std::vector<std::function<void(gguf_context*, const char*)>> result;
  for (const std::uint64_t v : {0ULL, 1ULL, 3ULL, 512ULL, 1ULL << 31U, (1ULL << 32U) - 1, 1ULL << 63U, ~0ULL}) {
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_u8(g, k, static_cast<std::uint8_t>(v)); });
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_i16(g, k, static_cast<std::int16_t>(v)); });
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_u32(g, k, static_cast<std::uint32_t>(v)); });
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_i64(g, k, static_cast<std::int64_t>(v)); });
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_u64(g, k, v); });
  }
  for (const double v : {0.0, -1.0, 1e-300, 1e300, 1e38, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_f32(g, k, static_cast<float>(v)); });
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_f64(g, k, v); });
  }
  result.emplace_back([](gguf_context* g, const char* k) { gguf_set_val_bool(g, k, true); });
  for (const char* v : {"", "yarn", "a\nb\xFF", "qwen3"}) {
    result.emplace_back([v](gguf_context* g, const char* k) { gguf_set_val_str(g, k, v); });
  }
  for (const gguf_type type : {GGUF_TYPE_UINT8, GGUF_TYPE_INT32, GGUF_TYPE_FLOAT32, GGUF_TYPE_BOOL, GGUF_TYPE_UINT64}) {
    for (const std::size_t n : {0U, 1U, 64U}) {
      result.emplace_back([type, n](gguf_context* g, const char* k) {
        const std::array<std::uint64_t, 64> zeros{};
        gguf_set_arr_data(g, k, type, zeros.data(), n);
      });
    }
  }
  result.emplace_back([](gguf_context* g, const char* k) {
    std::array<const char*, 2> words{"a", ""};
    gguf_set_arr_str(g, k, words.data(), words.size());
  });
  return result;
}

TEST_F(FuzzGguf, keys_of_every_type_and_size_load_or_are_refused) {
  std::vector<std::string> keys;
  toy_.write_with_keys([&](gguf_context* g) {
    for (std::int64_t i = 0; i < gguf_get_n_kv(g); ++i) keys.emplace_back(gguf_get_key(g, i));
  });
  for (const char* key : {"split.count", "llama.expert_count", "llama.attention.causal", "llama.hidden_activation",
                          "llama.rope.scaling.type", "llama.rope.scaling.factor", "llama.rope.scaling.attn_factor",
                          "llama.rope.scaling.original_context_length", "llama.rope.scale_linear",
                          "llama.rope.dimension_sections", "llama.attention.scale", "llama.final_logit_softcapping"}) {
    keys.emplace_back(key);
  }
  const auto values = values_of_all_types();
  for (const std::string& key : keys) {
    if (key == "general.alignment") continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::filesystem::path path = toy_.write_with_keys([&](gguf_context* g) { values[i](g, key.c_str()); });
      check(path, [&] { return fmt::format("{} = value {}", key, i); });
    }
  }
  EXPECT_GT(n_cases_, 2000);
  EXPECT_GT(n_loaded_, 100);
}

TEST_F(FuzzGguf, sliding_window_keys_of_every_type_load_or_are_refused) {
  const ToyGguf gemma({.architecture = "gemma3",
                       .n_layers = 1,
                       .n_embd = 32,
                       .n_heads = 2,
                       .n_kv_heads = 1,
                       .head_dim = 16,
                       .n_ff = 32,
                       .n_vocab = 264,
                       .sliding_window = 8});
  const auto values = values_of_all_types();
  for (const char* key : {"gemma3.attention.sliding_window", "gemma3.attention.sliding_window_pattern",
                          "gemma3.rope.freq_base_swa", "gemma3.final_logit_softcapping"}) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::filesystem::path path = gemma.write_with_keys([&](gguf_context* g) { values[i](g, key); });
      check(path, [&] { return fmt::format("{} = value {}", key, i); });
    }
  }
}

TEST_F(FuzzGguf, tensors_of_every_type_and_other_shapes_load_or_are_refused) {
  std::vector<std::string> names;
  toy_.write_with_tensors([&](ggml_tensor& t) {
    names.emplace_back(ggml_get_name(&t));
    return true;
  });
  for (const std::string& name : names) {
    for (int i = 0; i < GGML_TYPE_COUNT + 6; ++i) {
      const std::filesystem::path path = toy_.write_with_tensors([&](ggml_tensor& t) {
        if (name != ggml_get_name(&t)) return true;
        const auto type = static_cast<ggml_type>(i);
        if (i < GGML_TYPE_COUNT) {
          if (ggml_blck_size(type) > 0 && t.ne[0] % ggml_blck_size(type) == 0) t.type = type;
          return true;
        }
        const int change = i - GGML_TYPE_COUNT;
        if (change < 4) t.ne[change] = change == 0 ? t.ne[0] * 2 : t.ne[change] + 1;
        if (change == 4) ggml_set_name(&t, "other.weight");
        return change != 5;
      });
      check(path, [&] { return fmt::format("tensor {}, change {}", name, i); });
    }
  }
}

TEST_F(FuzzGguf, arrays_that_claim_more_than_the_file_holds_cost_nothing) {
  const std::size_t at = toy_.bytes().find("tokenizer.ggml.tokens") + 21 + 4;
  for (const std::uint32_t type : {0U, 7U, 8U, 9U, 10U, 12U, 13U, 99U}) {
    for (const std::uint64_t n : {1ULL << 20U, 1ULL << 22U, (1ULL << 22U) + 1, 1ULL << 30U, 1ULL << 61U, ~0ULL}) {
      std::string bytes = toy_.bytes();
      std::memcpy(bytes.data() + at, &type, 4);
      std::memcpy(bytes.data() + at + 4, &n, 8);
      check_bytes(bytes, [&] { return fmt::format("array of {} x type {}", n, type); });
    }
  }
  EXPECT_EQ(n_loaded_, 0);
}

}  // namespace
}  // namespace ebb
