// Random models as libllama sees them: it loads what we write, reads the same hparams, and computes sensible logits.
#include "model/random_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "llama-cpp.h"
#include "llama.h"
#include <gtest/gtest.h>

#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/toy_gguf.h"

namespace ebb {
namespace {

void be_silent(ggml_log_level, const char*, void*) {}

class RandomModelTest : public testing::Test {
 protected:
  RandomModelTest() {
    llama_log_set(be_silent, nullptr);
    llama_backend_init();
  }

  static llama_model_ptr load(const ToyGguf& toy) {
    return llama_model_ptr(llama_model_load_from_file(toy.path().c_str(), llama_model_default_params()));
  }

  static llama_context_ptr context_for(llama_model* model) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_threads = params.n_threads_batch = 2;
    return llama_context_ptr(llama_init_from_model(model, params));
  }

  // Logits after the prompt.
  static std::vector<float> logits_after(llama_context* context, std::vector<llama_token> prompt) {
    if (llama_decode(context, llama_batch_get_one(prompt.data(), static_cast<std::int32_t>(prompt.size()))) != 0)
      return {};
    const float* logits = llama_get_logits_ith(context, -1);
    const std::int32_t n = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
    return {logits, logits + n};
  }
};

std::vector<RandomModelSpec> specs() {
  return {
      {.architecture = "llama"},
      {.architecture = "llama", .tied = true, .biases = true},
      {.architecture = "llama", .rope_freq_base = 5e5F, .rope_orig_ctx = 256, .llama3_factors = true},
      {.architecture = "llama", .n_kv_heads = 1, .rope_scaling = RopeScaling::kLinear, .rope_factor = 2.0F},
      {.architecture = "llama",
       .n_embd = 256,
       .n_heads = 8,
       .head_dim = 32,
       .n_ff = 512,
       .weight_type = GGML_TYPE_Q4_K},
      {.architecture = "qwen2", .rope_scaling = RopeScaling::kYarn, .rope_factor = 4.0F, .rope_orig_ctx = 64},
      {.architecture = "qwen3", .head_dim = 32, .tied = true},
      {.architecture = "gemma3", .n_layers = 7, .head_dim = 32, .tied = true, .sliding_window = 16},
      {.architecture = "gemma3"},
  };
}

TEST_F(RandomModelTest, of_every_architecture_loads_in_libllama_and_gives_logits_far_from_uniform) {
  for (const RandomModelSpec& spec : specs()) {
    const ToyGguf toy(spec);
    const llama_model_ptr model = load(toy);
    ASSERT_NE(model, nullptr) << spec.architecture;
    const llama_context_ptr context = context_for(model.get());
    ASSERT_NE(context, nullptr) << spec.architecture;
    const std::vector<float> logits = logits_after(context.get(), {72, 105, 259, 33, 84, 100, 64});
    ASSERT_EQ(logits.size(), static_cast<std::size_t>(spec.n_vocab)) << spec.architecture;
    double sum = 0.0, squares = 0.0;
    for (const float logit : logits) {
      ASSERT_TRUE(std::isfinite(logit)) << spec.architecture;
      sum += static_cast<double>(logit);
      squares += static_cast<double>(logit) * static_cast<double>(logit);
    }
    const double mean = sum / static_cast<double>(logits.size());
    const double spread = std::sqrt(squares / static_cast<double>(logits.size()) - mean * mean);
    EXPECT_GT(spread, 1.0) << spec.architecture;
    EXPECT_LT(spread, 20.0) << spec.architecture;

    const std::vector<float> later = logits_after(context.get(), {90});
    EXPECT_NE(later, logits) << spec.architecture;
  }
}

TEST_F(RandomModelTest, has_the_sizes_in_libllama_that_ebb_reads) {
  for (const RandomModelSpec& spec : specs()) {
    const ToyGguf toy(spec);
    const llama_model_ptr model = load(toy);
    ASSERT_NE(model, nullptr);
    Result<GgufFile> file = GgufFile::open(toy.path());
    ASSERT_TRUE(file.ok()) << file.status().message();
    Result<Hparams> read = read_hparams(*file, *find_architecture(spec.architecture));
    ASSERT_TRUE(read.ok()) << read.status().message();
    const Hparams& h = *read;
    EXPECT_EQ(llama_model_n_layer(model.get()), h.n_layers);
    EXPECT_EQ(llama_model_n_embd(model.get()), h.n_embd);
    EXPECT_EQ(llama_model_n_head(model.get()), h.n_heads);
    EXPECT_EQ(llama_model_n_head_kv(model.get()), h.n_kv_heads);
    EXPECT_EQ(llama_model_n_ctx_train(model.get()), h.n_ctx_train);
    EXPECT_EQ(llama_model_n_swa(model.get()), h.sliding_window);
    EXPECT_EQ(llama_vocab_n_tokens(llama_model_get_vocab(model.get())), h.n_vocab);
    EXPECT_EQ(llama_model_rope_freq_scale_train(model.get()), h.rope_freq_scale);
    const bool is_neox = find_architecture(spec.architecture)->rope == RopeKind::kNeoX;
    EXPECT_EQ(llama_model_rope_type(model.get()), is_neox ? LLAMA_ROPE_TYPE_NEOX : LLAMA_ROPE_TYPE_NORM);
    EXPECT_EQ(llama_model_n_params(model.get()), static_cast<std::uint64_t>(file->n_parameters()));
  }
}

TEST_F(RandomModelTest, tokenises_text_and_gives_it_back) {
  const ToyGguf toy({});
  const llama_model_ptr model = load(toy);
  ASSERT_NE(model, nullptr);
  const llama_vocab* vocab = llama_model_get_vocab(model.get());
  const std::string text = "in the \xC3\xBC rain<|im_end|>";
  std::vector<llama_token> tokens(64);
  tokens.resize(static_cast<std::size_t>(std::max(
      0, llama_tokenize(vocab, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(), 64, true, true))));
  ASSERT_FALSE(tokens.empty());
  EXPECT_LT(tokens.size(), text.size());
  EXPECT_EQ(tokens.back(), llama_vocab_eos(vocab));
  std::string back(128, '\0');
  back.resize(static_cast<std::size_t>(
      std::max(0, llama_detokenize(vocab, tokens.data(), static_cast<std::int32_t>(tokens.size()), back.data(), 128,
                                   false, true))));
  EXPECT_EQ(back, text);
  EXPECT_NE(llama_model_chat_template(model.get(), nullptr), nullptr);
}

TEST_F(RandomModelTest, of_the_same_spec_has_the_same_bytes) {
  const RandomModelSpec spec{.weight_type = GGML_TYPE_Q8_0};
  EXPECT_EQ(ToyGguf(spec).bytes(), ToyGguf(spec).bytes());
  RandomModelSpec other = spec;
  other.seed = 2;
  EXPECT_NE(ToyGguf(spec).bytes(), ToyGguf(other).bytes());
}

TEST_F(RandomModelTest, has_other_types_where_they_are_asked_for) {
  RandomModelSpec spec{
      .n_embd = 256, .n_heads = 8, .n_kv_heads = 2, .head_dim = 32, .n_ff = 512, .weight_type = GGML_TYPE_Q4_K};
  const ToyGguf plain(spec);
  spec.tensor_types = {{"blk.0.attn_v.weight", GGML_TYPE_Q6_K},
                       {"blk.1.ffn_down.weight", GGML_TYPE_IQ4_XS},
                       {"token_embd.weight", GGML_TYPE_IQ4_NL}};
  const ToyGguf mixed(spec);
  const auto file = GgufFile::open(mixed.path());
  const auto before = GgufFile::open(plain.path());
  ASSERT_TRUE(file.ok() && before.ok());
  for (const TensorInfo& tensor : file->tensors()) {
    const auto other = std::ranges::find(spec.tensor_types, tensor.name, &TensorType::tensor);
    const TensorInfo* const there = before->find_tensor(tensor.name);
    ASSERT_NE(there, nullptr) << tensor.name;
    EXPECT_EQ(tensor.type, other == spec.tensor_types.end() ? there->type : other->type) << tensor.name;
  }
  const auto model = load(mixed);
  ASSERT_NE(model, nullptr) << "libllama loads it";
  const auto context = context_for(model.get());
  const std::vector<float> logits = logits_after(context.get(), {1, 2, 3});
  ASSERT_FALSE(logits.empty());
  for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));

  spec.tensor_types = {{"blk.0.attn_w.weight", GGML_TYPE_Q6_K}};
  const Status status = write_random_model(spec, mixed.path());
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("blk.0.attn_w.weight"), std::string::npos);
}

TEST_F(RandomModelTest, refuses_specs_that_contradict_themselves) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "refused.gguf";
  for (const RandomModelSpec& spec : std::initializer_list<RandomModelSpec>{
           {.architecture = "mamba"},
           {.n_layers = 0},
           {.n_heads = 4, .n_kv_heads = 3},
           {.head_dim = 7},
           {.n_vocab = 100},
           {.architecture = "qwen2", .llama3_factors = true},
           {.weight_type = GGML_TYPE_Q8_K},
           {.weight_type = GGML_TYPE_I32},
       }) {
    EXPECT_EQ(write_random_model(spec, path).code(), Code::kInvalidArgument);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_EQ(write_random_model({}, "/no/such/folder/x.gguf").code(), Code::kIo);
}

TEST_F(RandomModelTest, takes_the_vocabulary_of_another_file_and_nothing_else) {
  const ToyGguf other{RandomModelSpec{.architecture = "qwen2", .n_vocab = 300}};
  RandomModelSpec spec = {.architecture = "llama", .n_vocab = 300};
  spec.vocabulary_of = other.path().string();
  const ToyGguf toy(spec);
  const llama_model_ptr model = load(toy);
  ASSERT_NE(model, nullptr);
  const llama_model_ptr of_other = load(other);
  EXPECT_EQ(llama_vocab_n_tokens(llama_model_get_vocab(model.get())), 300);
  EXPECT_STREQ(llama_vocab_get_text(llama_model_get_vocab(model.get()), 299),
               llama_vocab_get_text(llama_model_get_vocab(of_other.get()), 299));
  const Result<GgufFile> file = GgufFile::open(toy.path());
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->find_int("qwen2.context_length")->has_value());

  spec.n_vocab = 301;
  EXPECT_EQ(write_random_model(spec, toy.path().string() + ".other").code(), Code::kInvalidArgument);
  spec.vocabulary_of = "/nowhere.gguf";
  EXPECT_EQ(write_random_model(spec, toy.path().string() + ".other").code(), Code::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(toy.path().string() + ".other"));
}

}  // namespace
}  // namespace ebb
