#include "engine/embedder.h"

#include <cmath>
#include <memory>
#include <numeric>

#include "llama.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/toy_gguf.h"
#include "text/vocabulary.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

std::filesystem::path minilm() {
  return std::filesystem::path(EBB_SOURCE_DIR) / "../shared/models/all-minilm-l6-v2-q8_0.gguf";
}

// A model that makes a vector of a text's mean, with random weights.
std::filesystem::path write_toy(const ToyGguf& toy) {
  return toy.write_with_keys(
      [](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.pooling_type", LLAMA_POOLING_TYPE_MEAN); });
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<float> embedded(Embedder& embedder, std::string_view text) {
  const Result<std::vector<Token>> tokens = embedder.tokenize(text);
  EBB_CHECK(tokens.ok(), "{}", tokens.status().message());
  Result<std::vector<float>> vector = embedder.embed(*tokens);
  EBB_CHECK(vector.ok(), "{}", vector.status().message());
  return *std::move(vector);
}

// What libllama makes of two texts in one batch, as sequences of their own.
std::vector<std::vector<float>> of_libllama(const std::filesystem::path& gguf, const std::vector<std::string>& texts) {
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  const std::unique_ptr<llama_model, void (*)(llama_model*)> model(
      llama_model_load_from_file(gguf.c_str(), model_params), llama_model_free);
  llama_context_params params = llama_context_default_params();
  params.embeddings = true;
  params.n_ctx = 256;
  params.n_seq_max = static_cast<std::uint32_t>(texts.size());
  params.kv_unified = true;
  params.n_threads = 1;
  params.n_threads_batch = 1;
  const std::unique_ptr<llama_context, void (*)(llama_context*)> context(llama_init_from_model(model.get(), params),
                                                                         llama_free);
  llama_batch batch = llama_batch_init(256, 0, 1);
  for (std::size_t s = 0; s < texts.size(); ++s) {
    std::vector<llama_token> ids(128);
    ids.resize(static_cast<std::size_t>(llama_tokenize(llama_model_get_vocab(model.get()), texts[s].data(),
                                                       static_cast<std::int32_t>(texts[s].size()), ids.data(), 128,
                                                       true, false)));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int32_t at = batch.n_tokens++;
      batch.token[at] = ids[i];
      batch.pos[at] = static_cast<llama_pos>(i);
      batch.n_seq_id[at] = 1;
      batch.seq_id[at][0] = static_cast<llama_seq_id>(s);
      batch.logits[at] = 1;
    }
  }
  EBB_CHECK(llama_decode(context.get(), batch) == 0, "libllama refuses");
  llama_batch_free(batch);
  std::vector<std::vector<float>> vectors;
  for (std::size_t s = 0; s < texts.size(); ++s) {
    const float* const from = llama_get_embeddings_seq(context.get(), static_cast<llama_seq_id>(s));
    std::vector<float>& vector = vectors.emplace_back(from, from + llama_model_n_embd_out(model.get()));
    const double length = std::sqrt(cosine(vector, vector));
    for (float& x : vector) x = static_cast<float>(x / length);
  }
  return vectors;
}

void expect_as_libllama(const std::filesystem::path& gguf) {
  const Result<std::unique_ptr<Embedder>> embedder = Embedder::open({.model = gguf});
  ASSERT_TRUE(embedder.ok()) << embedder.status().message();
  const std::vector<std::string> texts = {"The code of the north gate is 4711.", "Rain."};
  const std::vector<std::vector<float>> theirs = of_libllama(gguf, texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> ours = embedded(**embedder, texts[i]);
    ASSERT_EQ(ours.size(), theirs[i].size());
    EXPECT_NEAR(cosine(ours, ours), 1.0, 1e-5);
    EXPECT_GT(cosine(ours, theirs[i]), 0.9999) << texts[i];
    EXPECT_EQ(ours, embedded(**embedder, texts[i]));
  }
}

TEST(Embedder, gives_the_vectors_of_libllama_in_length_one) { expect_as_libllama(write_toy(ToyGguf({}))); }

TEST(Embedder, gives_the_vectors_of_libllama_for_mini_lm) {
  if (!std::filesystem::exists(minilm())) GTEST_SKIP() << "no " << minilm();
  expect_as_libllama(minilm());
}

TEST(Embedder, finds_sentences_that_mean_the_same_nearer_than_others) {
  if (!std::filesystem::exists(minilm())) GTEST_SKIP() << "no " << minilm();
  const Result<std::unique_ptr<Embedder>> embedder = Embedder::open({.model = minilm()});
  ASSERT_TRUE(embedder.ok()) << embedder.status().message();
  const std::vector<float> question = embedded(**embedder, "How do I open the north gate?");
  const std::vector<float> answer = embedded(**embedder, "The code that unlocks the northern door is 4711.");
  const std::vector<float> other = embedded(**embedder, "Bananas are rich in potassium.");
  EXPECT_GT(cosine(question, answer), cosine(question, other) + 0.2);
}

TEST(Embedder, refuses_texts_its_model_cannot_take_and_says_what_it_takes) {
  const ToyGguf toy({.n_ctx_train = 300});
  const Result<std::unique_ptr<Embedder>> embedder = Embedder::open({.model = write_toy(toy)});
  ASSERT_TRUE(embedder.ok()) << embedder.status().message();
  EXPECT_EQ((*embedder)->max_tokens(), 300);
  EXPECT_TRUE((*embedder)->embed(std::vector<Token>(300, Token(65))).ok());
  const Status too_long = (*embedder)->embed(std::vector<Token>(301, Token(65))).status();
  EXPECT_EQ(too_long.code(), Code::kInvalidArgument);
  EXPECT_THAT(too_long.message(), HasSubstr("301 tokens; the embedding model takes 1 to 300"));
  EXPECT_EQ((*embedder)->embed({}).status().code(), Code::kInvalidArgument);
  const Status foreign = (*embedder)->embed(std::vector<Token>{Token(320)}).status();
  EXPECT_THAT(foreign.message(), HasSubstr("token 320 is not one of the embedding model's 320"));
}

TEST(Embedder, stops_when_nobody_wants_the_vector) {
  const ToyGguf toy({});
  const Result<std::unique_ptr<Embedder>> embedder = Embedder::open({.model = write_toy(toy)});
  ASSERT_TRUE(embedder.ok()) << embedder.status().message();
  const std::vector<Token> text(200, Token(65));
  const std::vector<float> before = *(*embedder)->embed(text);
  EXPECT_EQ((*embedder)->embed(text, [] { return true; }).status().code(), Code::kCancelled);
  EXPECT_EQ(*(*embedder)->embed(text), before);
}

TEST(Embedder, takes_no_model_that_only_continues_texts) {
  const ToyGguf toy({});
  const Status status = Embedder::open({.model = toy.path()}).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("give an embedding model"));
  EXPECT_EQ(Embedder::open({.model = "/nowhere.gguf"}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace ebb
