// Embeddings over HTTP's words: what clients send, get, and are refused.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/embedder.h"
#include "model/toy_gguf.h"
#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

// With random weights, and the mean of a text's tokens as its vector.
class Embeddings : public Server {
 protected:
  void SetUp() override {
    const auto path = toy_.write_with_keys([](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.pooling_type", 1); });
    Result<std::unique_ptr<Embedder>> embedder = Embedder::open({.model = path});
    ASSERT_TRUE(embedder.ok()) << embedder.status().message();
    embedder_ = *std::move(embedder);
    open({.embedder = embedder_.get(), .embedding_model_name = "toy"});
  }
  // The API goes before its embedder does.
  void TearDown() override { api_.reset(); }

  Json embeddings(const Json& body) { return ask("POST", "/v1/embeddings", body.dump())->json(); }
  std::vector<Token> tokens(std::string_view text) { return *embedder_->tokenize(text); }

  ToyGguf toy_{{.n_ctx_train = 300}};
  std::unique_ptr<Embedder> embedder_;
};

// What a client reads out of base64: four letters are three bytes.
std::vector<float> floats_of(const std::string& text) {
  static const std::string kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (const char letter : text.substr(0, text.find('='))) {
    bits = bits << 6U | static_cast<std::uint32_t>(kLetters.find(letter));
    if ((n_bits += 6) >= 8) bytes += static_cast<char>(bits >> static_cast<unsigned>(n_bits -= 8));
  }
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

TEST_F(Embeddings, have_a_model_that_is_listed_beside_the_one_that_generates) {
  const Json models = ask("GET", "/v1/models")->json()["data"];
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0]["id"], "m");
  EXPECT_EQ(models[1]["id"], "toy");
  EXPECT_EQ(models[1]["meta"]["n_embd"], embedder_->n_dimensions());
  EXPECT_EQ(models[1]["meta"]["n_ctx"], embedder_->max_tokens());
  EXPECT_EQ(ask("GET", "/v1/models/toy")->json(), models[1]);
  EXPECT_EQ(ask("GET", "/v1/models/m")->json(), models[0]);
  EXPECT_EQ(ask("GET", "/v1/models/other")->status(), 404);
}

TEST_F(Embeddings, come_in_the_order_of_their_texts_with_the_tokens_counted) {
  const Json json = embeddings({{"input", {"north gate", "rain"}}, {"model", "any"}});
  EXPECT_EQ(json["object"], "list");
  EXPECT_EQ(json["model"], "toy");
  ASSERT_EQ(json["data"].size(), 2U) << json.dump();
  EXPECT_EQ(json["data"][1]["object"], "embedding");
  EXPECT_EQ(json["data"][1]["index"], 1);
  EXPECT_EQ(json["data"][0]["embedding"].get<std::vector<float>>(), *embedder_->embed(tokens("north gate")));
  EXPECT_EQ(json["data"][1]["embedding"].get<std::vector<float>>(), *embedder_->embed(tokens("rain")));
  EXPECT_EQ(json["usage"]["prompt_tokens"], tokens("north gate").size() + tokens("rain").size());
  EXPECT_EQ(json["usage"]["total_tokens"], json["usage"]["prompt_tokens"]);
}

TEST_F(Embeddings, are_the_same_for_a_text_and_its_tokens_and_in_base64) {
  std::vector<std::int32_t> ids;
  for (const Token token : tokens("north gate")) ids.push_back(token.value());
  const Json wanted = embeddings({{"input", "north gate"}})["data"][0]["embedding"];
  EXPECT_EQ(embeddings({{"input", ids}})["data"][0]["embedding"], wanted);
  EXPECT_EQ(embeddings({{"input", Json::array({ids, ids})}})["data"][1]["embedding"], wanted);
  const Json coded = embeddings({{"input", "north gate"}, {"encoding_format", "base64"}})["data"][0]["embedding"];
  EXPECT_EQ(floats_of(coded), wanted.get<std::vector<float>>());
}

TEST_F(Embeddings, of_ids_and_text_mixed_and_in_llama_cpps_own_shape) {
  std::vector<Token> mixed = tokens("north gate");
  const std::vector<Token> behind = tokens("rain");
  mixed.insert(mixed.end(), behind.begin(), behind.end());
  Json ids = Json::array();
  for (const Token token : tokens("north gate")) ids.push_back(token.value());
  ids.push_back("rain");
  const std::vector<float> wanted = *embedder_->embed(mixed);
  EXPECT_EQ(embeddings({{"input", ids}})["data"][0]["embedding"].get<std::vector<float>>(), wanted);
  EXPECT_EQ(embeddings({{"input", Json::array({"x", ids})}})["data"][1]["embedding"].get<std::vector<float>>(), wanted);
  const Json native = ask("POST", "/embedding", Json({{"content", ids}}).dump())->json();
  ASSERT_TRUE(native.is_array()) << native;
  EXPECT_EQ(native[0]["embedding"][0].get<std::vector<float>>(), wanted);
}

TEST_F(Embeddings, that_cannot_be_are_refused_with_the_field_and_the_numbers) {
  const std::vector<std::pair<Json, std::string>> bodies = {
      {Json::object(), "'input'"},
      {{{"input", 5}}, "'input'"},
      {{{"input", Json::array()}}, "0 texts; send 1 to 2048"},
      {{{"input", Json::array({"a", Json::object()})}}, "'input'"},
      {{{"input", Json::array({1, true})}}, "'input'"},
      {{{"input", Json::array({1, 320})}}, "token 320; the embedding model has 320"},
      {{{"input", Json::array({Json::array()})}}, "0 tokens"},
      {{{"input", std::vector<std::int32_t>(301, 65)}}, "text 0 has 301 tokens; the embedding model takes 1 to 300"},
      {{{"input", std::vector<std::string>(2049, "a")}}, "2049 texts; send 1 to 2048"},
      {{{"input", "a"}, {"encoding_format", "hex"}}, "'encoding_format'"},
      {{{"input", "a"}, {"dimensions", 3}}, "'dimensions'"},
  };
  for (const auto& [body, wanted] : bodies) {
    const auto kept = ask("POST", "/v1/embeddings", body.dump());
    EXPECT_EQ(kept->status(), 400) << wanted;
    EXPECT_THAT(kept->json()["error"]["message"].get<std::string>(), HasSubstr(wanted));
  }
  open({});
  const auto off = ask("POST", "/embeddings", R"({"input":"a"})");
  EXPECT_EQ(off->status(), 501);
  EXPECT_THAT(off->json()["error"]["message"].get<std::string>(), HasSubstr("--embedding-model"));
}

TEST_F(Embeddings, of_a_client_that_left_are_not_computed_to_the_end) {
  const std::vector<std::vector<std::int32_t>> many(2048, std::vector<std::int32_t>(300, 65));
  const auto left = send("POST", "/v1/embeddings", Json({{"input", many}}).dump());
  left->leave();
  // One thread computes them all: this one is answered when the other has ended.
  EXPECT_EQ(embeddings({{"input", "a"}})["data"].size(), 1U);
  left->wait();
  EXPECT_EQ(left->status(), 503);
}

TEST_F(Embeddings, what_a_library_throws_is_answered_and_ends_nothing) {
  const auto kept = std::make_shared<ThrowsOnce>();
  api_->handle({.method = "POST", .path = "/v1/embeddings", .body = R"({"input":"hello"})"}, kept);
  kept->wait();
  EXPECT_EQ(kept->status(), 500);
  EXPECT_EQ(kept->body().find("secret"), std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/embeddings", R"({"input":"hello"})")->status(), 200);
}

}  // namespace
}  // namespace ebb
