// What a request's fields do to its answer, and which are refused.
#include <map>

#include <gmock/gmock.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RequestFields : public Server {
 protected:
  // llama.cpp's own completion, of few tokens.
  Json complete(Json more) {
    more["prompt"] = "The code of the north gate is";
    if (!more.contains("n_predict")) more["n_predict"] = 12;
    const auto kept = ask("POST", "/completion", more.dump());
    EXPECT_EQ(kept->status(), 200) << kept->body();
    return kept->json();
  }
};

TEST_F(RequestFields, wrong_ones_are_refused_with_their_name_in_the_message_and_as_param) {
  const std::map<std::string, std::string> bodies = {
      {R"("n_keep":-2)", "n_keep"},
      {R"("min_keep":-1)", "min_keep"},
      {R"("dry_penalty_last_n":-2)", "dry_penalty_last_n"},
      {R"("sse_ping_interval":-5)", "sse_ping_interval"},
      {R"("model":5)", "model"},
      {R"("reasoning_effort":3)", "reasoning_effort"},
      {R"("prompt_cache_key":1)", "prompt_cache_key"},
      {R"("stream_options":5)", "stream_options"},
      {R"("stream_options":{"include_usage":5})", "stream_options.include_usage"},
      {R"("seed":18446744073709551615)", "seed"},
      {R"("post_sampling_probs":1)", "post_sampling_probs"},
      {R"("messages":[{"role":"user","content":"x","ebb":5}])", "messages[0].ebb"},
      {R"("messages":[{"role":"user","content":"x","ebb":{"pin":5}}])", "messages[0].ebb.pin"},
      {R"("messages":5)", "messages"},
  };
  for (const auto& [member, name] : bodies) {
    const std::string messages = R"({"messages":[{"role":"user","content":"x"}],)";
    const auto kept = ask("POST", "/v1/chat/completions", messages + member + "}");
    EXPECT_EQ(kept->status(), 400) << member;
    EXPECT_THAT(kept->json()["error"]["message"].get<std::string>(), HasSubstr("'" + name + "'")) << member;
    EXPECT_EQ(kept->json()["error"]["param"], name) << member;
  }
  EXPECT_EQ(ask("POST", "/v1/responses", R"({"input":[]})")->json()["error"]["param"], "input");
  const Json cut = ask("POST", "/v1/chat/completions", "{")->json();
  EXPECT_THAT(cut["error"]["message"].get<std::string>(), HasSubstr("ends too early"));
  EXPECT_EQ(cut["error"]["param"], nullptr);
}

TEST_F(RequestFields, samplers_shape_the_answer_and_are_told_with_it) {
  const Json settings = ask("GET", "/props")->json()["default_generation_settings"]["params"];
  EXPECT_EQ(settings["samplers"].size(), 9U);
  const Json plain = complete({{"temperature", 0}});
  EXPECT_EQ(plain["generation_settings"]["samplers"], settings["samplers"]);
  // This always chooses the least likely of the likeliest tokens.
  const Json odd = {
      {"seed", 3}, {"top_k", 2}, {"xtc_probability", 1}, {"xtc_threshold", 0}, {"samplers", {"top_k", "xtc"}}};
  const Json least = complete(odd);
  EXPECT_NE(least["content"], plain["content"]);
  EXPECT_EQ(least["content"], complete(odd)["content"]);
  EXPECT_EQ(least["generation_settings"]["xtc_probability"], 1.0);
  EXPECT_EQ(least["generation_settings"]["samplers"], (Json{"top_k", "xtc"}));
  for (const Json& more : {Json{{"mirostat", 2}, {"mirostat_tau", 9}}, Json{{"dynatemp_range", 0.5}},
                           Json{{"dry_multiplier", 2}, {"dry_allowed_length", 1}}, Json{{"top_n_sigma", 1.5}}}) {
    Json asked = more;
    asked["seed"] = std::int64_t{1} << 40;
    EXPECT_EQ(complete(asked)["content"], complete(asked)["content"]) << more;
  }
}

TEST_F(RequestFields, chances_behind_the_samplers_are_probabilities_of_what_those_left) {
  const Json chances = complete(
      {{"top_k", 2}, {"n_probs", 5}, {"post_sampling_probs", true}, {"n_predict", 3}})["completion_probabilities"];
  ASSERT_FALSE(chances.empty());
  for (const Json& token : chances) {
    EXPECT_FALSE(token.contains("logprob"));
    EXPECT_LE(token["top_probs"].size(), 2U);
    double sum = 0.0;
    for (const Json& one : token["top_probs"]) sum += one["prob"].get<double>();
    EXPECT_NEAR(sum, 1.0, 1e-4);
    EXPECT_GT(token["prob"].get<double>(), 0.0);
  }
}

TEST_F(RequestFields, where_ends_are_ignored_only_the_limit_ends) {
  const std::string end = std::to_string(engine_->vocabulary().eos()->value());
  Json body = {{"logit_bias", {{end, 100}}}};
  EXPECT_EQ(complete(body)["stop_type"], "eos");
  body["ignore_eos"] = true;
  const Json longer = complete(body);
  EXPECT_EQ(longer["stop_type"], "limit");
  EXPECT_EQ(longer["tokens_predicted"], 12);
}

TEST_F(RequestFields, strict_takes_what_openai_takes) {
  const Json schema = Json::parse(R"({"type":"object","properties":{"n":{"type":"integer","multipleOf":5},
      "at":{"type":"string","format":"ipv4"},"mail":{"type":"string","format":"email"}},"required":["n","at"],
      "additionalProperties":false})");
  const Json format = {{"type", "json_schema"}, {"json_schema", {{"name", "a"}, {"strict", true}, {"schema", schema}}}};
  const Json body = {{"messages", Json::array({{{"role", "user"}, {"content", "x"}}})},
                     {"response_format", format},
                     {"max_tokens", 4}};
  const auto kept = ask("POST", "/v1/chat/completions", body.dump());
  EXPECT_EQ(kept->status(), 200) << kept->body();
  EXPECT_THAT(kept->json()["ebb"]["warnings"][0].get<std::string>(), HasSubstr("multipleOf"));
}

TEST_F(RequestFields, what_has_no_effect_is_told) {
  const Json reply = chat(Json::array({user("hi")}), {{"cache_prompt", false},
                                                      {"return_tokens", true},
                                                      {"verbose", true},
                                                      {"n_keep", 8},
                                                      {"web_search_options", Json::object()},
                                                      {"prediction", {{"type", "content"}, {"content", "x"}}},
                                                      {"verbosity", "low"},
                                                      {"samplers", {"infill", "top_k"}}})
                         ->json();
  EXPECT_THAT(reply["ebb"]["warnings"].get<std::vector<std::string>>(),
              testing::UnorderedElementsAre(HasSubstr("cache_prompt"), HasSubstr("return_tokens"), HasSubstr("verbose"),
                                            HasSubstr("n_keep"), HasSubstr("web_search_options"),
                                            HasSubstr("prediction"), HasSubstr("verbosity"), HasSubstr("'infill'")));
  const Json asked = {
      {"input", "hi"}, {"max_output_tokens", 1}, {"truncation", "auto"}, {"text", {{"verbosity", "low"}}}};
  EXPECT_THAT(ask("POST", "/v1/responses", asked.dump())->json()["ebb"]["warnings"].get<std::vector<std::string>>(),
              testing::UnorderedElementsAre(HasSubstr("truncation"), HasSubstr("verbosity")));
  EXPECT_THAT(complete({{"return_tokens", true}})["ebb"].value("warnings", Json::array()), ElementsAre());
}

TEST_F(RequestFields, a_stream_is_pinged_as_often_as_its_request_says) {
  ApiOptions options;
  options.ping_after = std::chrono::seconds(9);
  open(std::move(options));
  const auto ping_with = [&](const Json& more) {
    Json body = {{"prompt", "x"}, {"max_tokens", 1}, {"stream", true}};
    body.update(more);
    return ask("POST", "/v1/completions", body.dump())->ping_after();
  };
  EXPECT_EQ(ping_with(Json::object()), std::chrono::seconds(9));
  EXPECT_EQ(ping_with({{"sse_ping_interval", 3}}), std::chrono::seconds(3));
  EXPECT_EQ(ping_with({{"sse_ping_interval", -1}}), std::chrono::seconds(0));
}

TEST_F(RequestFields, calls_of_custom_tools_are_texts_whole_and_streamed) {
  Json more = Json::parse(R"({"tools":[{"type":"custom","custom":{"name":"say","description":"Says a text"}}],
      "tool_choice":{"type":"custom","custom":{"name":"say"}},"max_tokens":120})");
  const Json call = chat(Json::array({user("Say hello.")}), more)->json()["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "custom");
  EXPECT_EQ(call["custom"]["name"], "say");
  EXPECT_TRUE(call["custom"]["input"].is_string()) << call;
  EXPECT_FALSE(call.contains("function"));
  more["stream"] = true;
  Json streamed;
  for (const std::string& data : events(chat(Json::array({user("Say hello.")}), more)->body())) {
    if (data == "[DONE]") continue;
    const Json chunk = Json::parse(data);
    if (chunk["choices"].empty() || !chunk["choices"][0]["delta"].contains("tool_calls")) continue;
    EXPECT_TRUE(streamed.is_null()) << "its text comes at once";
    streamed = chunk["choices"][0]["delta"]["tool_calls"][0];
  }
  EXPECT_EQ(streamed["index"], 0);
  EXPECT_EQ(streamed["type"], "custom");
  EXPECT_EQ(streamed["custom"], call["custom"]);
}

}  // namespace
}  // namespace ebb
