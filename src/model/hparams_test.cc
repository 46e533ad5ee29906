#include "model/hparams.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/toy_gguf.h"

namespace ebb {
namespace {

Result<Hparams> read(const std::filesystem::path& path) {
  EBB_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path));
  EBB_ASSIGN_OR_RETURN(const Architecture* architecture, get_architecture(file));
  return read_hparams(file, *architecture);
}

Hparams read_ok(const std::filesystem::path& path) {
  Result<Hparams> h = read(path);
  EXPECT_TRUE(h.ok()) << h.status().message();
  return h.ok() ? std::move(h).value() : Hparams{};
}

using Edit = void (*)(gguf_context*);

TEST(hparams, of_every_architecture_are_those_that_were_written) {
  for (const Architecture* architecture : all_architectures()) {
    const ToyGguf toy({.architecture = std::string(architecture->name), .n_layers = 3, .head_dim = 32, .n_vocab = 300});
    const Hparams h = read_ok(toy.path());
    EXPECT_EQ(h.architecture, architecture->name);
    EXPECT_EQ(h.n_vocab, 300);
    EXPECT_EQ(h.n_embd, 64);
    EXPECT_EQ(h.n_layers, 3);
    EXPECT_EQ(h.n_heads, 4);
    EXPECT_EQ(h.n_kv_heads, 2);
    EXPECT_EQ(h.head_dim_k, 32);
    EXPECT_EQ(h.head_dim_v, 32);
    EXPECT_EQ(h.n_rot, 32);
    EXPECT_EQ(h.n_ff, 128);
    EXPECT_EQ(h.n_ctx_train, 2048);
    EXPECT_FLOAT_EQ(h.norm_eps, 1e-5F);
    EXPECT_FLOAT_EQ(h.attention_scale, 1.0F / std::sqrt(32.0F));
    EXPECT_EQ(h.layer_is_sliding, std::vector<bool>(3, false));
  }
}

TEST(hparams, architectures_differ_where_they_should) {
  EXPECT_EQ(arch_llama().rope, RopeKind::kNormal);
  EXPECT_EQ(arch_qwen2().rope, RopeKind::kNeoX);
  EXPECT_EQ(arch_qwen2().qkv_bias, Presence::kOptional);
  EXPECT_FALSE(arch_qwen2().qk_norm);
  EXPECT_TRUE(arch_qwen3().qk_norm);
  EXPECT_TRUE(arch_gemma3().post_norms);
  EXPECT_EQ(arch_gemma3().activation, Activation::kGelu);
  EXPECT_EQ(find_architecture("mamba"), nullptr);
  EXPECT_EQ(architecture_names(), "llama, qwen2, qwen3, gemma3");
}

TEST(hparams, missing_optional_keys_have_their_defaults) {
  const ToyGguf toy({});
  const Hparams h = read_ok(toy.write_with_keys([](gguf_context* g) {
    for (const char* key :
         {"llama.attention.head_count_kv", "llama.attention.key_length", "llama.attention.value_length",
          "llama.rope.dimension_count", "llama.rope.freq_base", "general.name"}) {
      EXPECT_GE(gguf_remove_key(g, key), 0) << key;
    }
  }));
  EXPECT_EQ(h.n_kv_heads, 4);
  EXPECT_EQ(h.head_dim_k, 16);
  EXPECT_EQ(h.n_rot, 16);
  EXPECT_EQ(h.rope_freq_base, 10000.0F);
  EXPECT_EQ(h.rope_scaling, RopeScaling::kNone);
  EXPECT_EQ(h.yarn_attn_factor, 1.0F);
  EXPECT_EQ(h.rope_orig_ctx, 2048);
  EXPECT_EQ(h.name, "");
}

TEST(hparams, linear_scaling_divides_positions_under_both_of_its_names) {
  const ToyGguf toy({.rope_scaling = RopeScaling::kLinear, .rope_factor = 4.0F});
  Hparams h = read_ok(toy.path());
  EXPECT_EQ(h.rope_scaling, RopeScaling::kLinear);
  EXPECT_EQ(h.rope_freq_scale, 0.25F);
  EXPECT_EQ(h.yarn_ext_factor, 0.0F);
  h = read_ok(toy.write_with_keys([](gguf_context* g) {
    gguf_remove_key(g, "llama.rope.scaling.factor");
    gguf_remove_key(g, "llama.rope.scaling.type");
    gguf_set_val_f32(g, "llama.rope.scale_linear", 2.0F);
  }));
  EXPECT_EQ(h.rope_scaling, RopeScaling::kLinear);
  EXPECT_EQ(h.rope_freq_scale, 0.5F);
}

TEST(hparams, yarn_leaves_its_magnitude_to_ggml) {
  const ToyGguf toy({.rope_scaling = RopeScaling::kYarn, .rope_factor = 4.0F, .rope_orig_ctx = 512});
  Hparams h = read_ok(toy.path());
  EXPECT_EQ(h.rope_scaling, RopeScaling::kYarn);
  EXPECT_EQ(h.rope_freq_scale, 0.25F);
  EXPECT_EQ(h.yarn_ext_factor, 1.0F);
  EXPECT_NEAR(h.yarn_attn_factor, 1.0F, 1e-6F);
  EXPECT_EQ(h.rope_orig_ctx, 512);
  h = read_ok(
      toy.write_with_keys([](gguf_context* g) { gguf_set_val_f32(g, "llama.rope.scaling.attn_factor", 1.5F); }));
  EXPECT_NEAR(h.yarn_attn_factor, 1.5F, 1e-6F);
}

TEST(hparams, scaling_of_kind_none_ignores_the_factor) {
  const ToyGguf toy({});
  const Hparams h = read_ok(toy.write_with_keys([](gguf_context* g) {
    gguf_set_val_str(g, "llama.rope.scaling.type", "none");
    gguf_set_val_f32(g, "llama.rope.scaling.factor", 8.0F);
  }));
  EXPECT_EQ(h.rope_freq_scale, 1.0F);
}

TEST(hparams, gemma3_slides_in_five_of_six_layers) {
  const ToyGguf toy({.architecture = "gemma3", .n_layers = 8, .rope_freq_base = 1e6F, .sliding_window = 32});
  const Hparams h = read_ok(toy.path());
  EXPECT_EQ(h.sliding_window, 32);
  EXPECT_EQ(h.layer_is_sliding, (std::vector<bool>{true, true, true, true, true, false, true, true}));
  EXPECT_EQ(h.window(LayerIndex(0)), 32);
  EXPECT_EQ(h.window(LayerIndex(5)), 0);
  EXPECT_EQ(h.freq_base(LayerIndex(0)), 10000.0F);
  EXPECT_EQ(h.freq_base(LayerIndex(5)), 1e6F);
  EXPECT_FLOAT_EQ(h.embedding_scale, 8.0F);
}

TEST(hparams, gemma3_takes_its_pattern_from_the_file) {
  const ToyGguf toy({.architecture = "gemma3", .n_layers = 4, .sliding_window = 32});
  Hparams h = read_ok(
      toy.write_with_keys([](gguf_context* g) { gguf_set_val_u32(g, "gemma3.attention.sliding_window_pattern", 2); }));
  EXPECT_EQ(h.layer_is_sliding, (std::vector<bool>{true, false, true, false}));
  h = read_ok(toy.write_with_keys([](gguf_context* g) {
    const bool flags[] = {false, true, true, false};
    gguf_set_arr_data(g, "gemma3.attention.sliding_window_pattern", GGUF_TYPE_BOOL, flags, 4);
    gguf_set_val_f32(g, "gemma3.rope.freq_base_swa", 500.0F);
    gguf_set_val_f32(g, "gemma3.final_logit_softcapping", 30.0F);
  }));
  EXPECT_EQ(h.layer_is_sliding, (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(h.rope_freq_base_sliding, 500.0F);
  EXPECT_EQ(h.final_logit_softcap, 30.0F);
}

TEST(hparams, gemma3_27b_scales_attention_by_its_width_per_head) {
  const ToyGguf toy({.architecture = "gemma3", .n_layers = 62, .n_embd = 96, .head_dim = 16});
  EXPECT_FLOAT_EQ(read_ok(toy.path()).attention_scale, 1.0F / std::sqrt(24.0F));
}

TEST(hparams, equal_values_per_layer_are_one_value) {
  const ToyGguf toy({});
  const Hparams h = read_ok(toy.write_with_keys([](gguf_context* g) {
    const std::uint32_t n_heads[] = {4, 4};
    gguf_set_arr_data(g, "llama.attention.head_count", GGUF_TYPE_UINT32, n_heads, 2);
  }));
  EXPECT_EQ(h.n_heads, 4);
}

struct Bad {
  const char* what;
  Code code;
  const char* said;  // part of the message
  Edit edit;
};

TEST(hparams, what_cannot_be_served_is_said_in_one_line) {
  const Bad cases[] = {
      {"architecture", Code::kUnsupported, "llama, qwen2, qwen3, gemma3",
       [](gguf_context* g) { gguf_set_val_str(g, "general.architecture", "mam\nba"); }},
      {"no architecture", Code::kDamaged, "general.architecture",
       [](gguf_context* g) { gguf_remove_key(g, "general.architecture"); }},
      {"experts", Code::kUnsupported, "expert_count",
       [](gguf_context* g) { gguf_set_val_u32(g, "llama.expert_count", 8); }},
      {"soft cap", Code::kUnsupported, "attn_logit_softcapping",
       [](gguf_context* g) { gguf_set_val_f32(g, "llama.attn_logit_softcapping", 50.0F); }},
      {"final soft cap", Code::kUnsupported, "final_logit_softcapping",
       [](gguf_context* g) { gguf_set_val_f32(g, "llama.final_logit_softcapping", 30.0F); }},
      {"activation", Code::kUnsupported, "silu",
       [](gguf_context* g) { gguf_set_val_str(g, "llama.hidden_activation", "relu"); }},
      {"not causal", Code::kUnsupported, "embedding model",
       [](gguf_context* g) { gguf_set_val_bool(g, "llama.attention.causal", false); }},
      {"longrope", Code::kUnsupported, "longrope",
       [](gguf_context* g) { gguf_set_val_str(g, "llama.rope.scaling.type", "longrope"); }},
      {"no layers", Code::kDamaged, "llama.block_count",
       [](gguf_context* g) { gguf_remove_key(g, "llama.block_count"); }},
      {"zero layers", Code::kDamaged, "1 to 512", [](gguf_context* g) { gguf_set_val_u32(g, "llama.block_count", 0); }},
      {"too many layers", Code::kDamaged, "1 to 512",
       [](gguf_context* g) { gguf_set_val_u32(g, "llama.block_count", 0xFFFFFFFFU); }},
      {"text for a number", Code::kDamaged, "an integer",
       [](gguf_context* g) { gguf_set_val_str(g, "llama.embedding_length", "64"); }},
      {"heads", Code::kDamaged, "cannot share",
       [](gguf_context* g) { gguf_set_val_u32(g, "llama.attention.head_count_kv", 3); }},
      {"layers that differ", Code::kUnsupported, "head_count_kv",
       [](gguf_context* g) {
         const std::uint32_t n[] = {2, 1};
         gguf_set_arr_data(g, "llama.attention.head_count_kv", GGUF_TYPE_UINT32, n, 2);
       }},
      {"wrong number of layers", Code::kDamaged, "3 values for 2 layers",
       [](gguf_context* g) {
         const std::uint32_t n[] = {2, 2, 2};
         gguf_set_arr_data(g, "llama.attention.head_count_kv", GGUF_TYPE_UINT32, n, 3);
       }},
      {"heads of odd size", Code::kDamaged, "even",
       [](gguf_context* g) { gguf_set_val_u32(g, "llama.attention.key_length", 17); }},
      {"values of another size", Code::kUnsupported, "differ",
       [](gguf_context* g) { gguf_set_val_u32(g, "llama.attention.value_length", 8); }},
      {"partial rotation", Code::kUnsupported, "rotated",
       [](gguf_context* g) { gguf_set_val_u32(g, "llama.rope.dimension_count", 8); }},
      {"base of nothing", Code::kDamaged, "freq_base",
       [](gguf_context* g) { gguf_set_val_f32(g, "llama.rope.freq_base", 0.0F); }},
      {"not a number", Code::kDamaged, "finite",
       [](gguf_context* g) { gguf_set_val_f32(g, "llama.rope.freq_base", NAN); }},
      {"vocabulary", Code::kDamaged, "embeddings",
       [](gguf_context* g) {
         const char* tokens[] = {"a", "b"};
         gguf_set_arr_str(g, "tokenizer.ggml.tokens", tokens, 2);
       }},
      {"parts", Code::kUnsupported, "part 2 of 3",
       [](gguf_context* g) {
         gguf_set_val_u16(g, "split.count", 3);
         gguf_set_val_u16(g, "split.no", 1);
       }},
  };
  const ToyGguf toy({});
  for (const Bad& bad : cases) {
    const std::filesystem::path path = toy.write_with_keys(bad.edit);
    const Status status = read(path).status();
    EXPECT_EQ(status.code(), bad.code) << bad.what << ": " << status.message();
    EXPECT_NE(status.message().find(bad.said), std::string::npos) << bad.what << ": " << status.message();
    EXPECT_TRUE(status.message().starts_with(path.string())) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace ebb
