#include "model/model.h"

#include <string>

#include <gtest/gtest.h>

#include "device/backend.h"
#include "model/toy_gguf.h"

namespace ebb {
namespace {

class ModelTest : public testing::Test {
 protected:
  ModelTest() : backend_(std::move(Backend::open("cpu", 2)).value()) {}

  Hash128 fingerprint(const std::filesystem::path& path) {
    Result<std::unique_ptr<Model>> model = Model::load(path, *backend_, {});
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? model.value()->fingerprint() : Hash128{};
  }

  std::unique_ptr<Backend> backend_;
};

TEST_F(ModelTest, fingerprint_changes_with_what_the_model_computes_and_with_nothing_else) {
  const ToyGguf toy({});
  const Hash128 original = fingerprint(toy.path());
  EXPECT_EQ(fingerprint(ToyGguf({}).path()), original) << "the path is no part of it";
  EXPECT_EQ(fingerprint(toy.write_with_keys([](gguf_context* g) { gguf_set_val_str(g, "general.name", "other"); })),
            original);
  EXPECT_NE(
      fingerprint(toy.write_with_keys([](gguf_context* g) { gguf_set_val_f32(g, "llama.rope.freq_base", 5e5F); })),
      original);
  EXPECT_NE(fingerprint(ToyGguf({.seed = 2}).path()), original);
  EXPECT_NE(fingerprint(ToyGguf({.weight_type = GGML_TYPE_F16}).path()), original);

  std::string bytes = toy.bytes();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  EXPECT_NE(fingerprint(toy.write(bytes)), original);
}

TEST_F(ModelTest, missing_file_is_named) {
  const Status status = Model::load("/no/such/model.gguf", *backend_, {}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(), "/no/such/model.gguf: no such file; check the path");
}

struct RealModel {
  const char* file;
  const char* architecture;
  std::int32_t n_vocab, n_layers, n_heads, n_kv_heads, head_dim;
};

TEST_F(ModelTest, real_models_load_where_the_shared_folder_is_present) {
  const std::filesystem::path folder = std::filesystem::path(EBB_SOURCE_DIR) / ".." / "shared" / "models";
  for (const RealModel& real : {RealModel{"stories260K.gguf", "llama", 512, 5, 8, 4, 8},
                                RealModel{"recall-f16.gguf", "qwen3", 4096, 4, 4, 2, 64}}) {
    if (!std::filesystem::exists(folder / real.file)) continue;
    Result<std::unique_ptr<Model>> loaded = Model::load(folder / real.file, *backend_, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const Hparams& h = loaded.value()->hparams();
    EXPECT_EQ(h.architecture, real.architecture);
    EXPECT_EQ(h.n_vocab, real.n_vocab);
    EXPECT_EQ(h.n_layers, real.n_layers);
    EXPECT_EQ(h.n_heads, real.n_heads);
    EXPECT_EQ(h.n_kv_heads, real.n_kv_heads);
    EXPECT_EQ(h.head_dim_k, real.head_dim);
    EXPECT_GE(loaded.value()->bytes().mapped + loaded.value()->bytes().copied, loaded.value()->file().n_tensor_bytes());
  }
  const std::filesystem::path embedder = folder / "all-minilm-l6-v2-q8_0.gguf";
  if (std::filesystem::exists(embedder)) {
    EXPECT_EQ(Model::load(embedder, *backend_, {}).status().code(), Code::kUnsupported);
  }
}

}  // namespace
}  // namespace ebb
